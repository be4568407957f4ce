"""What follows from how a firing was processed, with the real engine in memory."""

from __future__ import annotations

import asyncio
import functools
import itertools
import threading
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from light_scheduler.client import Firing, attempt_of
from light_scheduler.client.handling import Handler, HandlingRules, handle
from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.model import EventType
from light_scheduler.testing import InMemoryScheduler


@pytest.fixture
def scheduler() -> InMemoryScheduler:
    return InMemoryScheduler(now=datetime(2030, 1, 1, tzinfo=UTC))


class Refusal(Exception):
    """What the handlers of these tests fail with."""


async def fails(_: Firing) -> None:
    raise Refusal


async def works(_: Firing) -> None:
    return


async def test_a_firing_that_was_processed_is_completed(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    (firing,) = scheduler.firings
    await handle(scheduler, firing, "t", HandlingRules(completes=True), works)
    await scheduler.advance(hours=1)
    assert len(scheduler.firings) == 1
    assert EventType.COMPLETED in [event.event for event in scheduler.history]


@pytest.mark.parametrize("process", [works, fails])
async def test_a_firing_is_extended_while_it_is_processed_and_not_after_it(
    scheduler: InMemoryScheduler, process: Callable[[Firing], Awaitable[None]]
) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    extend, beats = scheduler.extend, asyncio.Queue[None]()

    async def counted(*arguments: Any, **options: Any) -> Any:
        receipt = await extend(*arguments, **options)
        beats.put_nowait(None)
        return receipt

    scheduler.extend = counted  # type: ignore[method-assign]

    async def takes_long(firing: Firing) -> None:
        for _ in range(5):
            while not beats.empty():
                beats.get_nowait()
            await asyncio.wait_for(beats.get(), 30)
            await scheduler.advance(seconds=50)
            assert len(scheduler.firings) == 1
        await process(firing)

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True, heartbeat="1ms"), takes_long)
    while not beats.empty():
        beats.get_nowait()
    await scheduler.advance(seconds=1)
    assert len(scheduler.firings) == (1 if process is works else 2)
    assert beats.empty()


async def test_what_waited_longer_than_its_time_out_is_left_to_its_next_attempt(
    scheduler: InMemoryScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=90)
    rules, processed = HandlingRules(completes=True, heartbeat="20s"), []

    async def note(firing: Firing) -> None:
        processed.append(firing.attempt)

    assert [firing.attempt for firing in scheduler.firings] == [1, 2]
    for firing in scheduler.firings:
        await handle(scheduler, firing, "t", rules, note)
    assert processed == [2]
    assert "is skipped: attempt 1 was extended; the latest one is 2" in caplog.text


@pytest.mark.parametrize("rule", [{"backoff": ["1m"]}, {"backoff": ["1m", "1h"]}, {"after": 0}])
async def test_what_cannot_be_extended_is_processed(scheduler: InMemoryScheduler, rule: Any) -> None:
    await scheduler.schedule("a", topic="t", **rule)
    await scheduler.advance(seconds=90)
    processed: list[Firing] = []
    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True, heartbeat="20s"), processed.append)
    assert processed == [scheduler.firings[0]]


async def test_the_time_out_begins_anew_when_processing_begins(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=50)

    async def takes_long(_: Firing) -> None:
        await scheduler.advance(seconds=50)

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True, heartbeat="1h"), takes_long)
    assert len(scheduler.firings) == 1


@pytest.mark.parametrize("completes", [False, True])
async def test_an_error_that_is_to_pass_is_raised_and_nothing_is_reported(
    scheduler: InMemoryScheduler, completes: bool
) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m", max_attempts=1)
    await scheduler.advance(seconds=1)
    with pytest.raises(Refusal):
        await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=completes), fails, (Refusal,))
    assert [event.event for event in scheduler.history] == ["scheduled", "fired"]


async def test_a_function_that_is_not_async_runs_in_a_thread(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    threads: list[int] = []

    def note(_: Firing) -> None:
        threads.append(threading.get_ident())

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True), note)
    assert threads != [threading.get_ident()]
    assert EventType.COMPLETED in [event.event for event in scheduler.history]


class Worker:
    """An object whose call is `async`."""

    async def __call__(self, _: Firing) -> None:
        asyncio.get_running_loop()


def begins(firing: Firing) -> object:
    return works(firing)


@pytest.mark.parametrize("process", [Worker(), functools.partial(works), begins])
async def test_whatever_is_async_in_the_end_is_awaited(scheduler: InMemoryScheduler, process: Handler) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True), process)
    assert EventType.COMPLETED in [event.event for event in scheduler.history]


