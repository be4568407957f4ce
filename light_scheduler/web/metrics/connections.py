"""Prometheus metrics of connections: how many are busy, and how many requests were refused for it, by tenant."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.web.limits.busy_connections import MOST_TENANTS, BusyConnections

from .families import PREFIX


class ConnectionCollector(Collector):
    """The label is the tenant. Several tenants of one token are joined by commas; `*` is a token for all tenants."""

    def __init__(self, busy: BusyConnections) -> None:
        self._busy = busy

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        yield GaugeMetricFamily(
            PREFIX + "busy_connections",
            "Connections whose requests are at work for holders of tokens.",
            value=self._busy.count,
        )
        refused = CounterMetricFamily(
            PREFIX + "tenant_connections_refused",
            f"Requests refused because the tenant kept its share of connections busy, of the first {MOST_TENANTS} "
            "tenants that were refused one.",
            labels=("tenant",),
        )
        for tenant, count in self._busy.refused.items():
            refused.add_metric([tenant], count)
        yield refused
        yield CounterMetricFamily(
            PREFIX + "other_tenants_connections_refused",
            "Requests refused because the tenant kept its share of connections busy, of all other tenants.",
            value=self._busy.others_refused,
        )
