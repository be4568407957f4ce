"""Families of Prometheus metrics with one sample per lane, made from the status of each lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.samples import BucketSpan, NativeHistogram

from light_scheduler.model.lateness import LATENESS_BOUNDS_MS, NATIVE_FROM_MS, NATIVE_SCHEMA, Lateness

PREFIX = "light_scheduler_"
_BOUNDS = [*(str(bound / 1_000) for bound in LATENESS_BOUNDS_MS), "+Inf"]

L = TypeVar("L")

Gauges = tuple[tuple[str, str, Callable[[L], float | None]], ...]
"""Name without the prefix, help, and a function from a lane to its value; None if it has none."""
Counters = tuple[tuple[str, str, Callable[[L], int]], ...]
"""Name without the prefix and `_total`, help, and a function from a lane to its count."""


@dataclass(frozen=True)
class LaneFamilies(Generic[L]):
    """`labels` are the names of the values that `labels_of` returns for a lane."""

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
        histogram = LatenessFamily(PREFIX + name, help, self.labels)
        for lane in lanes:
            histogram.add_lateness(self.labels_of(lane), lateness_of(lane))
        return histogram


class LatenessFamily(HistogramMetricFamily):
    """A histogram with classic samples. The native ones are kept beside them, for formats that support them."""

    def __init__(self, name: str, help: str, labels: Sequence[str]) -> None:
        super().__init__(name, help, labels=labels)
        self._names = tuple(labels)
        self._added: dict[tuple[str, ...], Lateness] = {}

    def add_lateness(self, labels: Sequence[str], lateness: Lateness) -> None:
        """Add the counts of one lane."""
        self._added[tuple(labels)] = lateness
        self.add_metric(labels, _buckets_of(lateness), lateness.sum_ms / 1_000)

    def native_of(self, labels: Mapping[str, str]) -> NativeHistogram:
        """Return the native histogram of a lane. `labels` may contain more labels than were added."""
        lateness = self._added[tuple(labels[name] for name in self._names)]
        spans, deltas = _spans_of(lateness.native)
        return NativeHistogram(
            count_value=sum(lateness.counts),
            sum_value=lateness.sum_ms / 1_000,
            schema=NATIVE_SCHEMA,
            zero_threshold=NATIVE_FROM_MS / 1_000,
            zero_count=lateness.counts[0],
            pos_spans=spans,
            pos_deltas=deltas,
        )


def _spans_of(counts: Mapping[int, int]) -> tuple[list[BucketSpan], list[int]]:
    """Return runs of buckets, each with its distance from the end of the run before, and the differences of the
    counts."""
    spans: list[BucketSpan] = []
    deltas, before, end = [], 0, 0
    for bucket, count in sorted(counts.items()):
        if spans and bucket == end:
            spans[-1] = BucketSpan(spans[-1].offset, spans[-1].length + 1)
        else:
            spans.append(BucketSpan(bucket - end, 1))
        deltas.append(count - before)
        before, end = count, bucket + 1
    return spans, deltas


def _buckets_of(lateness: Lateness) -> list[tuple[str, float]]:
    """Return a histogram's cumulative buckets, with their bounds in seconds."""
    return list(zip(_BOUNDS, map(float, accumulate(lateness.counts)), strict=True))
