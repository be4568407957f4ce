"""Bulk commands while a commands topic grows: which former partition governs a schedule.

That is the partition that had the schedule before the topic grew. Until all schedules have moved, every command for a
schedule passes through the log of that partition, which decides the order (see `moving`).
"""

from __future__ import annotations

from math import gcd

from light_scheduler.model import Entry
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import BulkReach, ReachKind


class Governing:
    """The view of one partition of the topic."""

    def __init__(self, partitioning: Partitioning, partition: int) -> None:
        self.partitioning = partitioning
        self.partition = partition
        self._former = partitioning.former or partitioning.partitions

    def of(self, entry: Entry) -> int:
        """Return the former partition of a schedule that is in this partition."""
        key = entry.schedule.key
        if key is not None and partition_for(key, self.partitioning.partitions) == self.partition:
            return partition_for(key, self._former)
        return self.partition % self._former  # it has not moved, or its key has changed since

    @property
    def homes(self) -> list[int]:
        """All other partitions that schedules of this one may move to."""
        step = gcd(self._former, self.partitioning.partitions)
        first = self.partition % step
        return [each for each in range(first, self.partitioning.partitions, step) if each != self.partition]

    def was_there(self, partition: int) -> bool:
        """Return whether a partition existed before the topic grew."""
        return partition < self._former

    def reach(self, *, is_tree: bool) -> ReachKind | None:
        """Return how far copies of a bulk command sent to this partition reach, or None if the topic never grew."""
        if self.partitioning.former is None:
            return None
        return "tree" if is_tree else "flat"

    def spreads(self, reach: BulkReach | None) -> bool:
        """Return whether this partition must copy on a bulk command with this reach.

        The worker that wrote the copy may not know yet that the topic has grown, or that all schedules have moved.
        """
        partitioning = self.partitioning
        if partitioning.former is None or not self.was_there(self.partition):
            return False
        if reach is None:
            return not partitioning.is_settled
        if reach.partitions != partitioning.partitions:
            return reach.partitions < partitioning.partitions
        return reach.kind == "tree"
