"""Clients outside of lanes: no request is lost to a login that has ended, and what may be asked again is."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaConnectionError, NodeNotReadyError
from aiokafka.protocol.group import HeartbeatRequest
from aiokafka.protocol.metadata import MetadataRequest, MetadataResponse_v0
from support.waiting import eventually

from light_scheduler.kafka import lasting_logins as module
from light_scheduler.kafka.lasting_logins import keep_logged_in
from light_scheduler.kafka.logged_in import LoggedIn, Session, connect

VERSIONS_KEY, METADATA_KEY, HEARTBEAT_KEY = 18, 3, 12
VERSIONS = struct.pack(">hi9h", 0, 3, VERSIONS_KEY, 0, 0, METADATA_KEY, 0, 0, HEARTBEAT_KEY, 1, 1)
NODE = 1
LASTS_S = 60.0


class Broker:
    """Answers questions for metadata; of which connections it `closes` instead, by their numbers, a test says."""

    def __init__(self) -> None:
        self.address = ""
        self.connections = 0
        self.asked: list[int] = []
        self.closes: Callable[[int], bool] = lambda _: False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        host, _, port = self.address.rpartition(":")
        metadata = MetadataResponse_v0([(NODE, host, int(port))], []).encode()
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                key, _, correlation = struct.unpack_from(">hhi", await reader.readexactly(size))
                if key != VERSIONS_KEY:
                    self.asked.append(number)
                    if self.closes(number):
                        break
                    await self.may_answer.wait()
                answer = {METADATA_KEY: metadata, VERSIONS_KEY: VERSIONS}.get(key, struct.pack(">ih", 0, 0))
                content = struct.pack(">i", correlation) + answer
                writer.write(struct.pack(">i", len(content)) + content)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


Kept = tuple[AIOKafkaClient, Broker]


@pytest.fixture
async def kept(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kept]:
    """A client that is kept logged in, whose logins last for a minute, and its broker."""

    async def connected(*where: Any) -> LoggedIn:
        conn = await connect(*where)
        conn.session = Session(asyncio.get_running_loop().time(), LASTS_S)
        return conn

    monkeypatch.setattr(module, "connect", connected)
    async with running() as broker:
        client = AIOKafkaClient(bootstrap_servers=[broker.address], request_timeout_ms=2_000)
        keep_logged_in(client)
        client._on_connection_closed = lambda *_: None  # else it asks for metadata
        await client.bootstrap()
        await client.ready(NODE)
        yield client, broker
        broker.may_answer.set()
        await client.close()


@asynccontextmanager
async def running() -> AsyncIterator[Broker]:
    broker = Broker()
    tasks: list[asyncio.Task[None]] = []
    server = await asyncio.start_server(
        lambda *streams: tasks.append(asyncio.create_task(broker.serve(*streams))), "127.0.0.1"
    )
    host, port = server.sockets[0].getsockname()
    broker.address = f"{host}:{port}"
    yield broker
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def conn_of(client: AIOKafkaClient) -> Any:
    """Return the connection that the next request goes over, if its login lasts."""
    (conn,) = [conn for place, conn in client._conns.items() if place[0] == NODE]
    return conn


def age(conn: Any, part: float) -> None:
    """Have part of a login's time be over."""
    conn.session = Session(asyncio.get_running_loop().time() - part * LASTS_S, LASTS_S)


def ask(client: AIOKafkaClient) -> Awaitable[Any]:
    answer: Awaitable[Any] = client.send(NODE, MetadataRequest([]))
    return answer


async def test_requests_go_over_one_connection_while_its_login_lasts(kept: Kept) -> None:
    client, broker = kept
    before = conn_of(client)
    age(before, 0.8)
    await ask(client)
    await ask(client)
    assert conn_of(client) is before
    assert broker.connections == 2, "the first one is that of the bootstrap"


async def test_another_connection_is_made_for_a_request_shortly_before_the_login_ends(kept: Kept) -> None:
    client, broker = kept
    before = conn_of(client)
    age(before, 0.9)
    broker.closes = lambda number: number == 2
    await ask(client)
    assert conn_of(client) is not before
    assert broker.asked[-1] == 3
    assert not before.connected()


async def test_an_answer_that_is_due_still_comes_when_another_connection_is_made(kept: Kept) -> None:
    client, broker = kept
    before = conn_of(client)
    broker.may_answer.clear()
    first = asyncio.create_task(client.send(NODE, MetadataRequest([])))
    await eventually(lambda: broker.asked[-1:] == [2], every=0.005)
    age(before, 0.9)
    second = asyncio.create_task(client.send(NODE, MetadataRequest([])))
    await eventually(lambda: broker.asked[-1:] == [3], every=0.005)
    assert before.connected()
    broker.may_answer.set()
    await asyncio.gather(first, second)
    await eventually(lambda: not before.connected(), every=0.005)
    assert conn_of(client).connected()


