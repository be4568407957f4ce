"""Families of Prometheus metrics that have one sample for each lane, made from what a lane says of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from light_scheduler.lanes.status import LATENESS_BOUNDS_MS, Lateness

PREFIX = "light_scheduler_"
_BOUNDS = [*(str(bound / 1_000) for bound in LATENESS_BOUNDS_MS), "+Inf"]

L = TypeVar("L")

Gauges = tuple[tuple[str, str, Callable[[L], float | None]], ...]
"""Name less the prefix, help, and the figure of a lane; None: it has none."""
Counters = tuple[tuple[str, str, Callable[[L], int]], ...]
"""Name less the prefix and `_total`, help, and the count of a lane."""


@dataclass(frozen=True)
class LaneFamilies(Generic[L]):
    """`labels` are the names of what `labels_of` says of a lane."""

    labels: tuple[str, ...]
    labels_of: Callable[[L], list[str]]
    gauges: Gauges[L]
    counters: Counters[L]

    def of(self, lanes: Sequence[L]) -> Iterator[Metric]:
        """Yield all gauges, then all counters."""
        for name, help, gauge_of in self.gauges:
            gauge = GaugeMetricFamily(PREFIX + name, help, labels=self.labels)
            for lane in lanes:
                value = gauge_of(lane)
                if value is not None:
                    gauge.add_metric(self.labels_of(lane), value)
            yield gauge
        for name, help, count_of in self.counters:
            counter = CounterMetricFamily(PREFIX + name, help, labels=self.labels)
            for lane in lanes:
                counter.add_metric(self.labels_of(lane), count_of(lane))
            yield counter

    def lateness(self, name: str, help: str, lanes: Sequence[L], lateness_of: Callable[[L], Lateness]) -> Metric:
        """Return a histogram of how late all lanes were, in seconds."""
        histogram = HistogramMetricFamily(PREFIX + name, help, labels=self.labels)
        for lane in lanes:
            lateness = lateness_of(lane)
            histogram.add_metric(self.labels_of(lane), _buckets_of(lateness), lateness.sum_ms / 1_000)
        return histogram


def _buckets_of(lateness: Lateness) -> list[tuple[str, float]]:
    """Return a histogram's cumulative buckets with their bounds in seconds."""
    return list(zip(_BOUNDS, map(float, accumulate(lateness.counts)), strict=True))
