"""Where a delay lane begins that takes a partition over, and what it does when its source is another topic by then."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import MessageSizeTooLargeError
from support.delay_lanes import NOW, RULE, Outage, refusal
from support.producing import FakeProducer

from light_scheduler.delays.lane import DelayLane
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.fetching import Command
from light_scheduler.kafka.refusals import RecordsRefusedError
from light_scheduler.kafka.topic_ids import TopicIds
from light_scheduler.wire.delays import DelayPosition, decode_position


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
    """A source of some records that takes the place of an empty one while a lane waits for that one's records.

    The last `early` records are not due yet, with a `gap` of markers before them. Behind all records there are
    `markers` of transactions.
    """

    def __init__(self, position: int, records: int) -> None:
        super().__init__()
        self.kept = [DelayPosition(position, "old")]
        self.forwarded: list[bytes | None] = []
        self.refusals: list[RecordsRefusedError] = []
        self.early = self.markers = self.gap = 0
        self._records = records
        self._source = SimpleNamespace()
        self._id = "old"

    async def topic_id(self, _topic: str) -> str:
        return self._id

    async def open(self, _connection: object, _tp: TopicPartition, offset: int) -> Any:
        self._source = SimpleNamespace(position=offset, end=None, read=self._read, close=self.fence)
        return self._source

    async def discard(self) -> None: ...

    async def _read(self, _timeout_s: float) -> list[Command]:
        self._id = "new"
        await asyncio.sleep(0)
        first, self._source.position = self._source.position, self._records + self.markers
        due = self._records - self.early
        return [
            Command(0, offset, 0, b"k", b"%d" % offset, [])
            if offset < due
            else Command(0, offset + self.gap, NOW, b"k", b"%d" % offset, [])
            for offset in range(first, self._records)
        ]

    async def commit(self, batches: RecordBatches, _group: str, _offsets: object, checks: Any = ()) -> None:
        sent = FakeProducer()
        await batches.send(cast(Any, sent))
        if self.refusals and sent.to(RULE.target):
            raise self.refusals.pop()
        for check in checks:
            await check()
        self.forwarded += [record.value for record in sent.to(RULE.target)]
        self.kept += [decode_position(record.value or b"") for record in sent.to("app-delay-positions")]

    async def run_to(self, position: int) -> None:
        """Run a lane until it has come to a position."""
        lane = self.lane()
        lane.start(None)
        async with asyncio.timeout(30):
            while lane.status().position != position:
                await asyncio.sleep(0)
        await lane.close()


@pytest.mark.parametrize("position", [0, 2])
async def test_a_source_that_is_created_again_under_a_lane_is_forwarded_once_and_from_its_beginning(
    position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = CreatedAgain(position, 3)
    use(broker, monkeypatch)
    await broker.run_to(3)
    await broker.run_to(3)

    assert broker.forwarded == [b"0", b"1", b"2"]
    assert broker.kept == [DelayPosition(position, "old"), DelayPosition(0, "new"), DelayPosition(3, "new")]


async def test_a_record_is_not_condemned_for_one_that_an_earlier_topic_had_at_its_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = CreatedAgain(0, 1)
    broker.refusals = [refusal(MessageSizeTooLargeError())]
    use(broker, monkeypatch)
    await broker.run_to(1)

    assert broker.forwarded == [b"0"]


async def test_the_markers_of_transactions_behind_the_last_record_are_passed_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else retention would count them as records that it deleted unread."""
    broker = CreatedAgain(0, 3)
    broker.markers = 1
    use(broker, monkeypatch)
    await broker.run_to(4)

    assert (broker.forwarded, broker.kept[-1]) == ([b"0", b"1", b"2"], DelayPosition(4, "new"))


async def test_a_record_that_is_not_due_yet_is_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = CreatedAgain(0, 3)
    broker.early = broker.markers = 1
    use(broker, monkeypatch)
    await broker.run_to(2)

    assert (broker.forwarded, broker.kept[-1]) == ([b"0", b"1"], DelayPosition(2, "new"))


async def test_a_source_that_is_created_again_while_a_record_waits_is_read_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = CreatedAgain(3, 6)
    broker.early, broker.gap = 3, 1
    use(broker, monkeypatch)
    monkeypatch.setattr("light_scheduler.delays.lane.LOOK_AT_SOURCE_S", 0.0)
    await broker.run_to(4)

    assert (broker.forwarded, broker.kept[-1]) == ([b"0", b"1", b"2"], DelayPosition(4, "new"))


async def test_a_marker_before_a_record_that_waits_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = CreatedAgain(0, 3)
    broker.early, broker.gap = 1, 1
    use(broker, monkeypatch)
    await broker.run_to(3)

    assert (broker.forwarded, broker.kept[-1]) == ([b"0", b"1"], DelayPosition(3, "new"))
