"""Partitions that a lane leaves alone: it neither asks them for room and tokens nor answers them.

A transaction fails if any partition that it writes to is unavailable, and no lane is to stand still for what it asks
for. So a lane leaves alone partitions that take nothing, as the metadata tell. After a transaction that others did not
answer in time it leaves those alone, for a while, which gets longer each time. If none of its partitions answered, that
does not tell which one failed, and the lane leaves all others alone. What it has to pass on to others is not asked for:
that waits for them (see `waiting_writes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from light_scheduler.model.place import Place

FIRST_PAUSE_MS, LAST_PAUSE_MS = 60_000, 960_000
MOST_DOUBLINGS = 4
"""Doublings of the first pause, until it is the last one."""

ALL = -1
"""In place of a partition: all others."""


class Neighbours:
    """The other partitions of a lane's topic, and which of them failed lately. Instants are UTC epoch ms."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._failures: Counter[int] = Counter()
        self._until: dict[int, int] = {}

    def left_alone(self, partitions: int, unavailable: Collection[int], now: int) -> frozenset[int]:
        """Return which of so many partitions are not asked, or answered; some are `unavailable`, as metadata tell.

        One that is unavailable itself would wait for answers that nobody can give it.
        """
        if not (self._until or unavailable):
            return frozenset()
        latest = now + LAST_PAUSE_MS  # later ones are from before the clock was set back
        self._until = {partition: until for partition, until in self._until.items() if now < until <= latest}
        others = frozenset(range(partitions)) - {self._partition}
        if ALL in self._until or self._partition in unavailable:
            return others
        return others & (self._until.keys() | set(unavailable))

    def failed(self, places: Iterable[Place], written: Collection[Place], now: int) -> None:
        """Leave others alone that may be why a transaction failed, of whose places those in `written` have answered."""
        asked = self.among(places)
        if not asked:
            return
        for partition in [each for each in asked if (self._topic, each) not in written] if written else [ALL]:
            self._until[partition] = now + (FIRST_PAUSE_MS << self._failures[partition])
            self._failures[partition] = min(MOST_DOUBLINGS, self._failures[partition] + 1)

    def committed(self, places: Iterable[Place]) -> None:
        """Forget failures of those that a transaction has written to."""
        if self._failures and (written := self.among(places)):
            for partition in (*written, ALL):
                del self._failures[partition]

    def among(self, places: Iterable[Place]) -> list[int]:
        """Return which of these places are other partitions of the topic."""
        return [number for topic, number in places if topic == self._topic and number != self._partition]