async def test_heartbeats_go_on_after_some_that_could_not_be_sent(
    scheduler: InMemoryScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    extend, calls, extended = scheduler.extend, itertools.count(), asyncio.Event()

    async def failing_twice(*arguments: Any, **options: Any) -> Any:
        call = next(calls)  # the first one is before the work
        if call in (1, 2):
            raise BrokerError("gone")
        result = await extend(*arguments, **options)
        if call > 2:
            extended.set()
        return result

    scheduler.extend = failing_twice  # type: ignore[method-assign]

    async def takes_long(_: Firing) -> None:
        await scheduler.advance(seconds=50)
        extended.clear()
        await asyncio.wait_for(extended.wait(), 30)
        await scheduler.advance(seconds=50)

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True, heartbeat="1ms"), takes_long)
    assert caplog.text.count("could not be extended: gone") == 2
    assert len(scheduler.firings) == 1


@pytest.mark.parametrize("process", [works, fails])
async def test_no_heartbeat_is_under_way_when_the_outcome_is_reported(
    scheduler: InMemoryScheduler, process: Handler
) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    complete, others = scheduler.complete, []

    async def noted(*arguments: Any, **options: Any) -> Any:
        others.append(asyncio.all_tasks() - {asyncio.current_task()})
        return await complete(*arguments, **options)

    scheduler.complete = noted  # type: ignore[method-assign]

    async def takes_long(firing: Firing) -> None:
        await asyncio.sleep(0)  # the heartbeat has begun
        assert len(asyncio.all_tasks()) == 2
        await process(firing)  # type: ignore[misc]

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True, heartbeat="1h"), takes_long)
    assert others == [set()]


async def test_a_heartbeat_that_cannot_be_sent_does_not_end_the_work(
    scheduler: InMemoryScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1m")
    await scheduler.advance(seconds=1)
    failed = asyncio.Event()

    async def failing(*_: Any, **__: Any) -> Any:
        failed.set()
        raise BrokerError("gone")

    scheduler.extend = failing  # type: ignore[method-assign]

    async def takes_long(_: Firing) -> None:
        await asyncio.wait_for(failed.wait(), 30)

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True, heartbeat="1ms"), takes_long)
    assert "could not be extended: gone" in caplog.text
    await scheduler.advance(hours=1)
    assert len(scheduler.firings) == 1


@pytest.mark.parametrize(("completes", "heartbeat"), [(False, "5s"), (True, "0"), (True, "soon"), (True, "-1s")])
def test_a_heartbeat_is_a_duration_of_what_is_completed(completes: bool, heartbeat: str) -> None:
    with pytest.raises(InvalidCommand, match="heartbeat"):
        HandlingRules(completes=completes, heartbeat=heartbeat)


async def test_a_firing_that_failed_comes_again_from_the_scheduler(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", topic="t", ack_timeout="1h")
    await scheduler.advance(seconds=1)
    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(completes=True), fails)
    await scheduler.advance(seconds=1)
    assert [firing.attempt for firing in scheduler.firings] == [1, 2]


async def test_other_messages_that_failed_come_again_later(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", b"x", topic="t")
    await scheduler.advance(seconds=1)
    rules = HandlingRules(initial="10s", attempts=1)
    await handle(scheduler, scheduler.firings[0], "t", rules, fails)
    await scheduler.advance(seconds=9)
    assert len(scheduler.firings) == 1
    await scheduler.advance(seconds=1)
    again = scheduler.firings[1]
    assert (again.payload, attempt_of(again)) == (b"x", 2)
    with pytest.raises(Refusal):
        await handle(scheduler, again, "t", rules, fails)


async def test_the_last_attempt_can_be_given_up(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", b"x", topic="t")
    await scheduler.advance(seconds=1)
    given_up: list[tuple[str, Exception]] = []

    async def give_up(firing: Firing, error: Exception) -> None:
        given_up.append((firing.id, error))

    await handle(scheduler, scheduler.firings[0], "t", HandlingRules(attempts=0, give_up=give_up), fails)
    ((id, error),) = given_up
    assert id == "a"
    assert isinstance(error, Refusal)


async def test_a_message_that_cannot_be_sent_again_is_given_up(scheduler: InMemoryScheduler) -> None:
    await scheduler.schedule("a", topic="t", headers={"retry-attempt": "first"})
    await scheduler.advance(seconds=1)
    (firing,) = scheduler.firings
    given_up: list[Firing] = []

    def give_up(firing: Firing, error: Exception) -> None:
        assert isinstance(error, Refusal)
        given_up.append(firing)

    await handle(scheduler, firing, "t", HandlingRules(give_up=give_up), fails)
    assert given_up == [firing]
    with pytest.raises(Refusal):
        await handle(scheduler, firing, "t", HandlingRules(), fails)
