"""What becomes of a schedule that is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from light_scheduler.model import DeadLetterCause, Entry, EventType

MINUTE_MS = 60_000


@dataclass(frozen=True)
class MissedPolicy:
    """How far back a tick looks (None: all the way), and what happens to what lies beyond."""

    lookback_minutes: int | None = None
    beyond: Literal["fire", "dead-letter"] = "dead-letter"

    def reaches(self, due: int, now: int) -> bool:
        """Tell whether an instant lies in the current minute or one of the past minutes that are scanned."""
        return self.lookback_minutes is None or now // MINUTE_MS - due // MINUTE_MS <= self.lookback_minutes


class FiringDecision(msgspec.Struct, frozen=True, gc=False):
    """What follows from a due schedule: the event that history records, and why, if it was not simply delivered."""

    event: EventType
    reason: str | None = None
    dead_letter: DeadLetterCause | None = None

    @property
    def delivers(self) -> bool:
        return self.event is EventType.FIRED


DELIVER = FiringDecision(EventType.FIRED)


def decide_firing(entry: Entry, now: int, missed: MissedPolicy, refusal: str | None = None) -> FiringDecision:
    """Decide what becomes of a due schedule at an instant (UTC epoch ms); `refusal` says why its target refuses it.

    A firing past its time to live is dropped whatever else holds: nobody wants it any more.
    """
    due, ttl = entry.progress.due, entry.schedule.ttl
    if ttl is not None and now > due + ttl:
        return FiringDecision(EventType.EXPIRED, f"{now - due} ms after due; its time to live was {ttl} ms")
    if missed.beyond == "dead-letter" and not missed.reaches(due, now):
        return FiringDecision(
            EventType.MISSED,
            f"due {now - due} ms ago, before the lookback of {missed.lookback_minutes} minutes",
            DeadLetterCause.MISSED,
        )
    if refusal is not None:
        return FiringDecision(EventType.DEAD_LETTERED, refusal, DeadLetterCause.REFUSED)
    return DELIVER
