"""Readers of logs that are kept: who gets which, and when they are closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.waiting import eventually

from light_scheduler.errors import BrokerError
from light_scheduler.kafka import log_readers
from light_scheduler.kafka.log_readers import LogReaders


class FakeReader:
    """A reader that notes what happens to it."""

    made: list[FakeReader]

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.tried = 0
        self.is_closed = self.is_dead = False

    @classmethod
    async def of(cls, _connection: Any, topic: str) -> FakeReader:
        reader = cls()
        cls.made.append(reader)
        await reader.open(topic)
        return reader

    async def open(self, topic: str, _timeout_s: float = 10.0) -> None:
        self.tried += 1
        if self.is_dead:
            raise BrokerError("no broker answers")
        self.opened.append(topic)

    def release(self) -> None:
        assert not self.is_closed

    async def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[FakeReader]:
    FakeReader.made = []
    monkeypatch.setattr(log_readers, "LogReader", FakeReader)
    return FakeReader.made


async def test_one_after_the_other_takes_the_same_reader_and_it_asks_about_the_topic_anew(made: list[Any]) -> None:
    readers = LogReaders("broker:9092", 2)
    for topic in ("history", "dead-letters", "history"):
        async with readers.open(topic):
            pass
    assert [each.opened for each in made] == [["history", "dead-letters", "history"]]
    await readers.close()
    assert made[0].is_closed


async def test_two_at_once_never_share_one_and_no_more_are_kept_than_may_be(made: list[Any]) -> None:
    readers = LogReaders("broker:9092", 1)
    async with readers.open("a") as first, readers.open("a") as second:
        assert first is not second
    assert [each.is_closed for each in made] == [True, False]
    await readers.close()


async def test_a_reader_that_failed_is_closed_and_not_lent_again(made: list[Any]) -> None:
    readers = LogReaders("broker:9092", 2)
    with pytest.raises(BrokerError):
        async with readers.open("a"):
            raise BrokerError("gone")
    async with readers.open("a"):
        pass
    assert [each.is_closed for each in made] == [True, False]
    await readers.close()


async def test_a_kept_reader_whose_connections_are_dead_is_replaced_and_no_other_kept_one_is_tried(
    made: list[Any],
) -> None:
    readers = LogReaders("broker:9092", 2)
    async with readers.open("a"), readers.open("a"):
        pass
    made[0].is_dead = made[1].is_dead = True
    async with readers.open("b") as reader:
        assert reader is made[2]
    assert [each.is_closed for each in made] == [True, True, False]
    assert sum(each.tried for each in made[:2]) == 3
    await readers.close()


async def test_a_reader_that_nobody_needs_is_closed(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_readers, "KEPT_S", 0.01)
    readers = LogReaders("broker:9092", 2)
    async with readers.open("a"):
        pass

    async def is_closed() -> bool:
        return bool(made[0].is_closed)

    await eventually(is_closed)
    async with readers.open("a") as reader:
        assert reader is made[1]
    await readers.close()


async def test_after_the_end_nothing_is_kept(made: list[Any]) -> None:
    readers = LogReaders("broker:9092", 2)
    async with readers.open("a"):
        await readers.close()
    assert made[0].is_closed
    assert asyncio.all_tasks() == {asyncio.current_task()}
