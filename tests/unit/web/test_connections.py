"""What connections may cost a worker: time-outs, bounds, and no flood in its log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from support.waiting import eventually

from light_scheduler.access import AccessBook, Token
from light_scheduler.clock import SettableClock
from light_scheduler.host.alive import takes_connections
from light_scheduler.lanes.context.status import LaneStatus
from light_scheduler.settings import Settings
from light_scheduler.web import KafkaTopics, Worker, install
from light_scheduler.web.limits import bodies
from light_scheduler.web.limits.shares import HOLDER
from light_scheduler.web.server import connection, listener
from light_scheduler.web.server.listener import LimitedSite

POST = "POST /api/v1/preview HTTP/1.1\r\nHost: localhost\r\n"
LIVE = b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
MIB = 1 << 20


class Client:
    """A connection whose bytes are written by hand."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def answer(self) -> tuple[int, dict[str, str], Any]:
        """Return status, headers and the document of the next answer."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        body = await self.reader.readexactly(int(headers["Content-Length"]))
        return int(status.split()[1]), headers, json.loads(body)

    async def is_ended(self) -> bool:
        """Wait for the server to close."""
        try:
            return await self.reader.read() == b""
        except ConnectionError:
            return True


class Server:
    """A worker's HTTP server."""

    def __init__(self, runner: web.AppRunner) -> None:
        self.runner = runner

    @asynccontextmanager
    async def connect(self, sends: str | bytes = b"") -> AsyncIterator[Client]:
        host, port = self.runner.addresses[0]
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(sends if isinstance(sends, bytes) else sends.encode())
            yield Client(reader, writer)
        finally:
            writer.transport.abort()

    @property
    def connections(self) -> int:
        assert self.runner.server is not None
        return len(self.runner.server.connections)


@asynccontextmanager
async def serving(application: web.Application) -> AsyncIterator[Server]:
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await LimitedSite(runner, "127.0.0.1", 0).start()
    try:
        yield Server(runner)
    finally:
        await runner.cleanup()


class NoTokens:
    book = AccessBook()
    store: Any = None
    oidc = None
    is_loaded = True

    def used(self, token: Token) -> None:
        raise AssertionError


class NoLanes:
    def status(self) -> list[LaneStatus]:
        return []


class NoPeers:
    own_url = "http://127.0.0.1:1"

    def owners(self) -> dict[str, dict[str, list[int]]]:
        return {}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    lanes: Any = NoLanes()
    nothing: Any = None
    topics = KafkaTopics(nothing, nothing, nothing, nothing, nothing)
    application = web.Application(client_max_size=2 * MIB)
    clock = SettableClock(1_800_000_000_000)
    worker = Worker(lanes, nothing, NoPeers(), topics, Settings(), clock, NoTokens(), nothing, nothing)
    install(application, worker)
    async with serving(application) as server:
        yield server


PLANTED = b"lst_planted"


