"""Metrics in Prometheus' protobuf format, the only one of its default formats with native histograms.

https://prometheus.io/docs/instrumenting/exposition_formats/#protobuf-format

Each family is a message after its length. Of `io.prometheus.client` (metrics.proto), these fields are written:

MetricFamily             name 1, help 2, type 3, metric 4
Metric                   label 1, gauge 2, counter 3, histogram 7
LabelPair                name 1, value 2
Gauge, Counter           value 1
Histogram                sample_count 1, sample_sum 2, bucket 3, schema 5, zero_threshold 6, zero_count 7,
                         positive_span 12, positive_delta 13
Bucket                   cumulative_count 1, upper_bound 2
BucketSpan               offset 1, length 2
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from itertools import groupby

from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import NativeHistogram, Sample

from .families import LatenessFamily

MEDIA_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

_COUNTER, _GAUGE, _HISTOGRAM = 0, 1, 4
"""Types of families."""

_VARINT, _DOUBLE, _BYTES = 0, 1, 2
"""Wire types."""

_LE = "le"


def generate_protobuf(collector: Collector) -> bytes:
    """Return all metrics of a collector."""
    families = (family for metric in collector.collect() if metric.samples for family in _families(metric))
    return b"".join(_varint(len(family)) + family for family in families)


def _families(metric: Metric) -> Iterator[bytes]:
    """Yield a family for each name among a metric's samples; the samples of a histogram are one family."""
    if metric.type == "histogram":
        yield _family(metric.name, metric.documentation, _HISTOGRAM, _histograms(metric))
        return
    for name, samples in groupby(metric.samples, lambda sample: sample.name):
        type, field = (_COUNTER, 3) if metric.type == "counter" and name.endswith("_total") else (_GAUGE, 2)
        metrics = (_labels(each.labels) + _message(field, _double(1, each.value)) for each in samples)
        yield _family(name, metric.documentation, type, metrics)


def _family(name: str, help: str, type: int, metrics: Iterator[bytes]) -> bytes:
    head = _text(1, name) + _text(2, help) + _number(3, type)
    return head + b"".join(_message(4, metric) for metric in metrics)


def _histograms(metric: Metric) -> Iterator[bytes]:
    """Yield a histogram for each set of labels; its samples stand together."""
    for labels, samples in groupby(metric.samples, _labels_of_histogram):
        by_name: dict[str, list[Sample]] = {}
        for sample in samples:
            by_name.setdefault(sample.name.removeprefix(metric.name), []).append(sample)
        body = _number(1, int(by_name["_count"][0].value)) + _double(2, by_name["_sum"][0].value)
        for bucket in by_name["_bucket"]:
            body += _message(3, _number(1, int(bucket.value)) + _double(2, float(bucket.labels[_LE])))
        if isinstance(metric, LatenessFamily):
            body += _native(metric.native_of(labels))
        yield _labels(labels) + _message(7, body)


def _labels_of_histogram(sample: Sample) -> dict[str, str]:
    return {name: value for name, value in sample.labels.items() if name != _LE}


def _native(histogram: NativeHistogram) -> bytes:
    spans = [_signed(1, span.offset) + _number(2, span.length) for span in histogram.pos_spans or ()]
    return b"".join(
        [
            _signed(5, histogram.schema),
            _double(6, histogram.zero_threshold),
            _number(7, int(histogram.zero_count)),
            *(_message(12, span) for span in spans),
            *(_signed(13, delta) for delta in histogram.pos_deltas or ()),
        ]
    )


def _labels(labels: Mapping[str, str]) -> bytes:
    return b"".join(_message(1, _text(1, name) + _text(2, value)) for name, value in sorted(labels.items()))


def _varint(number: int) -> bytes:
    """Return a number in groups of seven bits, lowest first; every byte but the last has its highest bit set."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number)


def _signed(field: int, number: int) -> bytes:
    return _number(field, number << 1 if number >= 0 else (-number << 1) - 1)  # zigzag


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | _DOUBLE) + struct.pack("<d", value)


def _message(field: int, body: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(body)) + body


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())
