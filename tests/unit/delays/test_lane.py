"""How a delay lane lives with failures: when it asks, when it waits, when it begins again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import (
    InvalidTimestampError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    UnknownError,
)
from support.producing import FakeProducer

from light_scheduler.clock import SettableClock
from light_scheduler.delays.lane import BLOCKED_WAIT_S, DelayLane, DelayServices
from light_scheduler.errors import CycleTimeout
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.fetching import Command
from light_scheduler.kafka.refusals import RecordsRefusedError
from light_scheduler.kafka.targets import TargetTopic
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.lanes.lane_state import LaneState
from light_scheduler.lanes.transaction_failures import PASSING_REFUSALS
from light_scheduler.model import DelayRule, TopicNames
from light_scheduler.wire.delays import DelayPosition, decode_position

RULE = DelayRule("later", "orders", 60_000, "reminders")


class KnownTopics(dict[str, TargetTopic]):
    """What is known of topics: they are all there."""

    def __missing__(self, topic: str) -> TargetTopic:
        return TargetTopic(1, 1_000_000, None, 0.0)

    async def resolve(self, topics: set[str]) -> None: ...

    def forget_all(self) -> None: ...


class Outage:
    """A broker that no producer reaches; and a group that gives the partition back at the `given_at`-th question."""

    transaction_timeout_ms = 10_000

    def __init__(self, given_at: int) -> None:
        self.steps: list[str] = []
        self.pauses: list[float] = []
        self.topics = KnownTopics()
        self._given_at = given_at

    def producer(self, transactional_id: str) -> Any:
        self.steps.append("fence")
        raise KafkaConnectionError(transactional_id)

    async def confirm(self, tp: TopicPartition) -> bool:
        self.steps.append("confirm")
        await asyncio.sleep(0)
        return self.steps.count("confirm") >= self._given_at

    def lane(self) -> DelayLane:
        unused = cast(Any, None)
        services = DelayServices(
            connection="127.0.0.1:1",
            names=TopicNames("app"),
            clients=cast(Any, self),
            longest_wait_ms=1_000,
            clock=SettableClock(1_767_225_600_000),
            targets=cast(Any, self.topics),
            positions=unused,
            topic_ids=unused,
            confirm=self.confirm,
            fail=unused,
        )
        lane = DelayLane(RULE, TopicPartition("orders", 0), services)

        async def pause(seconds: float) -> None:
            self.steps.append("pause")
            self.pauses.append(seconds)
            await asyncio.sleep(0)

        lane._supervision.pause = pause  # type: ignore[method-assign]  # so that no test waits
        return lane


async def test_a_lane_that_failed_fences_nobody_until_its_partition_is_its_own_again() -> None:
    outage = Outage(given_at=3)
    lane = outage.lane()
    lane.start(None)
    async with asyncio.timeout(60):
        while outage.steps.count("fence") < 2:
            await asyncio.sleep(0)
    await lane.close()

    until_again = outage.steps[: outage.steps.index("fence", 1)]
    assert until_again == ["fence", "pause", "confirm", "pause", "confirm", "pause", "confirm"]


class Broker(Outage):
    """A broker of a hundred thousand due records, on which a transaction has a reason to fail, or none."""

    def __init__(self, fails: Callable[[int], Exception | None], key: bytes | None = b"k") -> None:
        super().__init__(given_at=0)
        self._key = key
        self.sizes: list[int] = []
        self.letters = self.letters_sent = 0
        self._fails = fails
        self._next = 0

    def lane(self) -> DelayLane:
        lane = super().lane()

        async def take_over() -> Any:
            lane._move(LaneState.FENCED)
            lane._move(LaneState.RESTORING)
            lane._move(LaneState.RUNNING)
            self._next = lane._position or 0
            return self, self

        lane._take_over = take_over  # type: ignore[method-assign]
        return lane

    async def read(self, _timeout_s: float) -> list[Command]:
        await asyncio.sleep(0)
        first, self._next = self._next, min(self._next + 10_000, 100_000)
        return [Command(0, offset, 0, self._key, b"v", []) for offset in range(first, self._next)]

    async def commit(self, batches: RecordBatches, _group: str, _offsets: object, **_: object) -> None:
        await asyncio.sleep(0)
        sent = FakeProducer()
        await batches.send(cast(Any, sent))
        letters = len(sent.to("app-dead-letters"))
        size = len(sent.to(RULE.target)) + letters
        self.letters_sent += letters
        self.sizes.append(size)
        if (error := self._fails(size)) is not None:
            raise error
        self.letters += letters


async def run(broker: Broker, until: Callable[[], bool]) -> DelayLane:
    lane = broker.lane()
    lane.start(None)
    async with asyncio.timeout(30):
        while not until():
            await asyncio.sleep(0)
    await lane.close()
    return lane


async def test_a_transaction_that_took_too_long_is_tried_smaller_and_grows_again() -> None:
    slow = iter([True, True])
    broker = Broker(lambda size: CycleTimeout("late") if size > 1_250 and next(slow, False) else None)
    await run(broker, lambda: len(broker.sizes) >= 6)

    assert broker.sizes[:5] == [5_000, 2_500, 1_250, 2_500, 5_000]


async def test_a_timestamp_that_a_topic_of_ours_refuses_condemns_no_record_and_is_tried_after_a_pause() -> None:
    refused = RecordsRefusedError("app-delay-positions", InvalidTimestampError(), [])
    broker = Broker(lambda _size: refused if len(broker.sizes) < 5 else None)
    await run(broker, lambda: len(broker.sizes) >= 6)

    assert broker.sizes[:5] == [5_000] * 5
    assert broker.steps.count("pause") >= 4
    assert broker.letters == 0


HALVINGS = 12
"""Transactions of 5,000 records, 2,500 and so on until one has a single record."""


def refusal(cause: KafkaError) -> RecordsRefusedError:
    return RecordsRefusedError(RULE.target, cause, [])


async def test_a_record_that_is_refused_without_a_reason_is_tried_again_after_a_pause_and_delivered() -> None:
    broker = Broker(lambda size: refusal(UnknownError()) if size and len(broker.sizes) <= HALVINGS + 3 else None)
    await run(broker, lambda: len(broker.sizes) >= HALVINGS + 5)

    assert broker.sizes[HALVINGS:][:5] == [1, 1, 1, 1, 2]
    assert (broker.pauses, broker.letters) == ([BLOCKED_WAIT_S] * 3, 0)


async def test_a_record_that_is_refused_each_time_without_a_reason_becomes_a_dead_letter() -> None:
    broker = Broker(lambda size: refusal(UnknownError()) if size and not broker.letters_sent else None)
    await run(broker, lambda: len(broker.sizes) >= HALVINGS + PASSING_REFUSALS + 3)

    assert broker.sizes[HALVINGS:][: PASSING_REFUSALS + 3] == [1] * (PASSING_REFUSALS + 2) + [2]
    assert broker.pauses == [BLOCKED_WAIT_S] * PASSING_REFUSALS


async def test_a_record_that_is_refused_for_a_reason_becomes_a_dead_letter_at_once() -> None:
    broker = Broker(lambda size: refusal(MessageSizeTooLargeError()) if size and not broker.letters_sent else None)
    await run(broker, lambda: len(broker.sizes) >= HALVINGS + 3)

    assert (broker.sizes[HALVINGS:][:3], broker.pauses) == ([1, 1, 2], [])


async def test_a_record_without_a_key_for_a_compacted_topic_becomes_a_dead_letter_and_is_not_tried() -> None:
    broker = Broker(lambda _size: None, key=None)
    broker.topics[RULE.target] = TargetTopic(1, 1_000_000, None, 0.0, is_compacted=True)
    await run(broker, lambda: broker.letters > 0)

    assert broker.letters == sum(broker.sizes)


class Restored:
    """A producer and a source of a lane that takes over: the log begins at `first`, and positions are kept."""

    def __init__(self) -> None:
        self.first = 0
        self.kept: list[DelayPosition] = []

    async def fence(self) -> None: ...

    async def commit(self, batches: RecordBatches, _group: str, _offsets: object) -> None:
        sent = FakeProducer()
        await batches.send(cast(Any, sent))
        assert [record.topic for record in sent.records] == ["app-delay-positions"]
        self.kept += [decode_position(record.value or b"") for record in sent.records]

    async def read(self, _key: bytes) -> DelayPosition | None:
        return self.kept[-1] if self.kept else None

    async def topic_id(self, _topic: str) -> str:
        return "t"

    async def open(self, _connection: object, _tp: TopicPartition, offset: int) -> Any:
        return SimpleNamespace(position=max(offset, self.first), end=None)

    def lane(self) -> DelayLane:
        lane = Outage(given_at=0).lane()
        ids = TopicIds(self.topic_id, count().__next__)
        lane._services = replace(lane._services, positions=cast(Any, self), topic_ids=ids)
        return lane

    async def taken_over(self) -> DelayLane:
        lane = self.lane()
        await lane._take_over()
        return lane


def use(broker: Restored, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("light_scheduler.delays.lane.TransactionalProducer", lambda *_: broker)
    monkeypatch.setattr("light_scheduler.delays.source.Source.open", broker.open)


async def test_what_is_deleted_before_a_lane_has_forwarded_anything_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Restored()
    use(broker, monkeypatch)
    broker.first = 3
    assert (await broker.taken_over()).status().expired == 0
    assert broker.kept == [DelayPosition(3, "t")]
    broker.first = 10
    assert (await broker.taken_over()).status().expired == 7
    assert broker.kept == [DelayPosition(3, "t")]


class CreatedAgain(Restored):
    """A source of some records that takes the place of an empty one while a lane waits for that one's records."""

    def __init__(self, position: int, records: int) -> None:
        super().__init__()
        self.kept = [DelayPosition(position, "old")]
        self.forwarded: list[bytes | None] = []
        self.refusals: list[RecordsRefusedError] = []
        self._records = records
        self._next = 0
        self._id = "old"

    async def topic_id(self, _topic: str) -> str:
        return self._id

    async def open(self, _connection: object, _tp: TopicPartition, offset: int) -> Any:
        self._next = offset
        return SimpleNamespace(position=offset, end=None, read=self._read, close=self.fence)

    async def discard(self) -> None: ...

    async def _read(self, _timeout_s: float) -> list[Command]:
        self._id = "new"
        await asyncio.sleep(0)
        first, self._next = self._next, self._records
        return [Command(0, offset, 0, b"k", b"%d" % offset, []) for offset in range(first, self._records)]

    async def commit(self, batches: RecordBatches, _group: str, _offsets: object, checks: Any = ()) -> None:
        sent = FakeProducer()
        await batches.send(cast(Any, sent))
        if self.refusals and sent.to(RULE.target):
            raise self.refusals.pop()
        for check in checks:
            await check()
        self.forwarded += [record.value for record in sent.to(RULE.target)]
        self.kept += [decode_position(record.value or b"") for record in sent.to("app-delay-positions")]

    async def run(self) -> None:
        """Run a lane until it has come to the end of the records."""
        lane = self.lane()
        lane.start(None)
        async with asyncio.timeout(30):
            while lane.status().position != self._records:
                await asyncio.sleep(0)
        await lane.close()


@pytest.mark.parametrize("position", [0, 2])
async def test_a_source_that_is_created_again_under_a_lane_is_forwarded_once_and_from_its_beginning(
    position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = CreatedAgain(position, 3)
    use(broker, monkeypatch)
    await broker.run()
    await broker.run()

    assert broker.forwarded == [b"0", b"1", b"2"]
    assert broker.kept == [DelayPosition(position, "old"), DelayPosition(0, "new"), DelayPosition(3, "new")]


async def test_a_record_is_not_condemned_for_one_that_an_earlier_topic_had_at_its_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = CreatedAgain(0, 1)
    broker.refusals = [refusal(MessageSizeTooLargeError())]
    use(broker, monkeypatch)
    await broker.run()

    assert broker.forwarded == [b"0"]


async def test_a_lane_whose_partition_is_somebody_elses_can_be_closed() -> None:
    outage = Outage(given_at=1_000_000)
    lane = outage.lane()
    lane.start(None)
    async with asyncio.timeout(60):
        while "confirm" not in outage.steps:
            await asyncio.sleep(0)
        await lane.close()
    assert outage.steps.count("fence") == 1
