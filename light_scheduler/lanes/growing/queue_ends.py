"""Where the queues of delayed commands ended when a partition had nothing left to move after its topic grew.

One of these commands may be a bulk command, so the growth counts as settled only after them.
"""

from __future__ import annotations

from collections.abc import Mapping


class QueueEnds:
    """The ends of a lane's queues, by tenant, for the latest growth of its topic.

    Only in memory: a lane that starts again waits for the commands that are delayed by then.
    """

    def __init__(self) -> None:
        self._partitions = self._settled = 0
        self._ends: Mapping[str, int] = {}

    def note(self, partitions: int, ends: Mapping[str, int]) -> None:
        """Note where queues end, the first time that it is called for a topic of so many partitions."""
        if partitions != self._partitions:
            self._partitions, self._ends = partitions, dict(ends)

    def ends(self, partitions: int) -> Mapping[str, int] | None:
        """Return what was noted; None: nothing."""
        return self._ends if partitions == self._partitions else None

    def settle(self, partitions: int) -> None:
        """Note that nothing is left to be moved in a topic of so many partitions, and that others are told so."""
        self._settled = partitions

    def has_settled(self, partitions: int) -> bool:
        """Return whether that was noted."""
        return partitions == self._settled
