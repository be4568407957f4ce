"""The metrics that workers expose, by the names that Prometheus gets."""

from __future__ import annotations

from collections.abc import Mapping

from light_scheduler.clock import SystemClock
from light_scheduler.delays import Delays
from light_scheduler.lanes.context.status import LaneStatus, TargetStatus
from light_scheduler.lanes.context.tenant_firings import TenantFirings
from light_scheduler.lanes.context.topic_totals import TopicTotals
from light_scheduler.settings import Settings
from light_scheduler.tables.status import StandbyStatus
from light_scheduler.tables.views import Lane, ReadableTable
from light_scheduler.web.limits.busy_connections import BusyConnections
from light_scheduler.web.metrics.connections import ConnectionCollector
from light_scheduler.web.metrics.delays import DelayCollector
from light_scheduler.web.metrics.lanes import LaneCollector
from light_scheduler.web.metrics.tenants import TenantCollector


class NoLanes:
    def tables(self) -> Mapping[Lane, ReadableTable]:
        return {}

    async def catch_up(self) -> set[tuple[str, int]]:
        return set()

    def status(self) -> list[LaneStatus]:
        return []

    def targets(self) -> list[TargetStatus]:
        return []

    def standbys(self) -> list[StandbyStatus]:
        return []

    def tenant_firings(self) -> TenantFirings:
        return TenantFirings()

    def topic_totals(self) -> Mapping[str, TopicTotals]:
        return {}


def exposed_metrics() -> set[str]:
    """Return the names of all metrics that there are."""
    collectors = (
        LaneCollector(NoLanes(), (), app_id="app", version="1"),
        TenantCollector(NoLanes()),
        DelayCollector(Delays(Settings(), SystemClock())),
        ConnectionCollector(BusyConnections(1)),
    )
    collected = [metric for collector in collectors for metric in collector.collect()]
    return {metric.name + {"counter": "_total", "info": "_info"}.get(metric.type, "") for metric in collected}
