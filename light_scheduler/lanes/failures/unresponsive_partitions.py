"""Partitions that a lane leaves alone: it neither asks them for room and tokens nor answers them.

A transaction fails if any partition that it writes to is unavailable, and a lane must not stall because of its requests
to others. So a lane leaves alone partitions that are unavailable according to the metadata. After a transaction that
others did not answer in time, it leaves these alone, for longer each time. If no partition answered, the failed one is
unknown, and the lane leaves all others alone. Records that it has to forward to them are not requests: they wait (see
`writes.waiting`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from light_scheduler.model.place import Place

FIRST_PAUSE_MS, LAST_PAUSE_MS = 60_000, 960_000
MOST_DOUBLINGS = 4
"""How often the first pause doubles until it is the last one."""

ALL = -1
"""Stands for all other partitions."""


class Neighbours:
    """The other partitions of a lane's topic, and their recent failures. Instants are UTC epoch ms."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._failures: Counter[int] = Counter()
        self._until: dict[int, int] = {}

    def left_alone(self, partitions: int, unavailable: Collection[int], now: int) -> frozenset[int]:
        """Return which of the topic's `partitions` are neither asked nor answered.

        Some are `unavailable` according to the metadata. If the lane's own partition is, no answer could reach it.
        """
        if not (self._until or unavailable):
            return frozenset()
        latest = now + LAST_PAUSE_MS  # later values are from before the clock was set back
        self._until = {partition: until for partition, until in self._until.items() if now < until <= latest}
        others = frozenset(range(partitions)) - {self._partition}
        if ALL in self._until or self._partition in unavailable:
            return others
        return others & (self._until.keys() | set(unavailable))

    def failed(self, places: Iterable[Place], written: Collection[Place], now: int) -> None:
        """Leave other partitions alone that may have failed a transaction. The places in `written` have answered."""
        asked = self.among(places)
        if not asked:
            return
        for partition in [each for each in asked if (self._topic, each) not in written] if written else [ALL]:
            self._until[partition] = now + (FIRST_PAUSE_MS << self._failures[partition])
            self._failures[partition] = min(MOST_DOUBLINGS, self._failures[partition] + 1)

    def committed(self, places: Iterable[Place]) -> None:
        """Forget the failures of partitions that a transaction has written to."""
        if self._failures and (written := self.among(places)):
            for partition in (*written, ALL):
                del self._failures[partition]

    def among(self, places: Iterable[Place]) -> list[int]:
        """Return the other partitions of the topic among these places."""
        return [number for topic, number in places if topic == self._topic and number != self._partition]
