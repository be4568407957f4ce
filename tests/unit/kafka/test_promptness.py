"""What clients do about a broker that takes connections and answers nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import CloseReason
from aiokafka.structs import BrokerMetadata
from support.slow_broker import hanging

from light_scheduler.kafka import broker_silence
from light_scheduler.kafka import promptness as module
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
        async with asyncio.timeout(5):
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
