"""How many partitions keys are shared out over: now, and before the topic grew."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    """What holds for the partitions of a commands topic.

    Keys belong to one of `partitions`; before the topic grew last, to one of `former`, None: it never grew. Each
    partition that knows this and runs is in `running`. One in `settled` has handed over what belongs elsewhere, and
    has been handed all that belongs there. `secret` signs what partitions hand to each other.
    """

    partitions: int
    former: int | None = None
    running: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset()
    secret: bytes = b""

    @property
    def all_run(self) -> bool:
        """Whether every partition is ready to be handed schedules."""
        return len(self.running) >= self.partitions

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to be moved."""
        return self.former is None or len(self.settled) >= self.partitions
