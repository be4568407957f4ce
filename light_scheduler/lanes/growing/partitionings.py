"""The number of partitions as lanes know it, and their reports of their progress after it has grown."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from light_scheduler.model.partitioning import Partitioning


class Stage(StrEnum):
    """How far a partition is since its topic has grown."""

    FOLLOWING = "following"
    """It runs in a worker that knows how bulk commands follow schedules: to be reported before that it runs."""
    RUNNING = "running"
    SETTLED = "settled"


class Partitionings(Protocol):
    """The partitioning for each commands topic: the same for all workers, after a moment.

    A topic counts as grown when every worker can know it, which may be some time after it has got partitions; the new
    partitions are not used until then. `changed` is called when a partitioning changes.
    """

    changed: list[Callable[[], None]]

    def of(self, topic: str) -> Partitioning | None:
        """Return the partitioning of a commands topic, as far as is known; None: it is not known."""
        ...

    async def refresh(self, topic: str, partition: int) -> None:
        """Learn of everything that held before this call, for the lane of a partition. Raises BrokerError.

        If that is one that is not used, it may have been added: then the topic counts as grown, if it may grow.
        """
        ...

    def report(self, topic: str, partition: int, partitions: int, stage: Stage) -> None:
        """Report to all workers how far a partition is, of `partitions`; soon, unless this process ends before."""
        ...
