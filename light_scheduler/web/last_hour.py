"""This worker's activity in the last hour, kept in memory as one slot for each half minute."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable
from itertools import accumulate

import msgspec

from light_scheduler.clock import Clock
from light_scheduler.lanes.context.status import LaneStatus
from light_scheduler.model import Outcome
from light_scheduler.model.lateness import LATENESS_BOUNDS_MS

SLOT_MS = 30_000
"""A slot begins at a multiple of this, on all workers."""

HOUR_MS = 3_600_000
LOOK_S = 2.0
"""How often the lanes' counters are read. Activity between the last reading and the end of a lane is lost."""

_NOT_ACCEPTED = frozenset({Outcome.NOT_FOUND, Outcome.CONFLICT, Outcome.REJECTED})
_BUCKETS = len(LATENESS_BOUNDS_MS) + 1


class Slot(msgspec.Struct):
    """Activity of lanes for `SLOT_MS` from an instant (UTC epoch ms) on, and the backlog at its end.

    `accepted` counts commands, `lateness` firings by bucket (see `Lateness`). `latest` (ms) is an upper bound of their
    lateness. `backlog` counts commands to be read; None: not known.
    """

    at: int
    accepted: int = 0
    fired: int = 0
    lateness: list[int] = msgspec.field(default_factory=lambda: [0] * _BUCKETS)
    latest: int = 0
    backlog: int | None = None

    def add(self, other: Slot) -> None:
        """Add the activity of other lanes at the same time."""
        self.accepted += other.accepted
        self.fired += other.fired
        self.lateness = [a + b for a, b in zip(self.lateness, other.lateness, strict=True)]
        self.latest = max(self.latest, other.latest)
        if other.backlog is not None:
            self.backlog = (self.backlog or 0) + other.backlog

    def late(self, share: float) -> int | None:
        """Return an upper bound (ms) of the lateness of this share of the firings; None if there were none."""
        total = sum(self.lateness)
        if not total:
            return None
        bucket = bisect_left([*accumulate(self.lateness)], share * total)
        return LATENESS_BOUNDS_MS[bucket] if bucket < len(LATENESS_BOUNDS_MS) else self.latest


class _Counters(msgspec.Struct, frozen=True):
    accepted: int
    fired: int
    lateness: tuple[int, ...]


_ZERO = _Counters(0, 0, (0,) * _BUCKETS)


class LastHour:
    """Slots of lanes. A lane's counters begin at 0 when the worker takes it over, and only grow."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque(maxlen=HOUR_MS // SLOT_MS + 1)
        self._before: dict[tuple[str, int], _Counters] = {}

    def look(self, now: int, lanes: Iterable[LaneStatus]) -> None:
        """Record what the lanes have done since the last look. `now` is UTC epoch ms."""
        at = now // SLOT_MS * SLOT_MS
        if not self._slots or self._slots[-1].at < at:
            self._slots.append(Slot(at))
        slot, slot.backlog = self._slots[-1], None
        before, self._before = self._before, {}
        for lane in lanes:
            place = lane.topic, lane.partition
            counters = self._before[place] = _counters_of(lane)
            known = before.get(place, _ZERO)
            slot.add(
                _between(
                    known if counters.accepted >= known.accepted and counters.fired >= known.fired else _ZERO,
                    counters,
                    lane,
                )
            )

    def slots(self, now: int) -> list[Slot]:
        """Return the completed slots of the last hour, in order."""
        return [slot for slot in self._slots if now - HOUR_MS <= slot.at <= now - SLOT_MS]

    async def watch(self, lanes: Callable[[], Iterable[LaneStatus]], clock: Clock) -> None:
        """Look every `LOOK_S` until cancelled."""
        while True:
            self.look(clock.now(), lanes())
            await asyncio.sleep(LOOK_S)


def together(hours: Iterable[Iterable[Slot]]) -> list[Slot]:
    """Add up the activity of several workers, slot by slot."""
    slots: dict[int, Slot] = {}
    for each in hours:
        for slot in each:
            slots.setdefault(slot.at, Slot(slot.at)).add(slot)
    return [slots[at] for at in sorted(slots)]


def _counters_of(lane: LaneStatus) -> _Counters:
    accepted = sum(count for outcome, count in lane.outcomes.items() if outcome not in _NOT_ACCEPTED)
    return _Counters(accepted, lane.firings, tuple(lane.lateness.counts))


def _between(before: _Counters, after: _Counters, lane: LaneStatus) -> Slot:
    fired = after.fired - before.fired
    return Slot(
        0,
        accepted=after.accepted - before.accepted,
        fired=fired,
        lateness=[b - a for a, b in zip(before.lateness, after.lateness, strict=True)],
        latest=lane.lateness.max_ms if fired else 0,
        backlog=lane.lag,
    )
