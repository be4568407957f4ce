"""The number of partitions over which keys are distributed, now and before the topic grew."""

from __future__ import annotations

from dataclasses import dataclass

from .rate_lending import RatePart


@dataclass(frozen=True)
class Partitioning:
    """The state of the partitions of a commands topic.

    Keys are distributed over `partitions`; before the topic last grew, over `former` (None: it never grew). `running`
    are the partitions that run and know these numbers. Partitions in `settled` have handed over all schedules that
    belong elsewhere, and have received all of their own. `secret` signs what partitions hand to each other. Partitions
    in `following` run in workers that make bulk commands follow schedules that move.
    """

    partitions: int
    former: int | None = None
    running: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset()
    secret: bytes = b""
    following: frozenset[int] = frozenset()

    def rate_part(self, partition: int) -> RatePart:
        """Return a partition's part of the topic's rates.

        The share of a new partition grows with the number of former partitions known to have reduced their own. So the
        sum never exceeds the whole, however late each partition learns that the topic has grown.
        """
        share = 1 / max(1, self.partitions)  # the number is 0 for a topic that cannot be described
        if self.former is None or partition < self.former or self.is_settled:
            return RatePart(share)
        former = sum(each < self.former for each in self.running)
        return RatePart(share * former / self.former, is_new=True)

    @property
    def all_run(self) -> bool:
        """Whether every partition is ready to receive schedules."""
        return len(self.running) >= self.partitions

    @property
    def all_follow(self) -> bool:
        """Whether no partition is known to run in an older worker, whose bulk commands miss moved schedules."""
        return self.running <= self.following

    @property
    def is_settled(self) -> bool:
        """Whether all schedules have moved."""
        return self.former is None or len(self.settled) >= self.partitions
