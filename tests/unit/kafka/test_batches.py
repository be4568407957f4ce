"""The record batches of a transaction: how they are built, and how large they get."""

from __future__ import annotations

from typing import Any

import pytest

from light_scheduler.kafka.batches import MAX_BATCH_BYTES, RecordBatches
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.model import Entry, Once, Progress, Schedule, Target

AT = 1_767_225_600_000
T0, T1, OTHER = ("t", 0), ("t", 1), ("other", 0)


def entry(id: str) -> Entry:
    return Entry(Schedule("acme", id, 1, Once(AT), Target("t"), b"x", [], 0, 7, AT), Progress(AT, 7))


def refusing(topic: str, error: Exception) -> Any:
    return lambda to, records: error if to == topic else None


# -- building ---------------------------------------------------------------------------------------------------------


async def test_records_arrive_byte_for_byte_in_the_order_they_were_added(producer: Any) -> None:
    batches = RecordBatches(AT)
    batches.add(T0, b"k", b"v", [("h", b"\xff"), ("h", None), ("é", b"")])
    batches.add(T1, None, b"\x00")
    batches.add(T0, b"", None)
    await batches.send(producer)
    assert [tuple(record) for record in producer.to("t") if record.partition == 0] == [
        ("t", 0, b"k", b"v", [("h", b"\xff"), ("h", None), ("é", b"")], AT),
        ("t", 0, b"", None, [], AT),
    ]
    assert [tuple(record) for record in producer.to("t") if record.partition == 1] == [("t", 1, None, b"\x00", [], AT)]


async def test_records_of_a_partition_share_a_batch(producer: Any) -> None:
    batches = RecordBatches(AT)
    for _ in range(100):
        batches.add(T0, b"k", b"v")
    await batches.send(producer)
    assert len(producer.batches) == 1
    assert len(producer.records) == 100


async def test_a_full_batch_rolls_over_and_none_is_larger_than_its_limit(producer: Any) -> None:
    batches, limit = RecordBatches(AT), 1_000
    values = [b"%04d" % number * 25 for number in range(50)]
    for value in values:
        batches.add(T0, None, value, limit=limit)
    await batches.send(producer)
    assert len(producer.batches) > 1
    assert all(len(data) <= limit for _, data in producer.batches)
    assert [record.value for record in producer.records] == values


async def test_no_batch_of_several_records_is_larger_than_what_is_sent_at_once(producer: Any) -> None:
    batches = RecordBatches(AT)
    for _ in range(4):
        batches.add(T0, None, b"x" * 300_000, limit=100_000_000)
    await batches.send(producer)
    assert [len(data) <= MAX_BATCH_BYTES for _, data in producer.batches] == [True, True]


async def test_a_topic_that_takes_larger_records_gets_them(producer: Any) -> None:
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x" * (2 * MAX_BATCH_BYTES), limit=3 * MAX_BATCH_BYTES)
    await batches.send(producer)
    assert len(producer.records[0].value) == 2 * MAX_BATCH_BYTES


@pytest.mark.parametrize("size", [0, 1, 60, 500, 70_000])
async def test_a_record_is_taken_if_its_batch_is_as_large_as_the_limit_and_not_if_it_is_a_byte_larger(
    producer: Any, size: int
) -> None:
    record: Any = (b"key", b"x" * size, [("h", b"v"), ("n", None)])
    batches = RecordBatches(AT)
    batches.add(T0, *record)
    await batches.send(producer)
    ((_, data),) = producer.batches

    exact = RecordBatches(AT)
    exact.add(T0, *record, limit=len(data))
    with pytest.raises(RecordTooLargeError, match=f"has {len(data)} bytes; topic t takes at most {len(data) - 1}"):
        RecordBatches(AT).add(T0, *record, limit=len(data) - 1)


async def test_a_record_that_is_too_large_leaves_the_batches_as_they_were(producer: Any) -> None:
    batches = RecordBatches(AT)
    batches.add(T0, None, b"before", limit=200)
    with pytest.raises(RecordTooLargeError):
        batches.add(T0, None, b"x" * 300, limit=200, origin=entry("large"))
    batches.add(T0, None, b"after", limit=200)
    await batches.send(producer)
    assert [record.value for record in producer.records] == [b"before", b"after"]


async def test_topics_under_suspicion_get_a_batch_for_each_record(producer: Any) -> None:
    batches = RecordBatches(AT, one_by_one={"t"})
    for number in range(3):
        batches.add(T0, None, b"%d" % number)
        batches.add(OTHER, None, b"%d" % number)
    await batches.send(producer)
    assert [target for target, _ in producer.batches].count(T0) == 3
    assert [target for target, _ in producer.batches].count(OTHER) == 1
    assert [record.value for record in producer.to("t")] == [b"0", b"1", b"2"]


# -- sending ----------------------------------------------------------------------------------------------------------


async def test_the_offset_after_the_last_record_of_each_partition_comes_back(producer: Any) -> None:
    producer.ends[T0] = 40
    batches = RecordBatches(AT)
    for _ in range(30):
        batches.add(T0, None, b"x" * 100, limit=1_000)
    batches.add(OTHER, None, b"x")
    assert await batches.send(producer) == {T0: 70, OTHER: 1}
    assert await RecordBatches(AT).send(producer) == {}


# -- limits and places ------------------------------------------------------------------------------------------------


async def test_a_record_is_held_to_what_its_own_topic_takes(producer: Any) -> None:
    limits = {"t": 300, "other": 2_000}
    batches = RecordBatches(AT, limit_of=limits.__getitem__)
    batches.add(OTHER, None, b"x" * 500)
    with pytest.raises(RecordTooLargeError, match="topic t takes at most 300"):
        batches.add(T0, None, b"x" * 500)
    for _ in range(4):
        batches.add(T0, None, b"x" * 100)
    await batches.send(producer)
    assert [len(data) <= 300 for target, data in producer.batches if target == T0] == [True, True]


def test_the_places_are_those_of_all_records_each_once() -> None:
    batches = RecordBatches(AT, one_by_one={"other"})
    for target in (T0, OTHER, T1, T0, OTHER):
        batches.add(target, None, b"x")
    assert sorted(batches.places) == [OTHER, T0, T1]
