"""The lanes of a worker, over tables in memory."""

from __future__ import annotations

from typing import Any

from light_scheduler.lanes.context.status import LaneStatus, TargetStatus
from light_scheduler.lanes.context.tenant_firings import TenantFirings
from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.tables import MemoryStore, ScheduleTable
from light_scheduler.tables.status import StandbyStatus

from .schedules import TOPIC


class MemoryLanes:
    """The lanes of one worker."""

    def __init__(self, partitions: list[int]) -> None:
        self.all = {(TOPIC, partition): ScheduleTable(MemoryStore()) for partition in partitions}
        self.states = dict.fromkeys(self.all, "running")
        self.figures: dict[str, Any] = {}
        self.copies: list[StandbyStatus] = []
        self.unavailable: list[TargetStatus] = []
        self.late: set[tuple[str, int]] = set()
        self.firings = TenantFirings()
        self.totals = {TOPIC: TopicTotals()}

    def tables(self) -> dict[tuple[str, int], ScheduleTable]:
        return {lane: table for lane, table in self.all.items() if self.states[lane] == "running"}

    async def catch_up(self) -> set[tuple[str, int]]:
        return self.late

    def targets(self) -> list[TargetStatus]:
        return self.unavailable

    def tenant_firings(self) -> TenantFirings:
        return self.firings

    def topic_totals(self) -> dict[str, TopicTotals]:
        return self.totals

    def standbys(self) -> list[StandbyStatus]:
        return self.copies

    def status(self) -> list[LaneStatus]:
        return [
            LaneStatus(
                topic=topic, partition=partition, state=self.states[topic, partition], pending=table.pending,
                **self.figures,
            )
            for (topic, partition), table in self.all.items()
        ]  # fmt: skip
