"""Consumers of firings, with aiokafka and with FastStream, behind a real worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Annotated

import pytest
from faststream import Depends
from faststream.kafka import KafkaBroker
from support.application import Application
from support.groups import stable_members
from support.sending import Sender
from support.waiting import eventually

from light_scheduler.client import Firing, FiringConsumer, HandlingRules, attempt_of
from light_scheduler.client.faststream import Firing as FiringArgument
from light_scheduler.client.faststream import FiringMiddleware, FiringSubscribers, firing_of
from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.model import EventType
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

POLL_MS, LONG = 7_000, "12s"
"""How long an impatient group waits for a poll, more than this process may stand still; longer than that."""


@pytest.fixture(scope="module")
def served(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """One application with one worker, for all tests."""
    application = asyncio.run(Application.create(kafka.bootstrap_servers, tmp_path_factory.mktemp("consumers")))
    asyncio.run(application.start_worker())
    yield application
    application.close()


async def test_each_message_is_processed_once_and_failures_come_again(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-plain")
    seen: list[tuple[str, int]] = []
    async with served.client() as scheduler:

        def consumer() -> FiringConsumer:
            made = FiringConsumer(scheduler, served.bootstrap_servers, group_id=topic)

            @made.on_firing(topic, initial="100ms")
            async def note(firing: Firing) -> None:
                seen.append((firing.payload.decode() if firing.payload else "", attempt_of(firing)))
                assert firing.payload != b"1" or attempt_of(firing) == 3

            return made

        async with Sender(served.bootstrap_servers, topic) as send:
            await send("not from the scheduler")
        for number in range(3):
            await scheduler.schedule(f"{topic}-{number}", b"%d" % number, topic=topic)
        await _consumed(consumer(), lambda: len(seen) == 5)
        assert sorted(seen) == [("0", 1), ("1", 1), ("1", 2), ("1", 3), ("2", 1)]
        await scheduler.schedule(f"{topic}-last", b"last", topic=topic)
        await _consumed(consumer(), lambda: len(seen) == 6)
        assert seen[-1] == ("last", 1)


async def _consumed(consumer: FiringConsumer, is_enough: Callable[[], bool]) -> None:
    running = asyncio.create_task(consumer.run())
    await eventually(lambda: running.done() or is_enough(), what="enough messages")
    consumer.stop()
    await running


async def test_a_firing_is_extended_while_its_function_runs(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-extended")
    seen: list[int] = []
    extended = 0
    async with served.client() as scheduler, aclosing(scheduler.watch(id_prefix=topic, from_beginning=True)) as events:
        consumer = FiringConsumer(scheduler, served.bootstrap_servers, group_id=topic)

        @consumer.on_firing(topic, completes=True, heartbeat="100ms")
        async def work(firing: Firing) -> None:
            nonlocal extended
            seen.append(firing.attempt)
            async for event in events:
                extended += event.event is EventType.UPDATED
                if extended == 3:
                    return

        await scheduler.schedule(topic, topic=topic, ack_timeout="1h")
        await _consumed(consumer, lambda: bool(seen) and extended == 3)
        event = await anext(event async for event in events if event.event is not EventType.UPDATED)
        assert (event.event, seen) == (EventType.COMPLETED, [1])


@pytest.mark.soak
async def test_a_function_may_take_longer_than_its_group_waits_for_a_poll(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-slow", 1)
    seen: list[str] = []
    async with served.client() as scheduler, aclosing(scheduler.watch(id_prefix=topic, from_beginning=True)) as events:

        async def work(firing: Firing) -> None:
            seen.append(firing.id)
            if seen == [f"{topic}-first"]:
                await scheduler.schedule(f"{topic}-later", topic=topic, after=LONG)
                async for event in events:
                    if event.id == f"{topic}-later" and event.event is EventType.FIRED:
                        return

        def member() -> FiringConsumer:
            impatient = {"max_poll_interval_ms": POLL_MS, "heartbeat_interval_ms": 100}
            made = FiringConsumer(scheduler, served.bootstrap_servers, group_id=topic, kafka_options=impatient)
            made.on_firing(topic)(work)
            return made

        consumed = asyncio.gather(*(_consumed(member(), lambda: f"{topic}-later" in seen) for _ in range(2)))
        # A member that joins later waits for a poll of the others, too.
        members = partial(stable_members, served.bootstrap_servers, topic)
        await eventually(lambda: asyncio.to_thread(lambda: members() == 2), what="a group of two")
        await scheduler.schedule(f"{topic}-first", topic=topic)
        await scheduler.schedule(f"{topic}-second", topic=topic)
        await consumed
        assert seen == [f"{topic}-first", f"{topic}-second", f"{topic}-later"]


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_consumer_that_is_stopped_stays_in_its_group_while_its_function_runs(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-stopped", 1)
    seen: list[str] = []
    consumers: list[FiringConsumer] = []
    async with served.client() as scheduler, aclosing(scheduler.watch(id_prefix=topic, from_beginning=True)) as events:

        async def work(firing: Firing) -> None:
            seen.append(firing.id)
            if len(seen) == 1:
                consumers[0].stop()
                await scheduler.schedule(f"{topic}-later", topic=topic, after=LONG)
                async for event in events:
                    if event.id == f"{topic}-later" and event.event is EventType.FIRED:
                        return

        for _ in range(2):
            impatient = {"max_poll_interval_ms": POLL_MS, "heartbeat_interval_ms": 100}
            made = FiringConsumer(scheduler, served.bootstrap_servers, group_id=topic, kafka_options=impatient)
            made.on_firing(topic)(work)
            consumers.append(made)
        await scheduler.schedule(f"{topic}-first", topic=topic)
        stopped = asyncio.create_task(consumers[0].run())
        await eventually(lambda: bool(seen), every=0.05, what="a message that is processed")
        await asyncio.sleep(POLL_MS / 1_000 + 1)  # longer than a group waits for a poll
        await asyncio.gather(stopped, _consumed(consumers[1], lambda: f"{topic}-later" in seen))
        assert seen == [f"{topic}-first", f"{topic}-later"]


async def test_a_message_that_is_given_up_stops_its_consumer_and_comes_again(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-given-up")
    async with served.client() as scheduler:
        await scheduler.schedule(topic, topic=topic)
        for _ in range(2):
            consumer = FiringConsumer(scheduler, served.bootstrap_servers, group_id=topic)

            @consumer.on_firing(topic, attempts=0)
            async def fail(firing: Firing) -> None:
                raise ZeroDivisionError(firing.id)

            with pytest.raises(ZeroDivisionError, match=topic):
                await asyncio.wait_for(consumer.run(), 60)


async def test_a_topic_has_one_function_and_a_consumer_at_least_one(served: Application) -> None:
    async with served.client() as scheduler:
        consumer = FiringConsumer(scheduler, served.bootstrap_servers, group_id="g")
        with pytest.raises(ClientError, match="no function"):
            await consumer.run()
        consumer.on_firing("t")
        consumer.on_firing("t")(_nothing)
        with pytest.raises(InvalidCommand, match="already"):
            consumer.on_firing("t")


async def _nothing(_: Firing) -> None:
    return


async def test_functions_of_faststream_are_called_once_for_each_message_and_again_after_failures(
    served: Application,
) -> None:
    await served.create_topic(topic := f"{served.target}-faststream-plain")
    seen: list[tuple[dict[str, int], int]] = []
    given_up: list[str] = []
    async with served.client() as scheduler:
        broker = KafkaBroker(served.bootstrap_servers, logger=None)
        subscribers = FiringSubscribers(broker, scheduler, group_id=topic)

        def note_given_up(firing: Firing, _: Exception) -> None:
            given_up.append(firing.id)  # those of retries begin with the firing id of the first delivery

        @subscribers.on_firing(topic, initial="100ms", attempts=2, give_up=note_given_up)
        async def note(body: dict[str, int], firing: FiringArgument) -> None:
            seen.append((body, attempt_of(firing)))
            assert body["number"] != 1, "never"

        async with Sender(served.bootstrap_servers, topic) as send:
            await send("not from the scheduler")
        await scheduler.schedule(f"{topic}-broken", b"no JSON", topic=topic)
        for number in range(3):
            await scheduler.schedule(f"{topic}-{number}", b'{"number": %d}' % number, topic=topic)
        async with broker:
            await broker.start()
            await eventually(lambda: len(seen) == 5 and len(given_up) == 2, what="all attempts")
    attempts = [({"number": 0}, 1), ({"number": 1}, 1), ({"number": 1}, 2), ({"number": 1}, 3), ({"number": 2}, 1)]
    assert sorted(seen, key=repr) == attempts
    assert {id.rpartition("@")[0] for id in given_up} == {f"{topic}-1", f"{topic}-broken"}


async def test_faststream_extends_a_firing_while_its_function_runs(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-faststream-extended")
    seen: list[int] = []
    extended = 0
    async with served.client() as scheduler, aclosing(scheduler.watch(id_prefix=topic, from_beginning=True)) as events:
        broker = KafkaBroker(served.bootstrap_servers, logger=None)

        @FiringSubscribers(broker, scheduler, group_id=topic).on_firing(topic, completes=True, heartbeat="100ms")
        async def work(firing: FiringArgument) -> None:
            nonlocal extended
            seen.append(firing.attempt)
            async for event in events:
                extended += event.event is EventType.UPDATED
                if extended == 3:
                    return

        await scheduler.schedule(topic, topic=topic, ack_timeout="1h")
        async with broker:
            await broker.start()
            await eventually(lambda: extended == 3, what="three heartbeats")
            event = await anext(event async for event in events if event.event is not EventType.UPDATED)
        assert (event.event, seen) == (EventType.COMPLETED, [1])


async def test_faststream_subscribers_receive_firings(served: Application) -> None:
    await served.create_topic(topic := f"{served.target}-faststream")
    seen: list[tuple[bytes, str, int]] = []
    async with served.client() as scheduler:
        middleware = FiringMiddleware(scheduler, HandlingRules(completes=True))
        broker = KafkaBroker(served.bootstrap_servers, middlewares=[middleware], logger=None)

        @broker.subscriber(topic, group_id=topic, auto_offset_reset="earliest")
        async def note(body: bytes, firing: Annotated[Firing, Depends(firing_of)]) -> None:
            seen.append((body, firing.id, firing.attempt))
            assert firing.attempt == 2

        await scheduler.schedule(topic, b"hello", topic=topic, ack_timeout="1h")

        async def is_completed() -> bool:
            completed = [event for event in await served.history() if event.event is EventType.COMPLETED]
            return [event.reason for event in completed if event.id == topic] == ["failure", None]

        async with broker:
            await broker.start()
            await eventually(is_completed, every=0.2, what="a failure and a completion")
        assert seen == [(b"hello", topic, 1), (b"hello", topic, 2)]
