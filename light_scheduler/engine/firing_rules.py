"""Settings that apply to every firing: the lookback, and how often a refused one is retried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MINUTE_MS = 60_000


@dataclass(frozen=True)
class FiringRules:
    """Settings that apply to every firing.

    A firing is on time for the lookback if it was due in the current minute or the `lookback_minutes` before it (None:
    without limit); `beyond` says what happens to an older one. A firing that its target refuses is retried `retries`
    times, each time in the next minute.
    """

    lookback_minutes: int | None = None
    beyond: Literal["fire", "dead-letter"] = "dead-letter"
    retries: int = 1

    def reaches(self, due: int, now: int) -> bool:
        """Return whether an instant lies in the current minute or in the minutes of the lookback before it."""
        return self.lookback_minutes is None or now // MINUTE_MS - due // MINUTE_MS <= self.lookback_minutes
