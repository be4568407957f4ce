from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import (
    InvalidTopicError,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownError,
)

from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.worker.batches import MAX_BATCH_BYTES, RecordBatches, RecordsRefusedError, RecordTooLargeError

AT = 1_767_225_600_000
T0, T1, OTHER = ("t", 0), ("t", 1), ("other", 0)


def entry(id: str) -> Entry:
    return Entry(Schedule("acme", id, 1, Once(AT), Target("t"), b"x", [], 0, 7, AT), Progress(AT, 7))


def refusing(topic: str, error: Exception) -> Any:
    return lambda to, records: error if to == topic else None


async def everything_else() -> None:
    """Let the other tasks go as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


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


async def test_sending_ends_only_when_every_answer_has_come(producer: Any) -> None:
    producer.holds = True
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x")
    batches.add(T1, None, b"x")
    sending = asyncio.create_task(batches.send(producer))
    await everything_else()
    assert len(producer.waiting) == 2
    last = producer.waiting.pop()
    producer.answer()
    await everything_else()
    assert not sending.done()
    producer.waiting.append(last)
    producer.answer()
    assert await sending == {T0: 1, T1: 1}


async def test_when_one_batch_fails_every_other_answer_is_read_all_the_same(producer: Any) -> None:
    producer.holds = True
    producer.refuse = refusing("t", ProducerFenced())
    batches = RecordBatches(AT)
    for target in (T0, OTHER, T1):
        batches.add(target, None, b"x")
    sending = asyncio.create_task(batches.send(producer))
    await everything_else()
    assert len(producer.waiting) == 3
    first = producer.waiting.pop(0)
    later = list(producer.waiting)
    producer.waiting[:] = [first]
    producer.answer()
    await everything_else()
    assert not sending.done()
    producer.waiting[:] = later
    producer.answer()
    with pytest.raises(ProducerFenced):
        await sending
    # An error that nobody read would be reported by the loop, long after: asyncio notes the reading here.
    assert not any(future._log_traceback for future, _ in [first, *later])


@pytest.mark.parametrize(
    ("error", "is_certain"),
    [
        (MessageSizeTooLargeError(), False),
        (RecordListTooLargeError(), False),
        (UnknownError(), False),
        (InvalidTopicError(), True),
        (TopicAuthorizationFailedError(), True),
    ],
)
async def test_a_refused_batch_names_the_firings_in_it(producer: Any, error: KafkaError, is_certain: bool) -> None:
    producer.refuse = refusing("t", error)
    batches, culprits = RecordBatches(AT), [entry("a"), entry("b")]
    batches.add(OTHER, None, b"x", origin=entry("innocent"))
    for culprit in culprits:
        batches.add(T0, None, b"x", origin=culprit)
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    assert caught.value.topic == "t"
    assert caught.value.cause is error
    assert caught.value.culprits == culprits
    assert caught.value.is_certain is is_certain


async def test_a_refused_batch_of_one_is_certain(producer: Any) -> None:
    producer.refuse = lambda topic, records: MessageSizeTooLargeError() if records[0].value == b"bad" else None
    batches = RecordBatches(AT, one_by_one={"t"})
    for id in ("good", "bad", "ugly"):
        batches.add(T0, None, id.encode(), origin=entry(id))
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    assert caught.value.culprits == [entry("bad")]
    assert caught.value.is_certain


async def test_refusals_of_one_transaction_are_told_together(producer: Any) -> None:
    producer.refuse = lambda topic, records: MessageSizeTooLargeError() if records[0].value != b"good" else None
    batches = RecordBatches(AT, one_by_one={"t"})
    for target, id, value in ((T0, "a", b"bad"), (T0, "b", b"bad"), (T1, "c", b"bad"), (OTHER, "d", b"good")):
        batches.add(target, None, value, origin=entry(id))
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    # The second one of a partition was not sent any more: the broker would take it for out of order.
    assert [refused.culprits for refused in caught.value.of_users] == [[entry("a")], [entry("c")]]


@pytest.mark.parametrize("consequence", [InvalidTxnState(), AssertionError("not in a transaction")])
async def test_a_topic_that_may_not_be_written_to_outweighs_what_follows_from_it(
    producer: Any, consequence: Exception
) -> None:
    denied = TopicAuthorizationFailedError("other")
    producer.refuse = lambda topic, records: denied if topic == "other" else consequence
    batches = RecordBatches(AT)
    for target in (T0, OTHER, T1):
        batches.add(target, None, b"x", origin=entry("a"))
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    assert caught.value.topic == "other"
    assert caught.value.is_of_topic
    assert caught.value.of_users == [caught.value]


async def test_a_failure_of_the_producer_outweighs_a_refusal(producer: Any) -> None:
    fenced = ProducerFenced()
    producer.refuse = lambda topic, records: fenced if topic == "other" else MessageSizeTooLargeError()
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x", origin=entry("a"))
    batches.add(OTHER, None, b"x")
    with pytest.raises(ProducerFenced):
        await batches.send(producer)


async def test_a_refusal_of_records_of_ours_names_no_culprit(producer: Any) -> None:
    producer.refuse = refusing("t", MessageSizeTooLargeError())
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x")
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    assert caught.value.topic == "t"
    assert caught.value.culprits == []
