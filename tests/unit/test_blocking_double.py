"""The scheduler in memory for code that uses the blocking client, in one thread and in many."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from threading import Condition

import pytest

from light_scheduler.client import CommandRefused
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.model import EventType, Outcome
from light_scheduler.settings import Settings
from light_scheduler.testing import BlockingInMemoryScheduler
from light_scheduler.testing.blocking_channel import BlockingMemoryReader
from light_scheduler.testing.exchange import Exchange

START = datetime(2030, 1, 1, tzinfo=UTC)
THREADS = 16


@pytest.fixture
def scheduler() -> BlockingInMemoryScheduler:
    return BlockingInMemoryScheduler(now=START)


def test_a_message_is_delivered_at_its_time_and_not_before(scheduler: BlockingInMemoryScheduler) -> None:
    with scheduler:
        result = scheduler.schedule("order-1", b"pay!", topic="reminders", after="15m", headers={"kind": "a"})
        assert result.outcome is Outcome.SCHEDULED
        scheduler.advance(minutes=14, seconds=59.999)
        assert scheduler.delivered == []
        scheduler.advance_to(START + timedelta(minutes=15))
        (record,) = scheduler.delivered
        assert (record.topic, record.key, record.value) == ("reminders", b"order-1", b"pay!")
        assert scheduler.now == START + timedelta(minutes=15)
    with pytest.raises(ValueError, match="is before the scheduler's time"):
        scheduler.advance_to(START)


def test_what_is_pending_can_be_listed_previewed_and_watched(scheduler: BlockingInMemoryScheduler) -> None:
    with closing(scheduler.watch(from_beginning=True)) as events:
        scheduler.schedule("a", topic="t", every="10m", misfire="coalesce", misfire_grace="1m")
        assert next(events).event is EventType.SCHEDULED
        assert [schedule.id for schedule in scheduler.list()] == ["a"]
        assert len(scheduler.preview(every="1h", count=3)) == 3
        scheduler.outage(hours=3)
        assert next(event for event in events if event.event is EventType.FIRED).id == "a"
    assert len(scheduler.firings) == 1


def test_a_refusal_raises_as_the_client_does(scheduler: BlockingInMemoryScheduler) -> None:
    with pytest.raises(CommandRefused, match="schedule-cron"):
        scheduler.schedule("x", topic="t", cron="61 * * * *")


def test_many_threads_share_one_scheduler(scheduler: BlockingInMemoryScheduler) -> None:
    def book(thread: int) -> list[Outcome]:
        return [
            scheduler.schedule(f"{thread}-{number}", topic="t", after="1h", raise_on_refusal=False).outcome
            for number in range(50)
        ]

    with ThreadPoolExecutor(THREADS) as threads:
        booked = list(threads.map(book, range(THREADS)))
    assert booked == [[Outcome.SCHEDULED] * 50] * THREADS
    scheduler.advance(hours=1)
    assert len({firing.id for firing in scheduler.firings}) == len(scheduler.firings) == THREADS * 50


@pytest.fixture
def threads_take_turns_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("threads_take_turns_often")
def test_a_thread_that_looks_misses_nothing_that_others_write_meanwhile(scheduler: BlockingInMemoryScheduler) -> None:
    ids = [str(number) for number in range(400)]

    def work() -> None:
        for id in ids:
            scheduler.schedule(id, topic="t", after=0, wait=False)

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        while not working.done():
            assert len(scheduler.delivered) <= len(scheduler.records("t")) <= len(scheduler.history)
        working.result()
    assert [firing.id for firing in scheduler.firings] == ids
    assert [event.id for event in scheduler.history if event.event is EventType.FIRED] == ids


def test_a_thread_that_watches_reacts_while_the_clock_moves(scheduler: BlockingInMemoryScheduler) -> None:
    def react() -> int:
        with closing(scheduler.watch(events={EventType.FIRED}, from_beginning=True)) as events:
            return next(events).at

    with ThreadPoolExecutor(1) as threads:
        fired_at = threads.submit(react)
        scheduler.schedule("a", topic="t", after="1m")
        scheduler.advance(hours=1)
        assert fired_at.result(60) == scheduler.firings[0].due


def test_a_reader_that_is_stopped_just_before_it_waits_ends() -> None:
    class Overtaken(Condition):
        """A turn that the thread that stops the reader gets first."""

        def __enter__(self) -> bool:
            if not stopped:
                stopped.append(True)
                reader.stop()
            return super().__enter__()

        def wait(self, timeout: float | None = None) -> bool:
            raise AssertionError("nobody would wake the reader")

    stopped: list[bool] = []
    exchange = Exchange(MemoryScheduler(Settings(), 0))
    reader = BlockingMemoryReader(exchange, Overtaken(), "t", 0)
    assert list(reader) == []
    assert stopped
