"""What brokers answer to the batches of a transaction: refusals and silence, and whom they concern."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import CorruptRecordException as CorruptRecordError
from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidRequestError,
    InvalidTimestampError,
    InvalidTopicError,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from light_scheduler.kafka import batches as module
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.refusals import RecordsRefusedError, TargetsStalledError
from light_scheduler.model import Entry, Outcome, Result

from .test_batches import AT, OTHER, T0, T1, entry, refusing


async def everything_else() -> None:
    """Let the other tasks go as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


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


# -- what a broker says of a user's partition -------------------------------------------------------------------------

OF_PARTITION = [NotEnoughReplicasError, UnknownTopicOrPartitionError, InvalidRequestError, CorruptRecordError]
OF_PRODUCER = [
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
]


@pytest.mark.parametrize("error", OF_PARTITION)
async def test_whatever_a_users_partition_answers_with_concerns_its_own_firings_only(
    producer: Any, error: type[KafkaError]
) -> None:
    producer.refuse = refusing("t", error())
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x", origin=entry("a"))
    batches.add(OTHER, None, b"x")
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    assert (caught.value.place, caught.value.culprits, caught.value.may_pass) == (T0, [entry("a")], True)


@pytest.mark.parametrize("error", OF_PARTITION)
async def test_what_a_partition_of_ours_answers_with_fails_the_transaction(
    producer: Any, error: type[KafkaError]
) -> None:
    producer.refuse = refusing("t", error())
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x")
    with pytest.raises(error):
        await batches.send(producer)


async def test_what_a_partition_answers_with_that_can_be_left_out_is_not_the_failure_of_the_others(
    producer: Any,
) -> None:
    producer.refuse = refusing("t", NotEnoughReplicasError())
    batches = RecordBatches(AT, can_wait={"t"})
    batches.add(T0, None, b"x")
    batches.add(OTHER, None, b"x")
    with pytest.raises(RecordsRefusedError) as caught:
        await batches.send(producer)
    assert (caught.value.place, caught.value.culprits, caught.value.of_users) == (T0, [], [])


@pytest.mark.parametrize("error", OF_PRODUCER)
async def test_what_is_said_of_the_producer_fails_the_transaction_whichever_partition_says_it(
    producer: Any, error: type[KafkaError]
) -> None:
    producer.refuse = refusing("t", error())
    batches = RecordBatches(AT, can_wait={"t"})
    batches.add(T0, None, b"x")
    with pytest.raises(error):
        await batches.send(producer)


@pytest.mark.parametrize("error", OF_PRODUCER)
async def test_what_is_said_of_the_producer_is_held_against_no_firing(producer: Any, error: type[KafkaError]) -> None:
    producer.refuse = refusing("t", error())
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x", origin=entry("a"))
    with pytest.raises(error):
        await batches.send(producer)


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (UnknownError, True),
        (NotEnoughReplicasError, True),
        (MessageSizeTooLargeError, False),
        (InvalidTimestampError, False),
        (TopicAuthorizationFailedError, False),
    ],
)
def test_a_refusal_may_pass_unless_it_is_about_the_records_or_the_right_to_write(
    error: type[KafkaError], may_pass: bool
) -> None:
    assert RecordsRefusedError("t", error(), [entry("a")]).may_pass is may_pass


# -- partitions that do not answer ------------------------------------------------------------------------------------

PATIENCE_S = 0.04
ANSWER = Result("schedule", "acme", "a", Outcome.SCHEDULED, partition=0, offset=7)


def give(producer: Any, *targets: tuple[str, int]) -> None:
    """Have some partitions answer."""
    kept = [item for item in producer.waiting if (item[1].topic, item[1].partition) not in targets]
    producer.waiting[:] = [item for item in producer.waiting if item not in kept]
    producer.answer()
    producer.waiting[:] = kept


