"""A lane's producer when targets, or its own transactional id, do not go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, ProducerFenced, TopicAuthorizationFailedError
from support.producing import FakeProducer

from light_scheduler.errors import CycleTimeout, InputInDoubt, TransactionStuck
from light_scheduler.kafka import transactional_producer as module
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.refusals import TargetsStalledError
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.model import Entry, Once, Progress, Schedule, Target

AT = 1_767_225_600_000
PLACE = ("t", 0)
PATIENCE_S = 0.04
INPUT = {TopicPartition("commands", 0): 7}


class Transactions(FakeProducer):
    """A producer with transactions; `steps` are what it was asked to do, `hangs` those that never end.

    Partitions stay to be added while `is_blocked`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.hangs: set[str] = set()
        self.fails: dict[str, Exception] = {}
        self.is_blocked = False
        self.refusal: Exception | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.partitions: dict[str, set[int]] = {}
        self.followed: set[str] = set()
        self.client = SimpleNamespace(
            add_topic=self._add_topic,
            set_topics=self._set_topics,
            close=self._step("close client"),
            force_metadata_update=self._step("ask again"),
            cluster=SimpleNamespace(partitions_for_topic=self.partitions.get),
        )
        self.begin_transaction = self._step("begin")
        self.send_offsets_to_transaction = self._step("offsets")
        self.commit_transaction = self._step("commit")
        self.abort_transaction = self._step("abort")
        self.cut_off = self._step("cut off")
        self._added: set[TopicPartition] = set()
        self._txn_manager = self

    def _step(self, name: str) -> Callable[..., Any]:
        async def step(*_: Any) -> None:
            self.steps.append(name)
            if name in self.hangs:
                await asyncio.Event().wait()
            if name in self.fails:
                raise self.fails[name]

        return step

    async def _add_topic(self, topic: str) -> None:
        self.followed.add(topic)
        await self._step("track")()

    async def _set_topics(self, topics: set[str]) -> None:
        self.followed = set(topics)
        await self._step("track these")()

    def is_throttled(self, _: object) -> bool:
        return False

    def partitions_to_add(self) -> set[Any]:
        return {PLACE} if self.is_blocked else set()

    def maybe_add_partition_to_txn(self, place: TopicPartition) -> None:
        self.steps.append(f"add {place.partition}")
        if self.refusal is not None:
            if not self.ended.done():
                self.ended.set_exception(self.refusal)
        elif not self.is_blocked:
            self._added.add(place)

    def wait_for_transaction_end(self) -> asyncio.Future[None]:
        return self.ended

    @property
    def txn_partitions(self) -> set[TopicPartition]:
        return self._added


@pytest.fixture
async def kafka() -> Transactions:
    return Transactions()


@pytest.fixture
def producer(kafka: Transactions) -> TransactionalProducer:
    clients: Any = SimpleNamespace(transaction_timeout_ms=10_000, producer=lambda transactional_id: kafka)
    return TransactionalProducer(clients, "id")


def batches(topic: str = PLACE[0]) -> RecordBatches:
    found = RecordBatches(AT)
    entry = Entry(Schedule("acme", "a", 1, Once(AT), Target(topic), b"x", [], 0, 7, AT), Progress(AT, 7))
    found.add((topic, PLACE[1]), None, b"x", origin=entry)
    return found


