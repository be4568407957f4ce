"""Whether a lane may ask the other partitions of its commands topic for room.

A transaction fails if any partition that it writes to is unavailable. No lane stands still for room that it asks for:
after a failure it asks and answers nobody for a while, which gets longer each time.
"""

from __future__ import annotations

from collections.abc import Iterable

from light_scheduler.model.place import Place

FIRST_PAUSE_MS, LAST_PAUSE_MS = 60_000, 960_000


class Neighbours:
    """The other partitions of a lane's topic, and whether they may be asked. Instants are UTC epoch ms."""

    def __init__(self, topic: str, partition: int) -> None:
        self._topic = topic
        self._partition = partition
        self._pause_ms = FIRST_PAUSE_MS
        self._paused_until = 0

    def may_be_asked(self, now: int) -> bool:
        """Tell whether they may be asked, and answered."""
        return now >= self._paused_until

    def failed(self, places: Iterable[Place], now: int) -> None:
        """Ask nobody for a while, if one of them may be why a transaction that wrote to these places failed."""
        if self._are_among(places):
            self._paused_until = now + self._pause_ms
            self._pause_ms = min(2 * self._pause_ms, LAST_PAUSE_MS)

    def committed(self, places: Iterable[Place]) -> None:
        """Forget failures, if a transaction has written to one of them."""
        if self._are_among(places):
            self._pause_ms = FIRST_PAUSE_MS

    def _are_among(self, places: Iterable[Place]) -> bool:
        return any(topic == self._topic and partition != self._partition for topic, partition in places)