async def test_users_partitions_that_do_not_answer_in_time_are_named_and_those_that_did_are_not(producer: Any) -> None:
    producer.holds = True
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x", origin=entry("a"))
    batches.add(T1, None, b"x", origin=entry("b"))
    batches.add(OTHER, None, b"x", origin=ANSWER)
    batches.add(("ours", 0), None, b"x")
    sending = asyncio.create_task(batches.send(producer, PATIENCE_S))
    await everything_else()
    give(producer, T1)
    with pytest.raises(TargetsStalledError, match=r"no answer for 0.04 s from t-0, other-0$") as caught:
        await sending
    assert (caught.value.places, caught.value.of_answers) == ([T0], [OTHER])


async def test_partitions_that_can_be_left_out_are_named_too_and_are_none_of_answers_only(producer: Any) -> None:
    producer.holds = True
    batches = RecordBatches(AT, can_wait={"t"})
    batches.add(T0, None, b"x")
    batches.add(("ours", 0), None, b"x")
    with pytest.raises(TargetsStalledError, match=r"no answer for 0.04 s from t-0$") as caught:
        await batches.send(producer, PATIENCE_S)
    assert (caught.value.places, caught.value.of_answers) == ([T0], [])


async def test_a_partition_with_firings_and_answers_is_one_of_firings(producer: Any) -> None:
    producer.holds = True
    batches = RecordBatches(AT, one_by_one={"t"})
    batches.add(T0, None, b"x", origin=ANSWER)
    batches.add(T0, None, b"x", origin=entry("a"))
    with pytest.raises(TargetsStalledError) as caught:
        await batches.send(producer, PATIENCE_S)
    assert (caught.value.places, caught.value.of_answers) == ([T0], [])


@pytest.mark.parametrize(("patience_s", "origin"), [(PATIENCE_S, None), (None, entry("a"))])
async def test_partitions_of_ours_are_waited_for_and_all_are_if_nobody_is_impatient(
    producer: Any, patience_s: float | None, origin: Entry | None
) -> None:
    producer.holds = True
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x", origin=origin)
    sending = asyncio.create_task(batches.send(producer, patience_s))
    await asyncio.wait([sending], timeout=4 * PATIENCE_S)
    assert not sending.done()
    producer.answer()
    assert await sending == {T0: 1}


async def test_a_partition_that_keeps_answering_may_take_longer_for_all_of_it(
    producer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time that counts goes on before each of its answers only, by less than the patience."""
    now = 0.0
    loop = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "get_running_loop": lambda: loop}))
    producer.holds = True
    batches = RecordBatches(AT, one_by_one={"t"})
    for number in range(8):
        batches.add(T0, None, b"%d" % number, origin=entry("a"))
    sending = asyncio.create_task(batches.send(producer, PATIENCE_S))
    for _ in range(8):
        await everything_else()
        now += PATIENCE_S / 5
        await asyncio.wait([sending], timeout=PATIENCE_S)
        producer.answer()
    assert await sending == {T0: 8}


async def test_a_partition_whose_broker_told_the_producer_to_wait_has_its_time_afterwards(producer: Any) -> None:
    producer.holds, throttled = True, {T0}
    batches = RecordBatches(AT)
    batches.add(T0, None, b"x", origin=entry("a"))
    sending = asyncio.create_task(batches.send(producer, PATIENCE_S, is_excused=throttled.__contains__))
    await asyncio.wait([sending], timeout=4 * PATIENCE_S)
    assert not sending.done()
    throttled.clear()
    with pytest.raises(TargetsStalledError):
        await sending


async def test_nothing_more_is_sent_after_a_partition_has_not_answered(producer: Any) -> None:
    producer.holds = True
    batches = RecordBatches(AT, one_by_one={"t"})
    for number in range(2):
        batches.add(T0, None, b"%d" % number, origin=entry("a"))
    with pytest.raises(TargetsStalledError):
        await batches.send(producer, PATIENCE_S)
    producer.waiting = [item for item in producer.waiting if not item[0].done()]
    producer.answer()
    await everything_else()
    assert [record.value for record in producer.records] == [b"0"]
