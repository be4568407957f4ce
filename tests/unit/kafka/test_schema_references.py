"""Schemas of a registry that refer to others: what is asked for, and what commands are read with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from typing import Any

import pytest
from support.foreign import LIGHT4J_KEY, LIGHT4J_VALUE, LONG, SKYUK_SCHEMA, avro, record, task, task_key
from support.partition import AT, HOUR
from support.registry import FakeRegistry
from support.waiting import eventually

from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.errors import InvalidCommand
from light_scheduler.host.ports import free_port
from light_scheduler.kafka import schema_registry
from light_scheduler.kafka.schema_references import MOST_REFERENCES
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.model import FixedRate, ScheduleCommand
from light_scheduler.wire import dialect_named
from light_scheduler.wire.schemas import Schemas

DUE = AT + LONG * HOUR
VALUE: dict[str, Any] = deepcopy(LIGHT4J_VALUE)
FREQUENCY = VALUE["fields"][3]["type"][1]
UNIT = FREQUENCY["fields"][0]["type"]
SPACE = LIGHT4J_KEY["namespace"]
FREQUENCY |= {"namespace": SPACE}
UNIT |= {"namespace": SPACE}
FREQUENCY_NAME, UNIT_NAME = (f"{SPACE}.{each['name']}" for each in (FREQUENCY, UNIT))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_registry, "FIRST_RETRY_S", 0.01)
    monkeypatch.setattr(schema_registry, "LAST_RETRY_S", 0.02)


@pytest.fixture
def server() -> FakeRegistry:
    """A registry that has light-4j's schemas in three subjects: of tasks, of frequencies and of their units."""
    frequency, value = deepcopy(FREQUENCY), deepcopy(LIGHT4J_VALUE)
    frequency["fields"][0]["type"] = UNIT["name"]
    value["fields"][3]["type"] = ["null", FREQUENCY["name"]]
    server = FakeRegistry({1: LIGHT4J_KEY, 7: value})
    unit = server.refer(UNIT_NAME, "units/of time", 3, UNIT)
    server.more[7] = {"references": [server.refer(FREQUENCY_NAME, "frequencies", 1, frequency, unit)]}
    return server


@pytest.fixture
async def registry(server: FakeRegistry) -> AsyncIterator[SchemaRegistry]:
    async with server.serve(free_port()) as address:
        registry = SchemaRegistry(RegistryAccess(address), Schemas())
        yield registry
        await registry.close()


async def told(registry: SchemaRegistry, *ids: int) -> None:
    for id in ids:
        answered = asyncio.Event()
        registry.ask_for(id, answered.set)
        async with asyncio.timeout(60):
            await answered.wait()


def read(registry: SchemaRegistry) -> ScheduleCommand:
    value = b"\0" + (7).to_bytes(4) + task(DUE, host="h")
    command = dialect_named("light4j", registry.schemas).decode(record(task_key("a", "h"), value, []))
    assert isinstance(command, ScheduleCommand)
    return command


async def test_a_command_is_read_whose_schema_refers_to_others(server: FakeRegistry, registry: SchemaRegistry) -> None:
    await told(registry, 7)
    assert read(registry).timing == FixedRate(LONG * HOUR, AT)
    assert server.asked_versions == [("frequencies", 1), ("units/of time", 3)]


async def test_a_version_that_was_deleted_from_its_subject_is_still_read(
    server: FakeRegistry, registry: SchemaRegistry
) -> None:
    server.deleted = {("units/of time", 3)}
    await told(registry, 7)
    assert read(registry).timing == FixedRate(LONG * HOUR, AT)


@pytest.mark.parametrize(
    ("subject", "more", "reason"),
    [
        ("frequencies", None, "does not have version 1 of the subject frequencies"),
        ("units/of time", None, "does not have version 3 of the subject units/of time"),
        (
            "units/of time",
            {"schemaType": "JSON"},
            "version 3 of the subject units/of time.* JSON, not AVRO",
        ),
        ("units/of time", {"schema": "{"}, "version 3 of the subject units/of time.*is not JSON"),
        ("units/of time", {"schema": "{}"}, "no Avro schema"),
        ("units/of time", {"schema": '"string"'}, "TimeUnit"),
    ],
)
async def test_a_reference_that_leads_nowhere_is_named_in_the_dead_letter(
    server: FakeRegistry, registry: SchemaRegistry, subject: str, more: dict[str, Any] | None, reason: str
) -> None:
    version = next(each for each in server.versions if each[0] == subject)
    if more is None:
        del server.versions[version]
    else:
        server.versions[version] |= more
    await told(registry, 7)
    with pytest.raises(InvalidCommand, match=reason):
        read(registry)


