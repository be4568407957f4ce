"""Settings that apply to every firing: how far back the lookback reaches, and when a refused firing is retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MINUTE_MS = 60_000


@dataclass(frozen=True)
class FiringRules:
    """Settings that apply to every firing.

    `lookback_minutes` is how far back a tick looks for due firings (None: without limit), `beyond` what it does with
    older ones. A firing that its target refuses is retried `retries` times, each time in the next minute.
    """

    lookback_minutes: int | None = None
    beyond: Literal["fire", "dead-letter"] = "dead-letter"
    retries: int = 1

    def reaches(self, due: int, now: int) -> bool:
        """Tell whether an instant lies in the current minute or one of the past minutes that are scanned."""
        return self.lookback_minutes is None or now // MINUTE_MS - due // MINUTE_MS <= self.lookback_minutes


def next_try(now: int) -> int:
    """Return when what a target refuses at an instant is tried again: in the next minute."""
    return (now // MINUTE_MS + 1) * MINUTE_MS
