"""Settings that apply to every firing: the lookback, and the retries of refused firings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MINUTE_MS = 60_000


@dataclass(frozen=True)
class FiringRules:
    """Settings that apply to every firing.

    A firing is within the lookback if it was due in the current minute or the `lookback_minutes` before it (None: no
    limit). `beyond` says what happens to an older one. A firing that its target refuses is retried `retries` times,
    each time in the next minute.
    """

    lookback_minutes: int | None = None
    beyond: Literal["fire", "dead-letter"] = "dead-letter"
    retries: int = 1

    def reaches(self, due: int, now: int) -> bool:
        """Return whether an instant is within the lookback."""
        return self.lookback_minutes is None or now // MINUTE_MS - due // MINUTE_MS <= self.lookback_minutes