@pytest.mark.parametrize(
    "sends",
    [
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + PLANTED + b"\x00\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nAuthorization : Bearer " + PLANTED + b"\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + PLANTED + b"\n\rX\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + PLANTED + b"a" * 20_000 + b"\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nCookie: light-scheduler-token=" + PLANTED + b"\x01\r\n\r\n",
        b"GET /live?token=" + PLANTED + b" HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"G@T /" + PLANTED + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://:80/live?token=" + PLANTED + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://h:99999/" + PLANTED + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET *" + PLANTED + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT " + PLANTED + b":x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        POST.encode() + b"Content-Length: " + PLANTED + b"\r\n\r\n",
        POST.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + PLANTED + b"\r\n",
    ],
)
async def test_what_is_no_http_is_repeated_neither_in_the_answer_nor_in_the_log(
    server: Server, sends: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be a token in a header that a program has put together wrongly."""
    caplog.set_level("DEBUG")
    async with server.connect(sends) as client:
        status, _, document = await client.answer()
    assert status == 400
    assert "planted" not in json.dumps(document)
    assert "planted" not in caplog.text


@pytest.mark.parametrize(
    "sends",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 100 + b"\r\n",
        POST.encode() + b"Transfer-Encoding: chunked\r\n\r\nno number\r\n",
        POST.encode() + b"Content-Length: 3\r\nContent-Encoding: gzip\r\n\r\nabc",
        POST.encode() + b"Content-Length: many\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_a_problem_document_and_not_in_the_log(
    server: Server, caplog: pytest.LogCaptureFixture, sends: bytes
) -> None:
    async with server.connect(sends) as client:
        status, headers, document = await client.answer()
        assert await client.is_ended()
    assert status == document["status"] == 400
    assert headers["Content-Type"].startswith("application/problem+json")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_an_expectation_that_is_none_is_a_problem_document(server: Server) -> None:
    async with server.connect(POST + "Content-Length: 3\r\nExpect: miracles\r\n\r\n{} ") as client:
        status, headers, document = await client.answer()
    assert status == document["status"] == 417
    assert headers["Content-Type"].startswith("application/problem+json")


@pytest.mark.parametrize("sends", [b"", b"GET /live HTTP/1.1\r\nHost: loc"])
async def test_a_header_that_does_not_end_ends_the_connection(
    server: Server, monkeypatch: pytest.MonkeyPatch, sends: bytes
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 0.1)
    async with server.connect(sends) as client, asyncio.timeout(30):
        assert await client.is_ended()


async def test_a_header_that_grows_without_end_ends_the_connection(server: Server) -> None:
    async with server.connect(LIVE) as client, asyncio.timeout(30):
        assert (await client.answer())[0] == 200
        client.writer.write(b"GET /live HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            for number in range(50):
                client.writer.write(b"X-%d: " % number + b"x" * 8_000 + b"\r\n")
                await client.writer.drain()
                await asyncio.sleep(0)
        assert await client.is_ended()


async def test_requests_that_are_sent_before_the_answer_are_answered_in_turn_but_not_without_end(
    server: Server,
) -> None:
    async with server.connect(LIVE * 20) as client:
        for _ in range(20):
            assert (await client.answer())[0] == 200
    large = LIVE.removesuffix(b"\r\n") + (b"X: " + b"x" * 8_000 + b"\r\n") * 7 + b"\r\n"
    async with server.connect(POST + "Content-Length: 2\r\n\r\n{") as client, asyncio.timeout(30):
        await eventually(lambda: server.connections == 1)
        client.writer.write(b"}" + large * 30)
        assert await client.is_ended()


async def test_a_connection_ends_when_it_has_been_idle_for_long(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "IDLE_S", 1.0)
    async with server.connect(LIVE) as client, asyncio.timeout(30):
        assert (await client.answer())[0] == 200
        client.writer.write(LIVE)
        assert (await client.answer())[0] == 200
        assert await client.is_ended()


async def test_a_body_that_does_not_end_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "TIMEOUT_S", 0.1)
    monkeypatch.setattr(connection, "LINGER_S", 0.1)
    async with server.connect(POST + "Content-Length: 10\r\n\r\n{") as client, asyncio.timeout(30):
        status, _, document = await client.answer()
        assert (status, document["title"]) == (408, "Request Timeout")
        assert document["type"] == "urn:light-scheduler:problem:request-timeout"
        assert await client.is_ended()


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_not_in_the_log(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with server.connect(POST + "Content-Length: 10\r\n\r\n{"):
        await eventually(lambda: server.connections == 1)
    await eventually(lambda: server.connections == 0)
    assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []


async def test_bodies_that_do_not_end_take_no_more_memory_than_is_set_aside(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "LINGER_S", 0.1)
    # Of 96 MiB, half is for one. Each reserves what it says, or the largest size where it does not say.
    sends = [POST + f"Content-Length: {MIB}\r\n\r\n", POST + "Transfer-Encoding: chunked\r\n\r\n"] * 30
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(server.connect(each)) for each in sends]
        refused = [asyncio.create_task(client.answer()) for client in clients]
        await eventually(lambda: sum(task.done() for task in refused) >= 27)
        async with server.connect(LIVE) as other:
            assert (await other.answer())[0] == 200
        held = [size for task, size in zip(refused, [1, 2] * 30, strict=True) if not task.done()]
        assert 46 <= sum(held) <= 48
        for task in refused:
            if task.done():
                status, headers, document = task.result()
                assert (status, headers["Retry-After"], document["status"]) == (429, "1", 429)
            task.cancel()
    await eventually(lambda: server.connections == 0)
    async with server.connect(POST + "Content-Length: 32\r\n\r\n" + '{"trigger": {"every": "1m"}}    ') as client:
        assert (await client.answer())[0] == 200, "what was set aside is free again"


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 3)
    return 3


async def test_beyond_the_most_connections_a_newcomer_is_refused(
    most: int, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(most):
            await stack.enter_async_context(server.connect(POST + "Content-Length: 10\r\n\r\n{"))
        await eventually(lambda: server.connections == most)
        for _ in range(20):
            async with server.connect() as refused:
                status, headers, document = await refused.answer()
                assert (status, headers["Retry-After"], document["status"]) == (503, "1", 503)
                assert document["type"] == "urn:light-scheduler:problem:too-many-connections"
        assert await asyncio.to_thread(takes_connections, *server.runner.addresses[0][:2], timeout=30)
        assert server.connections == most
    await eventually(lambda: server.connections == 0)
    assert await asyncio.to_thread(takes_connections, *server.runner.addresses[0][:2], timeout=30)
    async with server.connect(LIVE) as client:
        assert (await client.answer())[0] == 200
    assert [record.getMessage() for record in caplog.records] == ["3 HTTP connections are open: no more are taken"]


async def test_beyond_the_most_connections_the_one_that_was_idle_for_longest_gives_way(
    most: int, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "IDLE_LEAST_S", 0)
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(most):
            client = await stack.enter_async_context(server.connect(LIVE))
            assert (await client.answer())[0] == 200
            clients.append(client)
        async with server.connect(LIVE) as newcomer:
            assert (await newcomer.answer())[0] == 200
        assert await clients[0].is_ended()
        for client in clients[1:]:
            client.writer.write(LIVE)
            assert (await client.answer())[0] == 200


async def test_without_descriptors_there_is_one_line_in_the_log_and_it_goes_on_when_there_are_some(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listener, "_RETRY_S", 0.01)
    unhandled: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    tries = 0
    pause = listener.Listener._pause

    def counted(self: listener.Listener, seconds: float) -> None:
        nonlocal tries
        tries += 1
        pause(self, seconds)

    monkeypatch.setattr(listener.Listener, "_pause", counted)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        # The system connects them, before the server takes them.
        clients = [stack.enter_context(socket.create_connection(server.runner.addresses[0])) for _ in range(5)]
        lowest_free = os.dup(0)
        os.close(lowest_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            await eventually(lambda: tries > 20)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for client in clients:
            client.sendall(LIVE)
        for client in clients:
            assert (await asyncio.to_thread(client.recv, 100)).startswith(b"HTTP/1.1 200")
    assert unhandled == []
    assert [record.getMessage() for record in caplog.records] == ["cannot take HTTP connections: Too many open files"]


class Slow:
    """A server of large answers whose clients do not read."""

    SIZE = 32 * MIB

    @staticmethod
    async def handle(request: web.Request) -> web.Response:
        HOLDER.set(request.query.get("of", ""))
        return web.Response(body=bytes(Slow.SIZE))


async def test_a_client_that_does_not_read_its_answer_is_dropped_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SEND_S", 0.1)
    application = web.Application()
    application.router.add_get("/live", Slow.handle)
    async with serving(application) as server, server.connect(LIVE):
        await eventually(lambda: server.connections == 1)
        await eventually(lambda: server.connections == 0)


async def test_answers_that_are_not_read_take_no_more_memory_than_is_set_aside() -> None:
    application = web.Application()
    application.router.add_get("/live", Slow.handle)
    async with serving(application) as server, AsyncExitStack() as stack:
        assert connection.MOST_UNSENT_BYTES == 2 * Slow.SIZE
        for holder, is_taken in (("a", True), ("a", False), ("b", True), ("c", False)):
            client = await stack.enter_async_context(
                server.connect(LIVE.replace(b"/live", b"/live?of=%c" % ord(holder)))
            )
            if is_taken:
                assert await client.reader.readexactly(12) == b"HTTP/1.1 200"
            else:
                status, headers, _ = await client.answer()
                assert (status, headers["Retry-After"]) == (429, "1")


async def test_a_connection_that_was_closed_and_cannot_send_the_rest_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "CLOSE_S", 0)
    monkeypatch.setattr(listener, "_STUCK_CHECK_S", 0.05)
    application = web.Application()
    application.router.add_get("/live", Slow.handle)
    async with serving(application) as server, server.connect(LIVE) as client:
        await client.reader.readexactly(1)
        assert server.runner.server is not None
        (open_connection,) = server.runner.server.connections
        open_connection.force_close()
        await eventually(lambda: server.connections == 0)


@asynccontextmanager
async def sharing(application: web.Application, shared: socket.socket) -> AsyncIterator[Server]:
    """Serve at a socket as one of several processes does."""
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await LimitedSite(runner, "127.0.0.1", 0, [shared]).start()
    try:
        yield Server(runner)
    finally:
        await runner.cleanup()


async def page(_: web.Request) -> web.Response:
    return web.json_response("here")


async def test_a_full_process_leaves_connections_to_one_that_has_room_and_refuses_when_none_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applications = [web.Application(), web.Application()]
    for application in applications:
        application.router.add_get("/live", page)
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        listening.setblocking(False)
        address = listening.getsockname()
        servers = []
        monkeypatch.setattr(listener, "IDLE_LEAST_S", 60.0)
        for application, most in zip(applications, (4, 1), strict=True):
            monkeypatch.setattr(listener, "MOST_CONNECTIONS", most)
            servers.append(await stack.enter_async_context(sharing(application, listening.dup())))
        roomy, full = servers  # the one that began last is woken first
        await stack.enter_async_context(full.connect(LIVE[:-2]))
        await eventually(lambda: full.connections == 1, what="the one connection that it may have")

        clients: list[Client] = []

        async def asked() -> int:
            client = Client(*await asyncio.open_connection(*address[:2]))
            clients.append(client)
            stack.callback(client.writer.transport.abort)
            client.writer.write(LIVE)
            return (await client.answer())[0]

        assert [await asked() for _ in range(4)] == [200] * 4
        assert (full.connections, roomy.connections) == (1, 4)
        assert await asked() == 503
