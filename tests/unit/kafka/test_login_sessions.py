"""Connections whose login ends are replaced before that, and what was asked over them is answered."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.errors import KafkaConnectionError, RequestTimedOutError
from aiokafka.protocol.admin import SaslAuthenticateRequest
from aiokafka.protocol.metadata import MetadataRequest
from support.slow_broker import hanging
from support.waiting import eventually

from light_scheduler.kafka import login_sessions as module
from light_scheduler.kafka.logged_in import LoggedIn, Place, Session, connect
from light_scheduler.kafka.login_sessions import Renewals
from light_scheduler.kafka.throttling import follow, is_throttled

PLACE = Place(1, ConnectionGroup.DEFAULT)
SESSION_S = 0.2


class Conn:
    """Takes the place of a connection; each has one question that is not answered yet."""

    left_s = LoggedIn.left_s

    def __init__(self) -> None:
        self.made_at = self._last_action = time.monotonic()
        self.session = Session(asyncio.get_running_loop().time(), SESSION_S)
        self.answer = asyncio.get_running_loop().create_future()
        self._requests = deque([(1, object(), self.answer)])
        self.closed_for: CloseReason | str | None = None

    def _handle_frame(self, _: bytes) -> None:
        self._requests[0][2].set_result(SimpleNamespace(throttle_time_ms=60_000))
        self._requests.popleft()

    def connected(self) -> bool:
        return self.closed_for is None

    def close(self, reason: CloseReason | None = None) -> None:
        self.closed_for = reason or "closed"


class Client:
    """A client with one connection, and those that are to take its place: None is a try that fails."""

    def __init__(self, *new: Any) -> None:
        self._connections_max_idle_ms = 60_000
        self.first: Any = Conn()
        self._conns: dict[Any, Any] = {PLACE: self.first}
        self.new = deque(new)
        self.tries: list[object] = []
        self.tried_at: list[float] = []
        self.renewals = Renewals(self, self.connected)

    async def connected(self, node: object) -> Any:
        self.tries.append(node)
        self.tried_at.append(time.monotonic())
        new = self.new.popleft() if self.new else Conn()
        if new is None:
            raise KafkaConnectionError("not just now")
        return new


@pytest.fixture
def replaced_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another connection take the place of each as soon as it is followed."""
    monkeypatch.setattr(module, "FIRST_USED", 0.0)
    monkeypatch.setattr(module, "LAST_USED", 0.0)


def logged_in_for(seconds: float, *new: Any) -> Client:
    """Return a client whose connection is followed, and logged in for so long from now on."""
    client = Client(*new)
    client.first.session = Session(asyncio.get_running_loop().time(), seconds)
    client.renewals.follow(PLACE, client.first)
    return client


def with_lasting_second() -> tuple[Client, Any]:
    """Return a client, and the connection that takes the place of its first one; its login does not end."""
    second: Any = Conn()
    second.session = None
    return Client(second), second


async def test_another_connection_takes_the_place_of_one_whose_login_ends_and_answers_that_are_due_still_come() -> None:
    client = Client()
    client.renewals.follow(PLACE, client.first)
    await eventually(lambda: client._conns[PLACE] is not client.first, every=0.005)
    took = time.monotonic() - client.first.made_at
    assert took >= module.FIRST_USED * SESSION_S
    assert client.first.connected(), "its answer is due"
    assert client.first in client._conns.values(), "it is watched until then"
    client.first.answer.set_result(None)
    await eventually(lambda: not client.first.connected(), every=0.005)
    assert set(client._conns) == {PLACE}
    assert client.tries == [1]
    await client.renewals.end()


async def test_the_one_that_took_the_place_is_replaced_too() -> None:
    second = Conn()
    client = Client(second)
    client.renewals.follow(PLACE, client.first)
    await eventually(lambda: client._conns[PLACE] not in (client.first, second), every=0.005)
    await client.renewals.end()
    assert client.tries == [1, 1]