async def test_a_schema_that_refers_to_very_many_others_is_refused(
    server: FakeRegistry, registry: SchemaRegistry
) -> None:
    several = [
        server.refer(f"T{n}", "many", n, {"type": "fixed", "size": 1, "name": f"T{n}"})
        for n in range(MOST_REFERENCES + 1)
    ]
    server.more[7] = {"references": several}
    await told(registry, 7)
    with pytest.raises(InvalidCommand, match=f"more than {MOST_REFERENCES} schemas"):
        read(registry)
    assert len(server.asked_versions) == MOST_REFERENCES


async def test_schemas_that_refer_to_each_other_are_asked_for_once(
    server: FakeRegistry, registry: SchemaRegistry
) -> None:
    server.versions["units/of time", 3]["references"] = server.more[7]["references"]
    await told(registry, 7)
    assert read(registry).timing == FixedRate(LONG * HOUR, AT)
    assert len(server.asked_versions) == 2


@pytest.mark.parametrize("status", [400, 403, 410, 429, 500, 503])
async def test_a_command_waits_until_all_references_are_known(
    server: FakeRegistry, registry: SchemaRegistry, status: int
) -> None:
    await told(registry, 1)
    server.failing = status
    waiting = asyncio.create_task(told(registry, 7))
    assert str(status) in await eventually(lambda: registry.trouble_with(7))
    assert 7 not in registry.schemas
    server.failing = None
    await waiting
    assert read(registry).timing == FixedRate(LONG * HOUR, AT)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422, 500])
async def test_what_a_known_id_stands_for_does_not_change_whatever_the_registry_answers_then(
    server: FakeRegistry, registry: SchemaRegistry, status: int
) -> None:
    await told(registry, 7)
    asked = list(server.asked)
    server.schemas.clear()
    server.versions.clear()
    if status != 404:
        server.failing = status
    assert 7 in registry.schemas
    assert read(registry).timing == FixedRate(LONG * HOUR, AT)
    assert dialect_named("light4j", registry.schemas).schema_ids(record(task_key("a", "h"), None, [])) == ()
    if status == 404:
        await told(registry, 7)
        assert read(registry).timing == FixedRate(LONG * HOUR, AT)
    else:
        assert server.asked == asked


async def test_types_of_skyuk_may_be_in_other_schemas(server: FakeRegistry, registry: SchemaRegistry) -> None:
    schema = deepcopy(SKYUK_SCHEMA)
    headers = {"type": "map", "values": "Content"}
    schema["fields"][4]["type"] = headers
    content = {"type": "fixed", "name": "Content", "size": 2}
    server.schemas[8] = schema
    server.more[8] = {"references": [server.refer("Content", "contents", 1, content)]}
    await told(registry, 8)
    whole = deepcopy(schema)
    whole["fields"][4]["type"]["values"] = content
    document = {"time": AT, "topic": "t", "key": b"k", "value": b"v", "headers": {"kind": b"ab"}}
    command = dialect_named("skyuk", registry.schemas).decode(record(b"a", avro(whole, document, 8), []))
    assert isinstance(command, ScheduleCommand)
    assert command.headers == [("kind", b"ab")]
    assert json.loads(json.dumps(registry.schemas.get(8))) == registry.schemas.get(8)


@pytest.mark.parametrize(
    ("fields", "body", "reason"),
    [
        ([{"name": "a", "type": "Content"}], b"a", r"is not Avro of the schema Bare \(EOFError"),
        ([{"name": "a", "type": "Content"}, {"name": "b", "type": "Bare"}], b"", "id 9: Bare contains itself"),
    ],
)
async def test_a_dead_letter_names_a_schema_as_its_registry_does(
    server: FakeRegistry, registry: SchemaRegistry, fields: list[Any], body: bytes, reason: str
) -> None:
    server.schemas[9] = {"type": "record", "name": "Bare", "fields": fields}
    content = {"type": "fixed", "name": "Content", "size": 2}
    server.more[9] = {"references": [server.refer("Content", "contents", 1, content)]}
    await told(registry, 9)
    with pytest.raises(InvalidCommand, match=reason):
        dialect_named("skyuk", registry.schemas).decode(record(b"a", b"\0" + (9).to_bytes(4) + body, []))
