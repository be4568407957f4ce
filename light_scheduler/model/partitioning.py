"""The number of partitions that keys are distributed over: now, and before the topic grew."""

from __future__ import annotations

from dataclasses import dataclass

from .rate_lending import RatePart


@dataclass(frozen=True)
class Partitioning:
    """The state of the partitions of a commands topic.

    Keys belong to one of `partitions`; before the topic last grew, to one of `former` (None: it never grew). `running`
    has each partition that runs and knows these numbers. A partition in `settled` has handed over all that belongs
    elsewhere, and has received all that belongs to it. `secret` signs what partitions hand to each other. Those in
    `following` run in workers that know how bulk commands follow schedules that move.
    """

    partitions: int
    former: int | None = None
    running: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset()
    secret: bytes = b""
    following: frozenset[int] = frozenset()

    def rate_part(self, partition: int) -> RatePart:
        """Return which part of the rates of the topic a partition earns.

        One that was added earns the more, the more of the former partitions are known to earn less than before. So all
        together never earn more than the whole, however late each of them learns that the topic has grown.
        """
        share = 1 / max(1, self.partitions)  # none are known of a topic that cannot be described
        if self.former is None or partition < self.former or self.is_settled:
            return RatePart(share)
        former = sum(each < self.former for each in self.running)
        return RatePart(share * former / self.former, is_new=True)

    @property
    def all_run(self) -> bool:
        """Whether every partition is ready to be handed schedules."""
        return len(self.running) >= self.partitions

    @property
    def all_follow(self) -> bool:
        """Whether no partition is known to run in a worker of an earlier version, which misses what has moved."""
        return self.running <= self.following

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be moved."""
        return self.former is None or len(self.settled) >= self.partitions