@pytest.mark.usefixtures("replaced_at_once")
async def test_a_connection_that_cannot_be_made_is_tried_again_while_the_login_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    client = logged_in_for(600.0, None, None)
    await eventually(lambda: client._conns[PLACE] is not client.first, every=0.005)
    assert len(client.tries) >= 3
    await client.renewals.end()


async def test_no_connection_is_made_for_a_login_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.001)
    client = Client(*[None] * 10_000)
    client.renewals.follow(PLACE, client.first)
    await eventually(lambda: client.tries and not client.renewals._tasks, every=0.005)
    assert asyncio.get_running_loop().time() >= sum(client.first.session)
    assert client._conns == {PLACE: client.first}


@pytest.mark.usefixtures("replaced_at_once")
async def test_tries_are_ever_longer_apart_and_their_failure_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 0.01)
    monkeypatch.setattr(module, "LONGEST_RETRY_S", 0.04)
    client = logged_in_for(600.0, *[None] * 5)
    await eventually(lambda: client._conns[PLACE] is not client.first, every=0.005)
    pauses = [after - before for before, after in itertools.pairwise(client.tried_at[:6])]
    assert all(pause >= least for pause, least in zip(pauses, (0.01, 0.02, 0.04, 0.04, 0.04), strict=True))
    await client.renewals.end()
    (logged,) = caplog.records
    assert logged.levelname == "WARNING"
    assert "broker 1 again: " in logged.getMessage()
    assert "not just now" in logged.getMessage()


