"""Prometheus metrics of the delay rules at work on this worker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from light_scheduler.delays import DelayLaneStatus
from light_scheduler.worker.status import LATENESS_BOUNDS_MS, RUNNING, Lateness

from .cluster import Delays

PREFIX = "light_scheduler_"
_LABELS = ("rule", "source", "partition")
_BOUNDS = [*(str(bound / 1_000) for bound in LATENESS_BOUNDS_MS), "+Inf"]

_GAUGES: tuple[tuple[str, str, Callable[[DelayLaneStatus], float | None]], ...] = (
    ("delay_running", "1 if the rule works on the partition.", lambda lane: lane.state == RUNNING),
    ("delay_waiting", "1 if records are due and cannot be forwarded.", lambda lane: lane.waiting),
    ("delay_lag", "Offsets that wait in the source, due or not.", lambda lane: lane.lag),
    ("delay_position", "Offset of the next record to forward.", lambda lane: lane.position),
    (
        "delay_next_due_timestamp_seconds",
        "When the next record is due.",
        lambda lane: None if lane.next_due is None else lane.next_due / 1_000,
    ),
)

_COUNTERS: tuple[tuple[str, str, Callable[[DelayLaneStatus], int]], ...] = (
    ("delay_forwarded", "Records forwarded.", lambda lane: lane.forwarded),
    ("delay_dead_letters", "Records that the target does not take.", lambda lane: lane.dead_letters),
    ("delay_expired", "Offsets that retention took away before they were due.", lambda lane: lane.expired),
    ("delay_restarts", "Times a rule started again after a failure.", lambda lane: lane.restarts),
)


def buckets_of(lateness: Lateness) -> list[tuple[str, float]]:
    """Return a histogram's cumulative buckets with their bounds in seconds."""
    return list(zip(_BOUNDS, map(float, accumulate(lateness.counts)), strict=True))


class DelayCollector(Collector):
    """Labels are the rule, its source topic and the partition."""

    def __init__(self, delays: Delays) -> None:
        self._delays = delays

    def describe(self) -> list[Metric]:
        """Return nothing: that keeps registration from collecting."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        lanes = self._delays.lanes()
        for name, help, gauge_of in _GAUGES:
            gauge = GaugeMetricFamily(PREFIX + name, help, labels=_LABELS)
            for lane in lanes:
                value = gauge_of(lane)
                if value is not None:
                    gauge.add_metric(_labels(lane), value)
            yield gauge
        for name, help, count_of in _COUNTERS:
            counter = CounterMetricFamily(PREFIX + name, help, labels=_LABELS)
            for lane in lanes:
                counter.add_metric(_labels(lane), count_of(lane))
            yield counter
        lateness = HistogramMetricFamily(
            PREFIX + "delay_lateness_seconds", "Commit of a forwarded record minus its due.", labels=_LABELS
        )
        for lane in lanes:
            lateness.add_metric(_labels(lane), buckets_of(lane.lateness), lane.lateness.sum_ms / 1_000)
        yield lateness


def _labels(lane: DelayLaneStatus) -> list[str]:
    return [lane.rule, lane.source, str(lane.partition)]
