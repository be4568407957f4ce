"""The number of partitions as lanes know it, and their progress reports after it has grown."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from light_scheduler.model.partitioning import Partitioning


class Stage(StrEnum):
    """The progress of a partition since its topic has grown."""

    FOLLOWING = "following"
    """It runs in a worker that knows how bulk commands follow schedules. Reported before RUNNING."""
    RUNNING = "running"
    SETTLED = "settled"


class Partitionings(Protocol):
    """The partitioning of each commands topic, which is the same for all workers after a moment.

    A topic counts as grown once every worker can know it, which may be some time after partitions were added. The new
    partitions are not used until then. The `changed` functions are called when a partitioning changes.
    """

    changed: list[Callable[[], None]]

    def of(self, topic: str) -> Partitioning | None:
        """Return the partitioning of a commands topic, or None if it is not known."""
        ...

    async def refresh(self, topic: str, partition: int) -> None:
        """Fetch the state as of this call, for the lane of a partition. Raises BrokerError.

        An unused partition may have been added. Then the topic counts as grown, if it may grow.
        """
        ...

    def report(self, topic: str, topic_id: str, partition: int, partitions: int, stage: Stage) -> None:
        """Report the stage of a partition, of `partitions`, to all workers soon, unless this process ends before.

        The report is only about the topic with this id, which is empty if it is not known.
        """
        ...
