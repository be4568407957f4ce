"""Metrics by tenant, of as many tenants as a time series database can bear: from counts of tables, without a scan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from .cluster import Tables
from .families import PREFIX

MOST_TENANTS = 100
"""Tenants of a worker that have series of their own: those with the most schedules."""


class TenantCollector(Collector):
    """How many schedules tenants have in this worker's lanes."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def describe(self) -> list[Metric]:
        """Return nothing: that keeps registration from collecting."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        counts: Counter[str] = Counter()
        for table in self._tables.tables().values():
            for group, count in table.counts.totals().items():
                counts[group.tenant] += count
        largest = counts.most_common(MOST_TENANTS)
        pending = GaugeMetricFamily(
            PREFIX + "tenant_pending",
            f"Schedules held, of the {MOST_TENANTS} tenants that have most.",
            labels=("tenant",),
        )
        for tenant, count in largest:
            pending.add_metric([tenant], count)
        yield pending
        others = counts.total() - sum(count for _, count in largest)
        yield GaugeMetricFamily(PREFIX + "other_tenants_pending", "Schedules held, of all other tenants.", value=others)
