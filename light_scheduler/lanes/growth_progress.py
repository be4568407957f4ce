"""A lane's progress, from cycle to cycle, after tenants' rules change or its topic grows.

Room for pending schedules follows the rules and the number of partitions. In a grown topic, schedules are handed over
slice by slice, and this partition reports its stage to the other workers.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Self

from light_scheduler.model.tenant_rules import NO_TENANTS, TenantBook
from light_scheduler.tables import Overlay

from .context.lane_context import CycleContext
from .context.partitionings import Stage
from .cycle.cycle import Cycle
from .growing.handover import HandoverPass, Slice


class _Followed(NamedTuple):
    """The tenant rules and number of partitions that room follows. Partitions `left_alone` must still be asked."""

    tenants: TenantBook = NO_TENANTS
    partitions: int = 0
    left_alone: frozenset[int] = frozenset()

    @classmethod
    def by(cls, cycle: Cycle) -> Self:
        """Return the rules that a cycle follows, once it is committed."""
        return cls(cycle.transaction.tenants, cycle.moving.partitioning.partitions, cycle.room_lending.left_alone)

    def covers(self, other: Self) -> bool:
        """Return whether following `other` would change nothing."""
        return self[:2] == other[:2] and self.left_alone <= other.left_alone


class GrowthProgress:
    """The progress of one lane."""

    def __init__(self, context: CycleContext) -> None:
        self._topic, self._partition = context.commands_topic, context.partition
        self._partitionings = context.partitionings
        self._handover = HandoverPass()
        self._followed = _Followed()

    def begin_again(self, cycle: Cycle) -> None:
        """Forget how far an earlier growth came. Call it until the position in a topic that was created again is
        stored."""
        self._handover = HandoverPass()
        cycle.moving.forget_progress()

    def follow_rules(self, cycle: Cycle) -> None:
        """Adapt room to the tenants' rules, if they or the number of partitions have changed."""
        if not self._followed.covers(_Followed.by(cycle)):
            cycle.room_lending.follow_rules()

    def hand_over(self, cycle: Cycle, overlay: Overlay, most: int, now: int) -> Slice | None:
        """Hand over the next schedules that belong elsewhere. Return None if it is not time for that.

        Call it once the backlog is taken, as a command in it may be for one of these schedules.
        """
        return self._handover.advance(cycle.moving, overlay, most) if self._handover.is_due(cycle.moving, now) else None

    def settle(self, cycle: Cycle, done: Slice | None, now: int) -> None:
        """Note the rules followed and the schedules moved, and report the stage of this partition.

        Call it when the transaction of a cycle is committed, or the cycle had nothing to commit.
        """
        followed = _Followed.by(cycle)
        if not self._followed.covers(followed):
            self._followed = followed
        if done is not None:
            self._handover.learn(done, now)
        moving, partitionings, partition = cycle.moving, self._partitionings, self._partition
        partitioning = moving.partitioning
        if partitionings is None or partitioning.is_settled:
            return
        log = cycle.transaction.overlay.commands_log
        topic_id = "" if log is None else log.topic_id
        report = partial(partitionings.report, self._topic, topic_id, partition, partitioning.partitions)
        if partition not in partitioning.following:  # even if a worker of an earlier version moved everything
            report(Stage.FOLLOWING)
        if moving.is_active:
            if partition not in partitioning.running and not cycle.waiting:  # waiting records have older routes
                report(Stage.RUNNING)
            if moving.is_settled():
                moving.note_settled()
                report(Stage.SETTLED)