async def test_a_connection_is_used_while_its_login_lasts_when_no_other_one_can_be_made(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> Any:
        raise KafkaConnectionError("not just now")

    client, broker = kept
    before = conn_of(client)
    monkeypatch.setattr(module, "connect", failing)
    age(before, 0.9)
    await ask(client)
    assert broker.asked[-1] == 2
    age(before, 1.1)
    with pytest.raises(NodeNotReadyError):
        await client.send(NODE, MetadataRequest([]))


@pytest.mark.parametrize("hangs", [False, True])
async def test_requests_do_not_wait_for_another_connection_while_the_login_lasts(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    tries: list[object] = []

    async def failing(*_: object) -> Any:
        tries.append(_)
        if hangs:
            await asyncio.Event().wait()
        raise KafkaConnectionError("not just now")

    client, broker = kept
    monkeypatch.setattr(module, "connect", failing)
    before = conn_of(client)
    left_s = 2.0
    age(before, 1 - left_s / LASTS_S)
    begun = asyncio.get_running_loop().time()
    for _ in range(50):
        await ask(client)
    assert asyncio.get_running_loop().time() - begun < 0.9 * left_s
    assert set(broker.asked[-50:]) == {2}
    assert len(tries) <= 3


async def test_a_try_that_hangs_takes_little_of_the_time_of_a_request_however_long_the_login_lasts(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hanging(*_: object) -> Any:
        await asyncio.Event().wait()

    client, broker = kept
    monkeypatch.setattr(module, "connect", hanging)
    monkeypatch.setattr(module, "TRY_S", 0.1)
    age(conn_of(client), 0.9)
    async with asyncio.timeout(LASTS_S * 0.1 / 2):
        await ask(client)
    assert broker.asked[-1] == 2


async def test_a_client_that_is_closed_asks_nothing_again(kept: Kept) -> None:
    client, broker = kept
    broker.may_answer.clear()
    asking = asyncio.ensure_future(ask(client))
    await eventually(lambda: broker.asked[-1:] == [2], every=0.005)
    age(conn_of(client), 1.1)
    connections = broker.connections
    await client.close()
    with pytest.raises(KafkaConnectionError):
        await asking
    assert broker.connections == connections


async def test_a_question_that_an_ended_login_has_lost_is_asked_again_over_another_connection(kept: Kept) -> None:
    client, broker = kept
    broker.closes = ending(conn_of(client))
    await ask(client)
    assert broker.asked[-2:] == [2, 3]


async def test_so_is_one_that_the_client_asks_for_itself(kept: Kept) -> None:
    client, broker = kept
    broker.closes = ending(conn_of(client))
    assert await client.force_metadata_update()
    assert broker.asked[-2:] == [2, 3]


async def test_a_question_is_asked_again_only_once(kept: Kept) -> None:
    client, broker = kept
    before = conn_of(client)

    def closes(_: int) -> bool:
        for conn in client._conns.values():
            age(conn, 1.1)
        age(before, 1.1)
        return True

    broker.closes = closes
    asked = len(broker.asked)
    with pytest.raises(KafkaConnectionError):
        await client.send(NODE, MetadataRequest([]))
    assert broker.asked[asked:] == [2, 3]


async def test_what_changes_something_is_not_sent_again(kept: Kept) -> None:
    client, broker = kept
    broker.closes = ending(conn_of(client))
    with pytest.raises(KafkaConnectionError):
        await client.send(NODE, HeartbeatRequest("group", 1, "member"))


async def test_a_question_that_is_lost_while_the_login_lasts_is_not_asked_again(kept: Kept) -> None:
    client, broker = kept
    broker.closes = lambda number: number == 2
    with pytest.raises(KafkaConnectionError):
        await client.send(NODE, MetadataRequest([]))


async def test_a_client_that_is_closed_waits_for_no_answer_any_more(kept: Kept) -> None:
    client, broker = kept
    broker.may_answer.clear()
    asking = [asyncio.create_task(client.send(NODE, MetadataRequest([])))]
    await eventually(lambda: broker.asked[-1:] == [2], every=0.005)
    age(conn_of(client), 0.9)
    asking.append(asyncio.create_task(client.send(NODE, MetadataRequest([]))))
    await eventually(lambda: broker.asked[-1:] == [3], every=0.005)
    await client.close()
    failures = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(failure) for failure in failures] == [KafkaConnectionError] * 2
    assert not [task for task in asyncio.all_tasks() if "logged in anew" in task.get_name()]


def ending(conn: Any) -> Callable[[int], bool]:
    """Close the client's first connection on its next request, by when its login has ended."""

    def closes(number: int) -> bool:
        if number == 2:
            age(conn, 1.0)
        return number == 2

    return closes