@pytest.mark.usefixtures("replaced_at_once")
async def test_a_connection_is_tried_again_before_the_login_ends_however_many_tries_have_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, tried_at = 0.0, list[float]()

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def connected(_: object) -> Any:
        tried_at.append(now)
        raise KafkaConnectionError("not just now")

    monkeypatch.setattr(module, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    monkeypatch.setattr(module, "RETRY_S", 0.02)
    monkeypatch.setattr(module, "LONGEST_RETRY_S", 60.0)
    client = Client()
    client.first.left_s = lambda: 1.0 - now
    renewals = Renewals(client, connected)
    renewals.follow(PLACE, client.first)
    await eventually(lambda: tried_at and not renewals._tasks, every=0.005)
    assert any(0.75 <= at < 1.0 for at in tried_at)


async def test_what_a_broker_says_about_waiting_counts_for_the_connection_that_takes_the_place_too() -> None:
    client, second = with_lasting_second()
    follow(client.first)
    client.renewals.follow(PLACE, client.first)
    await eventually(lambda: client._conns[PLACE] is second, every=0.005)
    assert not is_throttled(second)
    client.first._handle_frame(b"")
    assert is_throttled(second)
    assert is_throttled(client.first)
    await client.renewals.end()


async def test_a_connection_takes_over_how_long_the_one_in_whose_place_it_is_was_told_to_wait() -> None:
    client, second = with_lasting_second()
    follow(client.first)
    client.first._handle_frame(b"")
    client.renewals.follow(PLACE, client.first)
    await eventually(lambda: client._conns[PLACE] is second, every=0.005)
    assert is_throttled(second)
    await client.renewals.end()


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_an_answer_that_does_not_come_closes_the_connection_that_it_is_due_on(is_replaced: bool) -> None:
    async with hanging() as address:
        client = AIOKafkaClient(bootstrap_servers=[address], request_timeout_ms=100)
        old, new = [await silently_connected(address) for _ in range(2)]
        client._conns[PLACE] = old
        client._get_conn = partial(_in_place, client)
        renewals = Renewals(client, lambda _: _returned(new))
        if is_replaced:
            loop = asyncio.get_running_loop()
            old.session = Session(loop.time() - 60.0, 60.0)
        asking = asyncio.create_task(client.send(PLACE.node, MetadataRequest([])))
        await eventually(lambda: old._requests, every=0.005)
        renewals.follow(PLACE, old)
        with pytest.raises(RequestTimedOutError):
            await asking
        assert not old.connected()
        assert new.connected()
        if is_replaced:
            await eventually(lambda: client._conns == {PLACE: new}, every=0.005)
        await renewals.end()
        new.close()
        await client.close()


async def silently_connected(address: str) -> Any:
    """Return a connection to a broker that answers nothing, so that it could not log in."""
    host, _, port = address.rpartition(":")
    conn: Any = LoggedIn(host, int(port), request_timeout_ms=100)
    conn._do_version_lookup = partial(_returned, None)
    conn._versions = {MetadataRequest([]).API_KEY: (0, 0)}
    await conn.connect()
    return conn


async def _returned(value: Any) -> Any:
    return value


async def _in_place(client: Any, node: object, *, group: ConnectionGroup) -> Any:
    return client._conns.get((node, group))


async def test_a_connection_without_an_end_is_left_alone() -> None:
    client = Client()
    client.renewals.follow(PLACE, LoggedIn("127.0.0.1", 1))
    assert not client.renewals._timers
    await client.renewals.end()


@pytest.mark.parametrize("is_gone", [True, False])
async def test_no_connection_is_made_for_one_that_is_not_used_any_more(is_gone: bool) -> None:
    client = Client()
    if is_gone:
        client._conns[PLACE] = Conn()
    else:
        client.first._last_action, client._connections_max_idle_ms = 0.0, 1
        client.first._requests.clear()
    client.renewals.follow(PLACE, client.first)
    await eventually(lambda: not client.renewals._timers and not client.renewals._tasks, every=0.005)
    assert client.tries == []
    assert client.first.closed_for is (None if is_gone else CloseReason.IDLE_DROP)


async def test_a_new_connection_is_let_go_of_when_the_old_one_has_gone_meanwhile() -> None:
    other, late = Conn(), Conn()
    client = Client(late)

    async def connected(node: object) -> Any:
        client._conns[PLACE] = other
        return await client.connected(node)

    renewals = Renewals(client, connected)
    renewals.follow(PLACE, client.first)
    await eventually(lambda: not late.connected(), every=0.005)
    assert client._conns == {PLACE: other}
    await renewals.end()


async def test_nothing_is_replaced_after_the_end() -> None:
    started, client = asyncio.Event(), Client()

    async def connected(_: object) -> Any:
        started.set()
        await asyncio.Event().wait()

    renewals = Renewals(client, connected)
    renewals.follow(PLACE, client.first)
    await started.wait()
    await renewals.end()
    assert not renewals._tasks
    assert client._conns == {PLACE: client.first}


@pytest.mark.parametrize(
    ("told", "lasts_s"), [({"session_lifetime_ms": 10_500}, 10.5), ({"session_lifetime_ms": 0}, None), ({}, None)]
)
async def test_a_connection_takes_from_the_answer_to_its_login_how_long_that_lasts(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, int], lasts_s: float | None
) -> None:
    answer = SimpleNamespace(error_code=0, **told)

    async def sent(*_: object) -> Any:
        return answer

    monkeypatch.setattr(AIOKafkaConnection, "send", sent)
    conn = cast(Any, LoggedIn("127.0.0.1", 1))
    begun_at = asyncio.get_running_loop().time()
    assert await conn.send(MetadataRequest([])) is answer
    assert not conn.session
    assert await conn.send(SaslAuthenticateRequest(b"")) is answer
    assert (conn.session and conn.session.lasts_s) == lasts_s
    assert not conn.session or conn.session.begun_at >= begun_at


async def test_a_broker_that_does_not_answer_in_the_time_of_the_client_is_no_connection() -> None:
    async with hanging() as address:
        client = AIOKafkaClient(bootstrap_servers=[address], request_timeout_ms=50)
        host, _, port = address.rpartition(":")
        with pytest.raises(KafkaConnectionError, match="no answer"):
            await connect(client, host, int(port))
        await client.close()
