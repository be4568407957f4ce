"""How partitions are processed beside each other, polled and committed, over a consumer that is told what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError

from light_scheduler.client import partitions
from light_scheduler.client.partitions import Partitions

SLOW, QUICK = TopicPartition("t", 0), TopicPartition("t", 1)


class Consumer:
    """Has some records in each partition; remembers polls and commits."""

    def __init__(self, **records: int) -> None:
        self.waiting = {SLOW: [_record(at) for at in range(records.get("slow", 0))]}
        self.waiting[QUICK] = [_record(at) for at in range(records.get("quick", 0))]
        self.polls = 0
        self.committed: dict[TopicPartition, int] = {}
        self.lost: set[TopicPartition] = set()
        self.refusals: list[Exception] = []

    def assignment(self) -> set[TopicPartition]:
        return {*self.waiting} - self.lost

    async def getmany(self, *places: TopicPartition, timeout_ms: int, max_records: int) -> dict[TopicPartition, Any]:
        self.polls += 1
        assert timeout_ms == 0 or not places
        await asyncio.sleep(0)
        chosen = [place for place in places or self.waiting if self.waiting.get(place)]
        return {place: [self.waiting[place].pop(0) for _ in self.waiting[place][:max_records]] for place in chosen}

    async def commit(self, offsets: dict[TopicPartition, int]) -> None:
        if self.refusals:
            raise self.refusals.pop()
        assert offsets.keys() <= self.assignment()
        self.committed.update(offsets)


def _record(offset: int) -> Any:
    return SimpleNamespace(offset=offset)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "BUSY_POLL_S", 0.001)
    monkeypatch.setattr(partitions, "REVOKED_WAIT_S", 0.01)


async def polled(subject: Partitions, until: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not until():
            await subject.poll()


class Processing:
    """Records of the slow partition wait until they are released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.begun: list[tuple[int, int]] = []

    async def __call__(self, place: TopicPartition, record: Any) -> None:
        self.begun.append((place.partition, record.offset))
        if place == SLOW:
            await self.released.wait()


async def test_a_consumer_goes_on_polling_while_all_of_its_partitions_are_at_work() -> None:
    consumer, process = Consumer(slow=2), Processing()
    consumer.lost = {QUICK}
    subject = Partitions(consumer, process)
    await polled(subject, lambda: consumer.polls == 20)
    assert process.begun == [(0, 0)]
    process.released.set()
    await polled(subject, lambda: consumer.committed == {SLOW: 2})
    await subject.close()


async def test_a_slow_partition_holds_up_neither_messages_nor_commits_of_another() -> None:
    consumer, process = Consumer(slow=2, quick=3), Processing()
    subject = Partitions(consumer, process)
    await polled(subject, lambda: consumer.committed == {QUICK: 3})
    consumer.waiting[QUICK] = [_record(3)]
    await polled(subject, lambda: consumer.committed == {QUICK: 4})
    assert process.begun.count((0, 0)) == 1
    assert (0, 1) not in process.begun
    await subject.close()


async def test_each_message_is_committed_when_it_is_done_and_not_only_at_the_end_of_its_batch() -> None:
    consumer, last = Consumer(quick=500), asyncio.Event()

    async def process(_: TopicPartition, record: Any) -> None:
        if record.offset == 499:
            await last.wait()

    subject = Partitions(consumer, process)
    await polled(subject, lambda: consumer.committed == {QUICK: 499})
    last.set()
    await polled(subject, lambda: consumer.committed == {QUICK: 500})


async def test_a_commit_that_fails_is_made_again_for_the_partitions_that_are_left() -> None:
    consumer, process = Consumer(slow=1, quick=1), Processing()
    process.released.set()
    subject = Partitions(consumer, process)
    consumer.refusals = [CommitFailedError()]
    await polled(subject, lambda: not consumer.refusals)
    assert consumer.committed == {}
    consumer.lost = {SLOW}
    await polled(subject, lambda: consumer.committed == {QUICK: 1})


async def test_a_rebalance_waits_for_what_is_processed_and_commits_it() -> None:
    consumer, process = Consumer(slow=2), Processing()
    subject = Partitions(consumer, process)
    await polled(subject, lambda: bool(process.begun))
    asyncio.get_running_loop().call_soon(process.released.set)
    await subject.on_partitions_revoked([SLOW])
    assert (consumer.committed, process.begun) == ({SLOW: 1}, [(0, 0)])


async def test_what_a_rebalance_did_not_wait_for_is_not_committed_afterwards() -> None:
    consumer, process = Consumer(slow=1), Processing()
    subject = Partitions(consumer, process)
    await polled(subject, lambda: bool(process.begun))
    await subject.on_partitions_revoked([SLOW])
    process.released.set()
    before = consumer.polls
    await polled(subject, lambda: consumer.polls > before + 3)
    assert consumer.committed == {}


async def test_an_end_waits_for_what_is_processed_and_begins_nothing() -> None:
    consumer, process = Consumer(slow=2), Processing()
    subject = Partitions(consumer, process)
    await polled(subject, lambda: bool(process.begun))
    asyncio.get_running_loop().call_soon(process.released.set)
    await subject.finish()
    await subject.close()
    assert (consumer.committed, process.begun) == ({SLOW: 1}, [(0, 0)])


async def test_an_end_goes_on_polling_and_commits_what_is_done_while_it_waits() -> None:
    consumer, process = Consumer(slow=2, quick=2), Processing()
    subject = Partitions(consumer, process)
    await polled(subject, lambda: bool(process.begun))
    before = consumer.polls
    consumer.waiting[SLOW].append(_record(2))
    finishing = asyncio.create_task(subject.finish())
    async with asyncio.timeout(30):
        while consumer.polls < before + 20:
            await asyncio.sleep(0)
    assert not finishing.done()
    assert consumer.committed.keys() == {QUICK}
    process.released.set()
    await finishing
    assert (0, 1) not in process.begun
    assert consumer.committed[SLOW] == 1


async def test_a_failure_ends_the_others_and_keeps_what_was_done() -> None:
    consumer, process = Consumer(slow=1, quick=2), Processing()

    async def failing(place: TopicPartition, record: Any) -> None:
        await process(place, record)
        if place == QUICK and record.offset == 1:
            raise ZeroDivisionError

    subject = Partitions(consumer, failing)
    with pytest.raises(ZeroDivisionError):
        await polled(subject, lambda: False)
    await subject.close()
    assert consumer.committed == {QUICK: 1}
