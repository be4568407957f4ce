"""Lateness as a native histogram, in Prometheus' protobuf format."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.parser import text_string_to_metric_families
from support.web_cluster.schedules import TOPIC

from light_scheduler.model.lateness import NATIVE_FROM_MS, NATIVE_SCHEMA, Lateness
from light_scheduler.web.metrics.families import LatenessFamily
from light_scheduler.web.metrics.protobuf import MEDIA_TYPE

WRITTEN = MEDIA_TYPE.replace(" ", "")
WANTED = {
    "2.42": f"{WRITTEN},application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5,*/*;q=0.1",
    "3.5": f"{WRITTEN};escaping=allow-utf-8;q=0.6,text/plain;version=1.0.0;q=0.3,*/*;q=0.2",
    "weight before a parameter": f"{WRITTEN};q=0.6;escaping=allow-utf-8,text/plain;q=0.3",
}
"""What versions of Prometheus that take native histograms ask for, and what means the same."""

OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;q=0.5,*/*;q=0.1"
UNWANTED = ["", "*/*", "text/plain", OPENMETRICS, f"{WRITTEN};q=0"]

Message = dict[int, list[Any]]


def fields_of(data: bytes) -> Message:
    """Return the fields of a message by their numbers; bytes are messages or texts."""
    found: Message = {}
    value: Any
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        else:
            assert key & 7 == 2
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    assert at == len(data)
    return found


def varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 0x80:
            return number, at


def signed(number: int) -> int:
    return number >> 1 ^ -(number & 1)


def families_of(body: bytes) -> Iterator[tuple[str, int, list[Message]]]:
    """Yield the name, the type and the metrics of each family."""
    at = 0
    while at < len(body):
        size, at = varint(body, at)
        family, at = fields_of(body[at : at + size]), at + size
        yield family[1][0].decode(), family[3][0], [fields_of(metric) for metric in family[4]]


def labels_of(metric: Message) -> dict[str, str]:
    pairs = [fields_of(pair) for pair in metric.get(1, [])]
    return {pair[1][0].decode(): pair[2][0].decode() for pair in pairs}


def buckets_of(histogram: Message) -> dict[int, int]:
    """Return the counts of a native histogram by the number of their bucket."""
    deltas = iter(histogram.get(13, []))
    found, bucket, count = {}, 0, 0
    for span in map(fields_of, histogram.get(12, [])):
        bucket += signed(span[1][0])
        for _ in range(span[2][0]):
            count += signed(next(deltas))
            found[bucket] = count
            bucket += 1
    assert next(deltas, None) is None
    return found


@given(st.lists(st.integers(0, 10**9), max_size=50))
def test_each_firing_is_in_the_bucket_that_its_lateness_belongs_to(late: list[int]) -> None:
    lateness = Lateness()
    for ms in late:
        lateness.observe(ms, 2)
    for bucket, count in lateness.native.items():
        low, high = (2 ** (each / 2**NATIVE_SCHEMA) for each in (bucket - 1, bucket))
        assert count == 2 * sum(low < ms / 1_000 <= high for ms in late if ms > NATIVE_FROM_MS)
    family = LatenessFamily("a", "b", ["lane"])
    family.add_lateness(["x"], lateness)
    native = family.native_of({"lane": "x", "process": "0"})
    assert native.count_value == native.zero_count + sum(lateness.native.values()) == 2 * len(late)


def test_bounds_that_are_powers_of_two_are_in_their_own_buckets() -> None:
    for ms, bucket in ((125, -24), (126, -23), (1_000, 0), (1_001, 1), (2_000, 8), (2_001, 9)):
        lateness = Lateness()
        lateness.observe(ms)
        assert lateness.native == {bucket: 1}


@pytest.mark.parametrize("accept", WANTED.values(), ids=WANTED)
async def test_who_wants_protobuf_gets_native_histograms_beside_all_else(workers: Any, accept: str) -> None:
    lateness = Lateness()
    for ms, firings in ((1, 3), (9, 2), (10, 1), (700, 4), (10_000_000, 1)):
        lateness.observe(ms, firings)
    workers[0].lanes.figures = {"lateness": lateness, "firings": 11}
    async with workers[0].client.get("/metrics", headers={"Accept": accept}) as response:
        assert response.headers["Content-Type"] == MEDIA_TYPE
        found = {name: (type, metrics) for name, type, metrics in families_of(await response.read())}
    async with workers[0].client.get("/metrics") as response:
        assert response.headers["Content-Type"] == CONTENT_TYPE_LATEST
        in_text = list(text_string_to_metric_families(await response.text()))
    assert {name for name, (type, _) in found.items() if type == 4} == {
        family.name for family in in_text if family.type == "histogram" and family.samples
    }
    for family in in_text:
        for sample in family.samples if family.type != "histogram" else ():
            type, metrics = found[sample.name]
            (metric,) = (each for each in metrics if labels_of(each) == sample.labels)
            assert type == (0 if family.type == "counter" else 1)
            if not sample.name.startswith("process_"):  # these go on meanwhile
                assert fields_of(metric[3 if type == 0 else 2][0])[1][0] == sample.value

    type, metrics = found["light_scheduler_lateness_seconds"]
    (metric,) = (each for each in metrics if labels_of(each) == {"topic": TOPIC, "partition": "0"})
    histogram = fields_of(metric[7][0])
    assert (histogram[1], histogram[2]) == ([11], [pytest.approx(10_002.831)])
    buckets = [fields_of(bucket) for bucket in histogram[3]]
    assert [(each[2][0], each[1][0]) for each in buckets if each[2][0] in (0.001, 0.01, 1, float("inf"))] == [
        *((0.001, 3), (0.01, 6), (1, 10), (float("inf"), 11))
    ]
    assert (signed(histogram[5][0]), histogram[6], histogram[7]) == (NATIVE_SCHEMA, [0.001], [3])
    assert buckets_of(histogram) == lateness.native == {-54: 2, -53: 1, -4: 4, 107: 1}


@pytest.mark.parametrize("accept", UNWANTED)
async def test_all_others_get_text(workers: Any, accept: str) -> None:
    async with workers[0].client.get("/metrics", headers={"Accept": accept}) as response:
        assert response.headers["Content-Type"] == CONTENT_TYPE_LATEST
        assert b"native" not in await response.read()
