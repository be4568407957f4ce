"""When a reader of a compacted topic takes it for another one of the same name."""

from __future__ import annotations

import asyncio
import time
from typing import Any, NamedTuple

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.connection import Connection
from light_scheduler.errors import BrokerError, ChangeUnconfirmed
from light_scheduler.host.ports import free_port
from light_scheduler.kafka import compacted
from light_scheduler.kafka.compacted import Change, CompactedTopic, LogEnds
from light_scheduler.kafka.promptness import Promptness


class EndsWhileReading(LogEnds):
    """Says where a log ends, while its reader comes as far as `reached`."""

    def __init__(self, topic: CompactedTopic, end: int, reached: int) -> None:
        self._topic = topic
        self._end = end
        self._reached = reached

    async def now(self) -> int:
        self._topic._reached = self._reached
        return self._end


@pytest.mark.parametrize(("before", "end", "reached", "is_another"), [(5, 5, 6, False), (5, 4, 5, True)])
async def test_a_log_is_another_one_only_if_it_ends_before_what_was_read_before_the_question(
    before: int, end: int, reached: int, is_another: bool
) -> None:
    topic = CompactedTopic("127.0.0.1:9092", "app-tenants")
    topic.is_loaded, topic._reached = True, before
    topic._ends = EndsWhileReading(topic, end, reached)
    catching_up = asyncio.create_task(topic.catch_up())
    await asyncio.sleep(0)
    assert topic._made_again.is_set() == is_another
    catching_up.cancel()
    await asyncio.wait([catching_up])
    assert catching_up.cancelled() == is_another


async def test_neither_readers_nor_who_asks_for_the_end_begin_with_a_broker_that_another_client_found_silent() -> None:
    asked = list[asyncio.StreamWriter]()
    server = await asyncio.start_server(lambda _, writer: asked.append(writer), "127.0.0.1")
    host, port = server.sockets[0].getsockname()
    promptness, connection = Promptness(), Connection(f"{host}:{port},127.0.0.1:{free_port()}")
    promptness._silent[f"{host}:{port}"] = time.monotonic()
    async with server, LogEnds(connection, TopicPartition("app-tenants", 0), promptness) as ends:
        with pytest.raises(KafkaError):
            await CompactedTopic(connection, "app-tenants", promptness=promptness).follow(lambda: None)
        with pytest.raises(KafkaError):
            await ends.now()
    assert asked == []


class Sent(NamedTuple):
    offset: int = 7


class Hanging:
    """A producer for which the broker answers no more from a step on."""

    def __init__(self, step: str) -> None:
        self._step = step

    async def _reach(self, step: str) -> None:
        if step == self._step:
            await asyncio.Event().wait()

    async def start(self) -> None: ...

    async def begin_transaction(self) -> None: ...

    async def abort_transaction(self) -> None: ...

    async def flush(self) -> None: ...

    async def stop(self) -> None: ...

    async def send_and_wait(self, *_: Any, **__: Any) -> Sent:
        await self._reach("send")
        return Sent()

    async def commit_transaction(self) -> None:
        await self._reach("commit")


@pytest.mark.parametrize(("step", "is_stored"), [("send", None), ("commit", False), ("read back", True)])
async def test_an_error_says_whether_a_change_is_stored_may_be_or_is_not(
    step: str, is_stored: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def caught_up(_: CompactedTopic) -> None: ...

    monkeypatch.setattr(compacted, "WRITE_TIMEOUT_S", 0.1)
    monkeypatch.setattr(compacted, "QuietProducer", lambda **_: Hanging(step))
    monkeypatch.setattr(CompactedTopic, "catch_up", caught_up)
    topic = CompactedTopic("127.0.0.1:9092", "app-tenants")
    with pytest.raises(BrokerError, match="changing app-tenants: the broker did not answer in time") as raised:
        await topic.change(lambda: Change([(b"a", b"1")]))
    found = raised.value.is_stored if isinstance(raised.value, ChangeUnconfirmed) else None
    assert found is is_stored
