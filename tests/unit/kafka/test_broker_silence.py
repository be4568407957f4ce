"""Which brokers count as silent: those that send no byte while somebody listens, and no others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.structs import BrokerMetadata
from support.slow_broker import hanging, slow_broker
from support.waiting import eventually

from light_scheduler.kafka import broker_silence, promptness
from light_scheduler.kafka.broker_silence import patience
from light_scheduler.kafka.promptness import Promptness

BROKER, ABSENT = 1, 2
STEP_S, LIMIT_S = 0.02, 0.2
REQUEST = HeartbeatRequest("group", 1, "member")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_silence, "STEP_S", STEP_S)
    monkeypatch.setattr(promptness, "CONNECT_S", LIMIT_S)


@asynccontextmanager
async def client_of(address: str, **options: Any) -> AsyncIterator[tuple[Any, Promptness]]:
    """A client that knows a broker, and another one that is not there."""
    promptness, client = Promptness(), AIOKafkaClient(bootstrap_servers=[address])
    host, _, port = address.rpartition(":")
    client.cluster._brokers = {
        BROKER: BrokerMetadata(BROKER, host, int(port), None),
        ABSENT: BrokerMetadata(ABSENT, host, 1, None),
    }
    client.force_metadata_update = lambda: None
    promptness.bound(client, LIMIT_S, marks_silent=True, **options)
    try:
        yield client, promptness
    finally:
        await client.close()


def is_silent(promptness: Promptness, address: str) -> bool:
    return promptness.preferred(f"{address},x:2") == ["x:2"]


async def at_once(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(frame)


async def byte_by_byte(writer: asyncio.StreamWriter, frame: bytes) -> None:
    for place in range(len(frame)):
        writer.write(frame[place : place + 1])
        await asyncio.sleep(LIMIT_S / 4)


async def half(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(frame[: len(frame) // 2])


async def after_all_limits(writer: asyncio.StreamWriter, frame: bytes) -> None:
    await asyncio.sleep(4 * LIMIT_S)
    writer.write(frame)


async def never(_: asyncio.StreamWriter, __: bytes) -> None:
    await asyncio.Event().wait()


async def while_the_loop_is_held_up(writer: asyncio.StreamWriter, frame: bytes) -> None:
    writer.write(frame)  # it is in the client's socket by now
    time.sleep(3 * LIMIT_S)  # noqa: ASYNC251 - nothing else runs in this loop meanwhile


@pytest.mark.parametrize("answer", [at_once, byte_by_byte, while_the_loop_is_held_up])
async def test_an_answer_that_comes_is_awaited_however_long_it_takes(answer: Any) -> None:
    async with slow_broker(answer) as address, client_of(address) as (client, promptness):
        response = await client.send(BROKER, REQUEST)
        assert response.error_code == 0
        assert client._conns[BROKER, ConnectionGroup.DEFAULT].connected()
        assert not is_silent(promptness, address)


@pytest.mark.parametrize("answer", [half, never])
async def test_a_broker_from_which_no_byte_comes_is_left(answer: Any) -> None:
    async with slow_broker(answer) as address, client_of(address) as (client, promptness):
        with pytest.raises(RequestTimedOutError):
            await client.send(BROKER, REQUEST)
        assert is_silent(promptness, address)
        with pytest.raises(KafkaConnectionError):
            client._conns[BROKER, ConnectionGroup.DEFAULT].send(REQUEST)


def throttling(seconds: float) -> Any:
    """Answer at once the first time, and then read nothing for some seconds."""
    answered: list[bytes] = []

    async def answer(writer: asyncio.StreamWriter, frame: bytes) -> None:
        if answered:
            await asyncio.sleep(seconds)
        answered.append(frame)
        writer.write(frame)

    return answer


async def test_a_broker_that_has_told_a_client_to_wait_is_not_silent_meanwhile() -> None:
    throttle_ms = round(4_000 * LIMIT_S)
    async with (
        slow_broker(throttling(3 * LIMIT_S), throttle_ms) as address,
        client_of(address) as (client, promptness),
    ):
        for _ in range(2):
            assert (await client.send(BROKER, REQUEST)).throttle_time_ms == throttle_ms
        assert not is_silent(promptness, address)


async def test_a_broker_is_left_that_is_silent_when_the_time_is_over_for_which_it_told_a_client_to_wait() -> None:
    async with (
        slow_broker(throttling(3_600), round(500 * LIMIT_S)) as address,
        client_of(address) as (client, promptness),
    ):
        await client.send(BROKER, REQUEST)
        begun = time.monotonic()
        with pytest.raises(RequestTimedOutError):
            await client.send(BROKER, REQUEST)
        assert time.monotonic() - begun > 1.4 * LIMIT_S
        assert is_silent(promptness, address)


async def test_a_broker_is_left_though_nobody_awaits_its_answer_any_more() -> None:
    async with slow_broker(half) as address, client_of(address) as (client, promptness):
        asking = asyncio.create_task(client.send(BROKER, REQUEST))
        await eventually(lambda: client._conns)
        asking.cancel()
        await eventually(lambda: is_silent(promptness, address))


async def test_only_a_members_coordinator_may_take_its_time() -> None:
    group = ConnectionGroup.COORDINATION
    async with slow_broker(after_all_limits) as address, client_of(address, is_member=True) as (client, _):
        assert (await client.send(BROKER, REQUEST, group=group)).error_code == 0
    async with slow_broker(never) as address, client_of(address) as (client, _):
        with pytest.raises(RequestTimedOutError):
            await client.send(BROKER, REQUEST, group=group)


async def test_a_broker_that_waited_for_another_connection_is_not_silent() -> None:
    async with hanging() as address, client_of(address) as (client, promptness):
        assert not any(await asyncio.gather(client._get_conn(BROKER), client._get_conn(ABSENT)))
        assert is_silent(promptness, address)
        assert not is_silent(promptness, "127.0.0.1:1")


class NoToken:
    """Stands in for a token provider whose server takes long, and issues none."""

    async def token(self) -> str:
        await asyncio.sleep(2 * LIMIT_S)
        raise KafkaConnectionError("no token")


async def test_a_token_server_that_takes_long_shows_no_broker_silent() -> None:
    async with slow_broker(at_once) as address, client_of(address) as (client, promptness):
        client._security_protocol, client._sasl_mechanism = "SASL_PLAINTEXT", "OAUTHBEARER"
        client._sasl_oauth_token_provider = NoToken()
        assert await client._get_conn(BROKER) is None
        assert not is_silent(promptness, address)


async def test_patience_lasts_longer_for_whom_is_excused() -> None:
    excused = 3 * LIMIT_S
    begun = time.monotonic()
    with pytest.raises(TimeoutError):
        async with patience(LIMIT_S, lambda: time.monotonic() - begun < excused):
            await asyncio.Event().wait()
    assert time.monotonic() - begun > excused + LIMIT_S / 2


async def test_patience_ends_for_those_who_listen() -> None:
    with pytest.raises(TimeoutError):
        async with patience(LIMIT_S):
            await asyncio.Event().wait()


@pytest.mark.parametrize("limit_s", [STEP_S, LIMIT_S])
async def test_patience_outlasts_an_event_loop_that_is_held_up(limit_s: float) -> None:
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    async with patience(limit_s):
        loop.call_soon(lambda: loop.call_soon(loop.call_soon, loop.call_soon, arrived.set))
        time.sleep(3 * LIMIT_S)  # noqa: ASYNC251 - it holds up the loop
        await arrived.wait()
