"""The ends of the queues of delayed commands when a partition had nothing left to move after its topic grew.

One of these commands may be a bulk command, so the growth only counts as settled after them.
"""

from __future__ import annotations

from collections.abc import Mapping


class QueueEnds:
    """The ends of a lane's queues, by tenant, for the latest growth of its topic.

    Only in memory: a lane that starts again waits for the commands that are delayed by then.
    """

    def __init__(self) -> None:
        self._ends: Mapping[str, int] = {}
        self.forget()

    def forget(self) -> None:
        """Forget everything, because the topic was created again."""
        self._partitions = self._settled = 0
        self._ends = {}

    def note(self, partitions: int, ends: Mapping[str, int]) -> None:
        """Note the ends of queues. Only the first call for a number of partitions counts."""
        if partitions != self._partitions:
            self._partitions, self._ends = partitions, dict(ends)

    def ends(self, partitions: int) -> Mapping[str, int] | None:
        """Return the noted ends for a number of partitions, or None."""
        return self._ends if partitions == self._partitions else None

    def settle(self, partitions: int) -> None:
        """Note that nothing is left to move in a topic with this many partitions, and that others are told so."""
        self._settled = partitions

    def has_settled(self, partitions: int) -> bool:
        """Return whether `settle` was called for a number of partitions."""
        return partitions == self._settled
