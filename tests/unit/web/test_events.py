"""Server-sent events: documents over one connection, again and again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from light_scheduler.access import ANYONE, Identity
from light_scheduler.model import Requester
from light_scheduler.web import events, overview
from light_scheduler.web.access.guard import IDENTITY, STILL_ADMITTED
from light_scheduler.web.events import EventHandlers

EVENTS = "/api/v1/events"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let events follow each other at once, and each be of its moment."""
    monkeypatch.setattr(events, "EVERY_S", 0.01)
    monkeypatch.setattr(overview, "FRESH_S", 0.0)


async def event(response: Any) -> tuple[str, Any]:
    """Return the name and the document of the next event."""
    name, document = (await response.content.readuntil(b"\n\n")).decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(document.removeprefix("data: "))


async def test_an_overview_follows_the_other_as_schedules_come(cluster: Any, workers: Any) -> None:
    async with workers[1].client.get(EVENTS) as response:
        assert (response.status, response.content_type) == (200, "text/event-stream")
        assert response.headers["Cache-Control"] == "no-store"
        name, document = await event(response)
        assert (name, document["pending"]) == ("overview", 0)
        cluster.put("a", partition=2)
        while document["pending"] == 0:
            _, document = await event(response)
        assert document["pending"] == 1


async def test_one_stream_has_all_that_was_asked_for(workers: Any) -> None:
    async with workers[0].client.get(EVENTS + "?of=cluster&of=overview") as response:
        (first, cluster), (second, document) = await event(response), await event(response)
    assert (first, second) == ("cluster", "overview")
    assert {worker["url"] for worker in cluster["workers"]} == {worker.url for worker in workers}
    assert document["missing"] == []


async def test_nothing_follows_the_header_that_a_head_request_gets(workers: Any) -> None:
    host, port = workers[0].client.host, workers[0].client.port
    reader, writer = await asyncio.open_connection(host, port)
    ask = "{} {} HTTP/1.1\r\nHost: localhost\r\n\r\n".format
    try:
        async with asyncio.timeout(30):
            writer.write(ask("HEAD", EVENTS).encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 OK")
            writer.write(ask("GET", "/live").encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 OK"), "the answer to the next request"
    finally:
        writer.transport.abort()


async def test_documents_of_a_stream_are_made_side_by_side() -> None:
    """A worker that does not answer holds up each of them for some seconds."""
    begun = asyncio.Barrier(2)

    async def made(request: Any) -> bytes:
        await begun.wait()
        return b"{}"

    handlers = EventHandlers({"cluster": made, "overview": made})
    application = web.Application()

    @web.middleware
    async def admitted(request: web.Request, handler: Any) -> Any:
        async def still() -> Identity:
            return ANYONE

        request[IDENTITY], request[STILL_ADMITTED] = ANYONE, still
        return await handler(request)

    application.middlewares.append(admitted)
    application.add_routes([web.get(EVENTS, handlers.events)])
    async with (
        TestClient(TestServer(application)) as client,
        client.get(EVENTS + "?of=cluster&of=overview") as response,
    ):
        async with asyncio.timeout(30):
            assert [(await event(response))[0] for _ in range(2)] == ["cluster", "overview"]
        await handlers.end(application)


@pytest.mark.parametrize(("query", "field"), [("?of=schedules", "of"), ("?every=1", "every")])
async def test_what_cannot_be_sent_is_refused_by_its_parameter(workers: Any, query: str, field: str) -> None:
    problem = await workers[0].json(EVENTS + query, status=400)
    assert problem["parameter"] == field


async def test_a_token_for_a_tenant_gets_its_counts_and_not_the_cluster(cluster: Any, workers: Any) -> None:
    cluster.put("a", tenant="acme")
    cluster.put("b", tenant="shop")
    headers = {"Authorization": f"Bearer {await cluster.token('read', 'acme')}"}
    async with workers[0].client.get(EVENTS, headers=headers) as response:
        _, document = await event(response)
    assert document["tenants"] == [{"tenant": "acme", "pending": 1}]
    await workers[0].ask("GET", EVENTS + "?of=cluster", 403, headers=headers)


async def test_a_stream_ends_with_the_token_that_opened_it(cluster: Any, workers: Any) -> None:
    text = await cluster.token("read")
    async with workers[0].client.get(EVENTS, headers={"Authorization": f"Bearer {text}"}) as response:
        await event(response)
        await workers[0].access.store.revoke(text.split("_")[1], by=Requester("test", ""))
        await response.content.read()


async def test_a_worker_that_stops_ends_its_streams_at_once(workers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVERY_S", 3_600.0)
    async with workers[0].client.get(EVENTS) as response:
        await event(response)
        application = workers[0].client.server.app
        await application.shutdown()
        assert await response.content.read() == b""


async def test_more_streams_than_a_worker_has_are_refused_until_one_ends(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_STREAMS", 1)
    workers = await cluster.start([0, 2], [1, 3])
    async with workers[0].client.get(EVENTS) as response:
        await event(response)
        problem = await workers[0].json(EVENTS, status=429)
        assert "too many streams" in problem["detail"]
    while (again := await workers[0].client.get(EVENTS)).status == 429:
        again.close()
        await asyncio.sleep(0)
    assert (await event(again))[0] == "overview"
    again.close()
