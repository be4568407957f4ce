"""What clients do about a broker that takes connections and answers nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.structs import BrokerMetadata
from support.slow_broker import hanging
from support.waiting import eventually

from light_scheduler.kafka import broker_silence, logged_in, login_sessions
from light_scheduler.kafka import promptness as module
from light_scheduler.kafka.logged_in import LoggedIn, Session
from light_scheduler.kafka.promptness import Promptness

SILENT, OTHER = 1, 2


@asynccontextmanager
async def bound_client(promptness: Promptness, address: str, **options: bool) -> AsyncIterator[Any]:
    """A client that knows the silent broker, and another one that is not there."""
    client = AIOKafkaClient(bootstrap_servers=[address])
    host, _, port = address.rpartition(":")
    client.cluster._brokers = {
        SILENT: BrokerMetadata(SILENT, host, int(port), None),
        OTHER: BrokerMetadata(OTHER, host, 1, None),
    }
    client.force_metadata_update = lambda: None
    promptness.bound(client, 3.0, **options)
    try:
        yield client
    finally:
        await client.close()


class Conn:
    """Takes the place of a connection."""

    def __init__(self, address: str) -> None:
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        self.closed: list[CloseReason | None] = []

    def connected(self) -> bool:
        return not self.closed

    def close(self, reason: CloseReason | None = None) -> asyncio.Future[None]:
        self.closed.append(reason)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future


class LoggedInFor(Conn):
    """One whose login lasts for some seconds."""

    left_s = LoggedIn.left_s

    left_s = LoggedIn.left_s

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(address)
        self.session = Session(asyncio.get_running_loop().time(), seconds)
        self._requests: list[object] = []
        self._last_action = time.monotonic()

    def _handle_frame(self, frame: bytes) -> None:
        """Nothing comes."""


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_S", 0.05)
    monkeypatch.setattr(broker_silence, "STEP_S", 0.01)


async def test_a_broker_that_answers_no_connection_is_left_out_by_all_clients() -> None:
    promptness = Promptness()
    async with hanging() as address, bound_client(promptness, address) as client:
        assert promptness.preferred(f"{address}, 127.0.0.1:1") == [address, "127.0.0.1:1"]
        assert await client._get_conn(SILENT) is None
        assert promptness.preferred(f"{address}, 127.0.0.1:1") == ["127.0.0.1:1"]
        assert promptness.preferred(address) == [address], "where there is no other, it is asked"
        async with bound_client(promptness, address) as another:
            assert {another.get_random_node() for _ in range(50)} == {OTHER}


async def test_a_broker_that_did_not_answer_is_not_connected_to_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    promptness = Promptness()
    async with hanging() as address, bound_client(promptness, address) as client:
        await client._get_conn(SILENT)
        monkeypatch.setattr(module, "CONNECT_S", 1_000.0)
        async with asyncio.timeout(60):
            assert await client._get_conn(SILENT) is None


async def test_the_only_broker_of_a_cluster_is_waited_for() -> None:
    promptness = Promptness()
    async with hanging() as address, bound_client(promptness, address) as client:
        del client.cluster._brokers[OTHER]
        await client._get_conn(SILENT)
        assert promptness.preferred(f"{address},x:2") == [address, "x:2"]


async def test_a_broker_that_is_not_there_is_no_silent_one() -> None:
    promptness = Promptness()
    async with hanging() as address, bound_client(promptness, address) as client:
        assert await client._get_conn(OTHER) is None  # refused
        assert promptness.preferred("127.0.0.1:1,x:2") == ["127.0.0.1:1", "x:2"]


@pytest.mark.parametrize(
    ("marks_silent", "group", "reason", "is_silent"),
    [
        (True, ConnectionGroup.DEFAULT, CloseReason.CONNECTION_TIMEOUT, True),
        (True, ConnectionGroup.DEFAULT, CloseReason.CONNECTION_BROKEN, False),
        (True, ConnectionGroup.COORDINATION, CloseReason.CONNECTION_TIMEOUT, False),
        (False, ConnectionGroup.DEFAULT, CloseReason.CONNECTION_TIMEOUT, False),
    ],
)
async def test_only_what_every_broker_that_is_well_answers_at_once_shows_one_that_hangs(
    marks_silent: bool, group: ConnectionGroup, reason: CloseReason, is_silent: bool
) -> None:
    promptness, address = Promptness(), "127.0.0.1:1"
    async with bound_client(promptness, address, marks_silent=marks_silent) as client:
        conn: Any = Conn(address)
        client._conns[SILENT, group] = conn
        client._on_connection_closed(conn, reason)
        assert (promptness.preferred(f"{address},x:2") == ["x:2"]) is is_silent


async def test_all_clients_disconnect_from_a_broker_that_one_of_them_found_silent() -> None:
    promptness, address = Promptness(), "127.0.0.1:9"
    async with bound_client(promptness, address, marks_silent=True) as one, bound_client(promptness, address) as other:
        conns: list[Any] = [Conn(address), Conn("127.0.0.1:1")]
        other._conns[SILENT, ConnectionGroup.DEFAULT], other._conns[OTHER, ConnectionGroup.DEFAULT] = conns
        found: Any = Conn(address)
        one._conns[SILENT, ConnectionGroup.DEFAULT] = found
        one._on_connection_closed(found, CloseReason.CONNECTION_TIMEOUT)
        await asyncio.sleep(0)  # it is said in the other's loop
        assert [conn.closed for conn in conns] == [[CloseReason.CONNECTION_BROKEN], []]


async def test_one_that_is_to_replace_a_working_connection_says_nothing_of_the_broker_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[Any] = []

    async def connect(*to: Any) -> Any:
        tries.append(to)
        return working if len(tries) == 1 else await logged_in.connect(*to)

    monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setattr(login_sessions, "FIRST_USED", 0.0)
    monkeypatch.setattr(login_sessions, "LAST_USED", 0.0)
    promptness = Promptness()
    async with (
        hanging() as address,
        bound_client(promptness, address) as client,
        bound_client(promptness, address) as other,
    ):
        working, another = LoggedInFor(address, 600.0), Conn(address)
        other._conns[SILENT, ConnectionGroup.DEFAULT] = another
        updates: list[None] = []
        client.force_metadata_update = partial(updates.append, None)
        assert await client._get_conn(SILENT) is working
        await eventually(lambda: len(tries) == 3, every=0.01)  # so the second one has failed
        assert promptness.preferred(f"{address},x:2") == [address, "x:2"]
        assert (working.closed, another.closed) == ([], [])
        assert not updates


async def test_no_connection_is_made_to_a_broker_that_kafka_does_not_name_any_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    working = LoggedInFor("127.0.0.1:9", 0.05)

    async def connect(*_: object) -> Any:
        return working

    monkeypatch.setattr(module, "connect", connect)
    async with bound_client(Promptness(), "127.0.0.1:9") as client:
        assert await client._get_conn(SILENT) is working
        del client.cluster._brokers[SILENT]
        await eventually(lambda: caplog.records, every=0.01)
        assert "does not name it" in caplog.text
        assert client._conns[SILENT, ConnectionGroup.DEFAULT] is working


async def test_metadata_is_asked_for_when_a_connection_breaks_that_was_in_use() -> None:
    updates: list[None] = []
    async with bound_client(Promptness(), "127.0.0.1:9") as client:
        client.force_metadata_update = partial(updates.append, None)
        new, used = Conn("127.0.0.1:9"), Conn("127.0.0.1:9")
        client._conns[SILENT, ConnectionGroup.DEFAULT] = used
        client._on_connection_closed(new, CloseReason.CONNECTION_BROKEN)
        assert not updates
        client._on_connection_closed(used, CloseReason.CONNECTION_BROKEN)
        assert len(updates) == 1
