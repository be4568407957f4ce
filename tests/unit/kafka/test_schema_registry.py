"""What is asked of a schema registry, and what waits for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from support.foreign import SKYUK_SCHEMA, record, skyuk_avro, skyuk_json
from support.partition import AT
from support.registry import FakeRegistry
from support.waiting import eventually

from light_scheduler.host.ports import free_port
from light_scheduler.kafka import schema_registry
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.lanes.readable import Readable
from light_scheduler.wire import dialect_named
from light_scheduler.wire.record import CommandRecord
from light_scheduler.wire.schemas import Schemas


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(schema_registry, "LAST_RETRY_S", 0.02)


@asynccontextmanager
async def asking(address: str) -> AsyncIterator[SchemaRegistry]:
    registry = SchemaRegistry(address, Schemas())
    try:
        yield registry
    finally:
        await registry.close()


async def told(registry: SchemaRegistry, id: int) -> None:
    answered = asyncio.Event()
    registry.ask_for(id, answered.set)
    async with asyncio.timeout(5):
        await answered.wait()


async def test_a_schema_is_known_once_the_registry_has_answered() -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    async with server.serve(free_port()) as address, asking(address) as registry:
        await asyncio.gather(told(registry, 7), told(registry, 7))
        assert registry.schemas.get(7) == SKYUK_SCHEMA
    assert server.asked == [7]


async def test_a_registry_that_is_down_is_asked_until_it_is_back() -> None:
    port = free_port()
    async with asking(f"http://user:secret@127.0.0.1:{port}") as registry:
        waiting = asyncio.create_task(told(registry, 7))
        trouble = await trouble_of(registry)
        assert f"127.0.0.1:{port}" in trouble
        assert "secret" not in trouble
        server = FakeRegistry({7: SKYUK_SCHEMA})
        server.failing = 503
        async with server.serve(port):
            await eventually(lambda: server.asked)
            assert 7 not in registry.schemas
            server.failing = None
            await waiting
        assert 7 in registry.schemas


async def trouble_of(registry: SchemaRegistry) -> str:
    return await eventually(lambda: registry.trouble, within=5)


@pytest.mark.parametrize(
    ("id", "more", "reason"),
    [
        (8, {}, "does not have it"),
        (7, {"schemaType": "PROTOBUF"}, "PROTOBUF, not AVRO"),
        (7, {"references": [{"name": "a", "subject": "a", "version": 1}]}, "refers to other schemas"),
        (7, {"schema": "{"}, "is not JSON"),
    ],
)
async def test_a_schema_that_there_will_never_be_is_refused_with_the_reason(
    id: int, more: dict[str, object], reason: str
) -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    server.more[7] = more
    async with server.serve(free_port()) as address, asking(address) as registry:
        await told(registry, id)
        with pytest.raises(ValueError, match=reason):
            registry.schemas.get(id)


async def test_what_is_no_registry_refuses_no_schema() -> None:
    asked = asyncio.Event()

    async def nothing_here(_request: web.Request) -> web.Response:
        asked.set()
        return web.Response(status=404, text="nothing here")

    app = web.Application()
    app.router.add_get("/{path:.*}", nothing_here)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_port()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with asking(f"http://127.0.0.1:{port}/elsewhere") as registry:
            registry.ask_for(7, asked.set)
            assert "it answers 404" in await trouble_of(registry)
            assert 7 not in registry.schemas
    finally:
        await runner.cleanup()


def waiting() -> Iterator[CommandRecord]:
    values = [skyuk_json(AT), skyuk_avro(AT), skyuk_avro(AT, id=7), skyuk_json(AT)]
    return iter([record(b"a", value, [], offset=n) for n, value in enumerate(values)])


async def test_commands_are_read_up_to_the_first_whose_schema_is_not_known() -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    async with server.serve(free_port()) as address, asking(address) as registry:
        woken = asyncio.Event()
        readable = Readable(dialect_named("skyuk", registry.schemas), registry, woken.set)
        assert readable.count(waiting(), 1) == 1
        assert readable.count(waiting(), 100) == 2
        assert not readable.is_held
        rest = list(waiting())[2:]
        assert readable.count(iter(rest), 100) == 0
        assert (readable.is_held, readable.reason is None) == (True, False)
        await woken.wait()
        assert readable.count(iter(rest), 100) >= 2
        assert readable.reason is None


async def test_commands_of_a_dialect_without_schemas_never_wait_for_the_registry() -> None:
    async with asking("http://127.0.0.1:1") as registry:
        readable = Readable(dialect_named("etf1"), registry, lambda: None)
        assert readable.count(waiting(), 100) == 100


def test_without_a_registry_every_command_can_be_read() -> None:
    readable = Readable(dialect_named("skyuk"), None, lambda: None)
    assert readable.count(waiting(), 100) == 100
