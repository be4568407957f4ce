"""Metrics of pending schedules, by state and by tenant, from counts of tables, without a scan.

The number of tenants with their own series is limited, for the time series database.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.model import State
from light_scheduler.web.interfaces import Tables
from light_scheduler.web.limits.largest import Largest
from light_scheduler.web.limits.slices import SHORT_REST, LoopTime, pieces

from .families import PREFIX

MOST_TENANTS = 100
"""Number of tenants of a worker with their own series: those with the most schedules."""


class TenantCollector(Collector):
    """The number of schedules in this worker's lanes, by state and by tenant, as of the last `count`."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._largest: list[tuple[str, int]] = []
        self._others = 0
        self._states: Counter[State] = Counter()
        self._counting = asyncio.Lock()
        self._begun = 0
        self._ended = 0
        """The number of the last completed count."""

    async def count(self) -> None:
        """Add up the counts of the tables, slice by slice: there can be very many tenants.

        One count runs at a time. Requests that arrive meanwhile share the next one.
        """
        begun = self._begun
        async with self._counting:
            if self._ended > begun:
                return
            self._begun = number = self._begun + 1
            await self._count()
            self._ended = number

    async def _count(self) -> None:
        counts: Counter[str] = Counter()
        states: Counter[State] = Counter()
        largest: Largest[str] = Largest(MOST_TENANTS)
        async with LoopTime(rest=SHORT_REST) as time:
            for table in self._tables.tables().values():
                for groups in pieces(table.counts.each_total()):
                    for group, count in groups:
                        counts[group.tenant] += count
                        states[group.state] += count
                    if time.slice_is_over():
                        await time.rest()
            for tenants in pieces(iter(counts.items())):
                largest.add(tenants)
                if time.slice_is_over():
                    await time.rest()
        self._largest = largest.found()
        self._states = states
        self._others = counts.total() - sum(count for _, count in self._largest)

    def describe(self) -> list[Metric]:
        """Return nothing, so that registration does not collect."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        pending = GaugeMetricFamily(
            PREFIX + "tenant_pending",
            f"Schedules held, of the {MOST_TENANTS} tenants that have most.",
            labels=("tenant",),
        )
        for tenant, count in self._largest:
            pending.add_metric([tenant], count)
        yield pending
        by_state = GaugeMetricFamily(PREFIX + "state_pending", "Schedules held, by state.", labels=("state",))
        for state in get_args(State):
            by_state.add_metric([state], self._states[state])
        yield by_state
        yield GaugeMetricFamily(
            PREFIX + "other_tenants_pending", "Schedules held, of all other tenants.", value=self._others
        )