async def test_a_cycle_is_committed_with_its_input_after_every_answer(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    assert await producer.commit(batches(), "g", INPUT) == {PLACE: 1}
    assert kafka.steps == ["track", "begin", "offsets", "commit"]
    assert not producer.is_committing
    await producer.commit(batches(), "g", {})
    assert kafka.steps[4:] == ["begin", "commit"], "the topic is tracked already"


async def test_of_very_many_topics_those_that_were_written_to_last_are_tracked(
    producer: TransactionalProducer, kafka: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TRACKED", 4)
    for number in (0, 1, 2, 0, 3):
        await producer.commit(batches(f"t{number}"), "g", {})
    assert kafka.followed == {"t0", "t1", "t2", "t3"}
    await producer.commit(batches("t4"), "g", {})
    assert kafka.followed == {"t0", "t3", "t4"}
    kafka.steps.clear()
    await producer.commit(batches("t0"), "g", {})
    await producer.commit(batches("t1"), "g", {})
    assert kafka.steps == ["begin", "commit", "track", "begin", "commit"]
    for number in range(100):
        await producer.commit(batches(f"more-{number}"), "g", {})
        assert f"more-{number}" in kafka.followed
        assert len(kafka.followed) <= 4


async def test_partitions_that_a_topic_has_got_are_looked_up_before_anything_is_sent(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    topic, partition = PLACE
    kafka.partitions[topic] = {partition + 1}
    await producer.commit(batches(), "g", {})
    assert kafka.steps == ["track", "ask again", "begin", "commit"]
    kafka.partitions[topic].add(partition)
    await producer.commit(batches(), "g", {})
    assert kafka.steps[4:] == ["begin", "commit"]


async def test_nothing_is_committed_against_a_check_which_runs_beside_the_sending(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    kafka.holds = True

    async def refuse() -> None:
        while not kafka.waiting:
            await asyncio.sleep(0)
        kafka.answer()
        raise InputInDoubt("it is another log")

    async def agree() -> None:
        kafka.steps.append("checked")

    with pytest.raises(InputInDoubt):
        await producer.commit(batches(), "g", INPUT, checks=[agree, refuse])
    assert kafka.steps == ["track", "begin", "checked"]
    assert not producer.is_committing


async def test_a_last_check_runs_when_all_is_sent_and_nothing_is_committed_against_it(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    answered: list[bool] = []

    async def refuse() -> None:
        answered.append(not kafka.waiting)
        raise InputInDoubt("it is another log")

    async def answer() -> None:
        while not kafka.waiting:
            await asyncio.sleep(0)
        assert answered == []
        kafka.answer()

    kafka.holds = True
    answering = asyncio.create_task(answer())
    with pytest.raises(InputInDoubt):
        await producer.commit(batches(), "g", INPUT, last_checks=[refuse])
    await answering
    assert (answered, kafka.steps) == ([True], ["track", "begin"])


async def test_nobody_sees_that_a_commit_was_answered_before_its_owner_does(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    ends: list[Any] = []

    async def agree() -> None:
        await asyncio.sleep(0)

    async def own() -> None:
        ends.append(await producer.commit(batches(), "g", INPUT, checks=[agree]))

    owner = asyncio.create_task(own())
    while not owner.done():
        assert "commit" not in kafka.steps or ends or producer.is_committing
        await asyncio.sleep(0)
    assert ends == [{PLACE: 1}]


@pytest.mark.parametrize(("is_blocked", "error"), [(False, TargetsStalledError), (True, TransactionStuck)])
async def test_the_target_is_not_blamed_if_the_transactional_id_begins_nothing(
    producer: TransactionalProducer, kafka: Transactions, is_blocked: bool, error: type[Exception]
) -> None:
    kafka.holds, kafka.is_blocked = True, is_blocked
    with pytest.raises(error):
        await producer.commit(batches(), "g", INPUT, PATIENCE_S)
    assert kafka.steps == ["track", "begin"]


@pytest.mark.parametrize(("failing", "may_count"), [("offsets", False), ("commit", True)])
async def test_a_transaction_may_count_once_its_commit_was_asked_for(
    producer: TransactionalProducer, kafka: Transactions, failing: str, may_count: bool
) -> None:
    kafka.fails[failing] = KafkaConnectionError()
    with pytest.raises(KafkaConnectionError):
        await producer.commit(batches(), "g", INPUT)
    assert producer.is_committing is may_count


async def test_a_transaction_ends_before_the_broker_may_abort_it(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    producer._deadline_s = 0.05
    kafka.hangs = {"commit"}
    with pytest.raises(CycleTimeout, match=r"of id took over 0\.1 s"):
        await producer.commit(batches(), "g", INPUT)


@pytest.mark.parametrize(("commits", "end"), [(True, "commit"), (False, "abort")])
async def test_settling_touches_each_partition_and_writes_no_record(
    producer: TransactionalProducer, kafka: Transactions, commits: bool, end: str
) -> None:
    await producer.settle([("t", 0), ("t", 2)], commits=commits)
    assert kafka.steps[:2] == ["track", "begin"]
    assert sorted(kafka.steps[2:4]) == ["add 0", "add 2"]
    assert kafka.steps[4:] == [end]
    assert kafka.records == []


async def test_settling_does_not_end_before_the_coordinator_has_taken_the_partitions(
    producer: TransactionalProducer, kafka: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    kafka.is_blocked = True
    with pytest.raises(CycleTimeout):
        await producer.settle([PLACE], commits=True)
    assert "commit" not in kafka.steps


async def test_without_the_right_to_write_nothing_is_settled_and_the_producer_goes_on(
    producer: TransactionalProducer, kafka: Transactions
) -> None:
    kafka.refusal = TopicAuthorizationFailedError({"t"})
    with pytest.raises(TopicAuthorizationFailedError):
        await producer.settle([PLACE], commits=True)
    assert kafka.steps == ["track", "begin", "add 0", "abort"]
    await producer.discard()
    assert kafka.steps[4:] == ["cut off"], "nothing is open"
    kafka.refusal, kafka.ended = None, asyncio.get_running_loop().create_future()
    kafka.steps.clear()
    await producer.settle([PLACE], commits=True)
    await producer.discard()
    assert kafka.steps == ["begin", "add 0", "commit", "cut off"]


async def test_a_producer_that_fails_while_it_settles_says_so_at_once(
    producer: TransactionalProducer, kafka: Transactions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 120.0)
    kafka.refusal = ProducerFenced()
    async with asyncio.timeout(60):
        with pytest.raises(ProducerFenced):
            await producer.settle([PLACE], commits=True)


@pytest.mark.parametrize(("commits", "end"), [(True, ["commit"]), (False, [])])
async def test_what_was_to_be_settled_as_committed_is_not_aborted_by_being_let_go_of(
    producer: TransactionalProducer, kafka: Transactions, monkeypatch: pytest.MonkeyPatch, commits: bool, end: list[str]
) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0.05)
    kafka.is_blocked = True
    with pytest.raises(CycleTimeout):
        await producer.settle([PLACE], commits=commits)
    await producer.discard()
    assert kafka.steps[2:] == ["add 0", *end, "cut off"]


async def open_transaction(producer: TransactionalProducer, kafka: Transactions) -> None:
    """Have a transaction begin and fail."""
    kafka.fails["offsets"] = KafkaConnectionError()
    with pytest.raises(KafkaConnectionError):
        await producer.commit(batches(), "g", INPUT)
    kafka.steps.clear()


@pytest.mark.parametrize("is_open", [False, True])
async def test_discarding_aborts_what_the_coordinator_knows_to_be_open_and_stops(
    producer: TransactionalProducer, kafka: Transactions, is_open: bool
) -> None:
    await open_transaction(producer, kafka)
    if is_open:
        kafka.txn_partitions.add(TopicPartition(*PLACE))
    await producer.discard()
    assert kafka.steps == (["abort", "cut off"] if is_open else ["cut off"])


async def test_abandoning_does_not_wait_for_an_abort(producer: TransactionalProducer, kafka: Transactions) -> None:
    await open_transaction(producer, kafka)
    await producer.abandon()
    assert kafka.steps == ["cut off"]


@pytest.mark.parametrize("how", ["hangs", "fails"])
async def test_letting_go_of_a_producer_ends_in_time_whatever_it_does(
    producer: TransactionalProducer, kafka: Transactions, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(module, "STOP_TIMEOUT_S", 0.02)
    if how == "hangs":
        kafka.hangs = {"cut off"}
    else:
        kafka.fails["cut off"] = KafkaConnectionError()
    async with asyncio.timeout(60):
        await producer.abandon()
