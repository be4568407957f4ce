"""What is asked of a schema registry, and what waits for its answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from support.foreign import SKYUK_SCHEMA, record, skyuk_avro, skyuk_json
from support.partition import AT, Partition
from support.producing import FakeProducer
from support.registry import FakeRegistry
from support.waiting import eventually

from light_scheduler.clock import SettableClock
from light_scheduler.connection import Secret
from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka import schema_registry
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.lanes.input.readable import Readable
from light_scheduler.lanes.lane import Lane
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables.services import LaneServices
from light_scheduler.wire import dialect_named
from light_scheduler.wire.record import CommandRecord
from light_scheduler.wire.schemas import LAST_ID, MOST_KEPT, NEEDED_S, REFUSED_S, Schemas


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(schema_registry, "LAST_RETRY_S", 0.02)


@asynccontextmanager
async def asking(address: str, *login: Any, schemas: Schemas | None = None) -> AsyncIterator[SchemaRegistry]:
    registry = SchemaRegistry(RegistryAccess(address, *login), schemas or Schemas())
    try:
        yield registry
    finally:
        await registry.close()


async def told(registry: SchemaRegistry, id: int) -> None:
    answered = asyncio.Event()
    registry.ask_for(id, answered.set)
    async with asyncio.timeout(60):
        await answered.wait()


async def test_a_schema_is_known_once_the_registry_has_answered() -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    async with server.serve(free_port()) as address, asking(address) as registry:
        await asyncio.gather(told(registry, 7), told(registry, 7))
        assert registry.schemas.get(7) == SKYUK_SCHEMA
    assert server.asked == [7]


async def test_a_registry_that_is_down_is_asked_until_it_is_back() -> None:
    port = free_port()
    async with asking(f"http://127.0.0.1:{port}") as registry:
        waiting = asyncio.create_task(told(registry, 7))
        assert f"127.0.0.1:{port}" in await trouble_of(registry, 7)
        server = FakeRegistry({7: SKYUK_SCHEMA})
        server.failing = 503
        async with server.serve(port):
            await eventually(lambda: server.asked)
            assert 7 not in registry.schemas
            server.failing = None
            await waiting
        assert 7 in registry.schemas


async def test_who_asks_is_told_once_that_the_registry_cannot_be_asked() -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    server.failing = 503
    troubled: list[str | None] = []
    async with server.serve(free_port()) as address, asking(address) as registry:
        registry.ask_for(7, lambda: None, lambda: troubled.append(registry.trouble_with(7)))
        assert troubled == []
        await eventually(lambda: len(server.asked) >= 3)
    assert [reason is not None and "503" in reason for reason in troubled] == [True]


async def test_who_is_forgotten_is_told_of_no_trouble() -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    server.failing = 503
    forgotten, stays = asyncio.Event(), asyncio.Event()
    async with server.serve(free_port()) as address, asking(address) as registry:
        registry.ask_for(7, forgotten.set, forgotten.set)
        registry.ask_for(7, stays.set, stays.set)
        registry.forget(forgotten.set)
        async with asyncio.timeout(60):
            await stays.wait()
    assert not forgotten.is_set()


async def trouble_of(registry: SchemaRegistry, id: int) -> str:
    return await eventually(lambda: registry.trouble_with(id))


@pytest.mark.parametrize(
    ("id", "more", "reason"),
    [
        (8, {}, "does not have it"),
        (7, {"schemaType": "PROTOBUF"}, "PROTOBUF, not AVRO"),
        (7, {"references": [{"name": "a", "subject": "a", "version": 1}]}, "does not have version 1 of the subject a"),
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
            assert "it answers 404" in await trouble_of(registry, 7)
            assert 7 not in registry.schemas
    finally:
        await runner.cleanup()


async def test_a_schema_that_was_missing_is_asked_for_again_after_a_while() -> None:
    passed, server = [0.0], FakeRegistry({})
    schemas = Schemas(lambda: passed[-1])
    async with server.serve(free_port()) as address, asking(address, schemas=schemas) as registry:
        await told(registry, 7)
        passed.append(REFUSED_S - 0.1)
        assert 7 in schemas
        passed.append(REFUSED_S)
        assert 7 not in schemas
        with pytest.raises(ValueError, match="does not have it"):  # of a command that was let through before
            schemas.get(7)
        server.schemas[7] = SKYUK_SCHEMA
        await told(registry, 7)
        assert schemas.get(7) == SKYUK_SCHEMA


def test_ids_that_were_not_needed_for_long_are_forgotten_when_there_are_too_many() -> None:
    passed = [0.0]
    schemas = Schemas(lambda: passed[-1])
    for id in range(2 * MOST_KEPT):
        schemas.note(id, {})
        schemas.refuse(LAST_ID - id, "missing")
    passed.append(NEEDED_S)
    needed = {*range(0, 2 * MOST_KEPT, 4)}
    assert all(id in schemas for id in needed)
    passed.append(NEEDED_S + 1)
    schemas.note(2 * MOST_KEPT, {})
    schemas.refuse(LAST_ID - 2 * MOST_KEPT, "missing")
    found = {id for id in range(2 * MOST_KEPT + 1) if said_of(schemas, id) == {}}
    assert len(found) == MOST_KEPT
    assert needed | {2 * MOST_KEPT} <= found
    refused = {id for id in range(2 * MOST_KEPT + 1) if said_of(schemas, LAST_ID - id) == "missing"}
    assert refused == {*range(MOST_KEPT + 1, 2 * MOST_KEPT + 1)}


def said_of(schemas: Schemas, id: int) -> Any:
    """Return a schema, or why there is none."""
    try:
        return schemas.get(id)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("as_file", [False, True])
async def test_a_registry_is_logged_in_to_and_the_password_is_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, as_file: bool
) -> None:
    caplog.set_level(logging.DEBUG)
    file, server = tmp_path / "password", FakeRegistry({7: SKYUK_SCHEMA})
    file.write_text("pässword\n")
    login = ("user", None, file) if as_file else ("user", Secret("pässword"))
    server.login = ("user", "pässword")
    async with server.serve(free_port()) as address, asking(address, *login) as registry:
        await told(registry, 7)
        assert registry.schemas.get(7) == SKYUK_SCHEMA
        server.login = ("user", "another")
        registry.ask_for(8, lambda: None)
        trouble = await trouble_of(registry, 8)
    assert "401" in trouble
    assert "schema_registry_password" in trouble
    assert "pässword" not in trouble + caplog.text + repr(registry._client._access)


async def test_a_denial_is_asked_about_less_and_less_often_and_told_of_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses: list[float] = []
    passed = [0.0]
    monkeypatch.setattr(schema_registry, "FIRST_RETRY_S", 0.5)
    monkeypatch.setattr(schema_registry, "time", SimpleNamespace(monotonic=lambda: passed[-1]))
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        passed.append(passed[-1] + seconds)
        if len(pauses) == 10:
            enough.set()
            await asyncio.Event().wait()

    monkeypatch.setattr(schema_registry, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": sleep}))
    server = FakeRegistry({})
    server.failing = 403
    async with server.serve(free_port()) as address, asking(address) as registry:
        registry.ask_for(7, lambda: None)
        async with asyncio.timeout(60):
            await enough.wait()
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30]
    warnings = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert len(warnings) == 3, "of tries at 0 s, 0.5 s and so on, those at 0 s, 61.5 s and 121.5 s"


def lane_of(registry: SchemaRegistry, state_path: Path) -> Lane:
    """Return a lane that reads Avro, and that is not started: it needs no broker then."""
    unused: Any = None
    targets: Any = SimpleNamespace(outages=SimpleNamespace(changed=[]))
    context = replace(
        Partition(FakeProducer()).context, dialect=dialect_named("skyuk", registry.schemas), targets=targets
    )
    services = LaneServices(
        clients=cast(Any, SimpleNamespace(fence=unused)),
        group="group",
        clock=SettableClock(AT),
        confirm=unused,
        changelog_facts=unused,
        commands_ids=unused,
        new_timer=lambda _tick: cast(Any, SimpleNamespace(cancel=lambda: None)),
        make_room=unused,
        fail=unused,
        schema_registry=registry,
    )
    return Lane(context, services, state_path)


async def test_what_no_lane_waits_for_is_not_asked_for(tmp_path: Path) -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    server.failing = 503
    async with server.serve(free_port()) as address, asking(address) as registry:
        stays, lane = asyncio.Event(), lane_of(registry, tmp_path)
        for id in (7, 8):
            assert lane.readable.count(iter([record(b"a", skyuk_avro(AT, id=id), [])]), 100) == 0
            assert "503" in await trouble_of(registry, id)
        registry.ask_for(7, stays.set)
        await lane.close()
        asked = len(server.asked)
        server.failing = None
        async with asyncio.timeout(60):
            await stays.wait()
        assert registry.trouble_with(8) is None
        assert set(server.asked[asked:]) == {7}


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
        again = iter(rest)
        assert readable.count(again, 100) == 0
        assert len(list(again)) == len(rest) - 1, "no more than the first is looked at while that waits"
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


async def test_a_delayed_command_waits_for_its_schema_after_a_restart() -> None:
    server = FakeRegistry({7: SKYUK_SCHEMA})
    async with server.serve(free_port()) as address, asking(address) as before, asking(address) as after:
        await told(before, 7)
        partition = Partition(FakeProducer(), dialect="skyuk")
        partition.dialect = dialect_named("skyuk", before.schemas)
        rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=1)
        partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
        commands = [record(b"%d" % n, skyuk_avro(AT + 10_000, id=7), [], offset=n) for n in range(2)]
        await partition.run(*commands)
        assert partition.table.pending == 1

        woken = asyncio.Event()
        partition.dialect = dialect_named("skyuk", after.schemas)
        partition.can_read = Readable(partition.dialect, after, woken.set).can_read
        for is_behind in (False, True):
            cycle = await partition.run(now=AT + 1_000, is_behind=is_behind)
            assert (cycle.outcomes, cycle.delaying.waiting) == ({}, 1)
        async with asyncio.timeout(60):
            await woken.wait()
        await partition.run(now=AT + 1_000)
        assert partition.table.pending == 2
