"""Clients that lanes share: the lane that needs one first is not whom its tasks are about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.kafka import targets
from light_scheduler.kafka.lasting_client import LastingClient
from light_scheduler.kafka.promptness import Promptness
from light_scheduler.log_fields import Fields, begin_log_fields, current_fields, without_log_fields

LANE: Fields = {"topic": "commands", "partition": 3}


class Client:
    """Starts a task that outlives its start, as clients of aiokafka do, and notes its log fields."""

    def __init__(self, **_options: Any) -> None:
        self.fields: Fields | None = None
        self.is_closed = False
        self._task: asyncio.Task[None] | None = None
        self._client = SimpleNamespace()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._note())
        await self._task

    bootstrap = start

    async def close(self) -> None:
        self.is_closed = True

    async def describe_topics(self, _names: list[str]) -> list[dict[str, Any]]:
        return []

    async def _note(self) -> None:
        self.fields = current_fields()


async def in_lane(work: Callable[[], Awaitable[object]]) -> Fields:
    """Do something as a lane does; return its fields after it."""

    async def run() -> Fields:
        begin_log_fields(LANE)
        await work()
        return current_fields()

    return await asyncio.create_task(run())


async def test_a_connection_that_lanes_share_logs_nothing_of_the_lane_that_made_it() -> None:
    client: Any = Client()
    shared = LastingClient(lambda: client)
    assert await in_lane(shared.connected) == LANE
    assert client.fields == {}


async def test_the_client_that_asks_about_targets_logs_nothing_of_the_lane_that_made_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Client] = []

    def make(**options: Any) -> Client:
        made.append(Client(**options))
        return made[-1]

    monkeypatch.setattr(targets, "AIOKafkaAdminClient", make)
    monkeypatch.setattr(Promptness, "bound", lambda *_arguments, **_options: None)
    known = targets.Targets("nowhere:1")
    assert await in_lane(known._connected) == LANE
    assert [client.fields for client in made] == [{}]
    await known.close()


async def test_a_connection_that_is_given_up_while_it_is_made_is_closed() -> None:
    class Unanswered(Client):
        async def bootstrap(self) -> None:
            await asyncio.Event().wait()

    client: Any = Unanswered()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await LastingClient(lambda: client).connected()
    assert client.is_closed


async def test_a_failure_is_raised_as_it_is() -> None:
    async def fail() -> None:
        raise OSError("no way")

    with pytest.raises(OSError, match="no way"):
        await without_log_fields(fail())
