"""Dead letters whose Avro only a schema registry can tell of."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from support.foreign import LIGHT4J_KEY, LIGHT4J_VALUE, SKYUK_SCHEMA, avro, task, task_key
from support.registry import FakeRegistry
from support.web_cluster import commands as decoded_commands

from light_scheduler.host.ports import free_port
from light_scheduler.web.records import command_dialects
from light_scheduler.wire import decode_history, dialect_named, partition_for
from light_scheduler.wire.schemas import FRAME, Schemas

from .test_dead_letters import COMMANDS, HISTORY, HOUR, NOW, PATH, add_letter
from .test_decoding import running

HOST = "networknt.com"
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
REORDERED = {**SKYUK_SCHEMA, "fields": SKYUK_SCHEMA["fields"][::-1]}
DOCUMENT = {"time": NOW, "topic": "out", "key": b"k", "value": b"v", "headers": {}}


def with_start(type: Any) -> dict[str, Any]:
    """Return light-4j's schema of values with another type of start."""
    fields = [{**each, "type": type} if each["name"] == "start" else each for each in LIGHT4J_VALUE["fields"]]
    return {**LIGHT4J_VALUE, "fields": fields}


@pytest.mark.parametrize(("type", "told"), [(["null", "long"], NOW - HOUR), (["null", MICROS], None)], ids=str)
async def test_a_task_without_a_start_tells_when_it_was_due_only_if_its_schema_has_that_in_ms(
    type: Any, told: int | None
) -> None:
    schema, key = with_start(type), task_key(id=1)
    registry = FakeRegistry({1: LIGHT4J_KEY, 2: schema})
    async with (
        registry.serve(free_port()) as address,
        running(schema_registry=address, commands_topics=f"{COMMANDS}:light4j") as (cluster, workers),
    ):
        value = task(NOW, id=2, schema=schema, start=None)
        letter = add_letter(cluster, "refused", tenant=HOST, key=key, value=value, headers=[])
        await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200)
        (sent,) = cluster.topics.records["out"][partition_for(key, 2)]
    assert sent.value is not None
    message: Any = fastavro.schemaless_reader(BytesIO(sent.value[FRAME.size :]), fastavro.parse_schema(schema), None)
    assert message["start"] == told


async def test_a_task_is_delivered_as_it_was_sent_while_the_registry_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_dialects, "SCHEMA_TIMEOUT_S", 0.2)
    settings = {"schema_registry": f"http://127.0.0.1:{free_port()}", "commands_topics": f"{COMMANDS}:light4j"}
    async with running(**settings) as (cluster, workers):
        key, value = task_key(id=1), task(NOW, id=2, schema=with_start(["null", MICROS]), start=None)
        letter = add_letter(cluster, "refused", tenant=HOST, key=key, value=value, headers=[])
        await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200)
        (sent,) = cluster.topics.records["out"][partition_for(key, 2)]
    assert sent.value == value


async def test_a_firing_tells_when_it_was_sent_and_not_when_its_schema_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with running(commands_topics=f"{COMMANDS}:light4j") as (cluster, workers):

        async def waits_long(*_: object) -> str:
            cluster.clock.set(NOW + HOUR)
            return "no answer"

        monkeypatch.setattr(command_dialects.CommandDialects, "trouble_reading", waits_long)
        letter = add_letter(cluster, "refused", tenant=HOST, key=task_key(), value=task(NOW), headers=[])
        await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200)
        event = decode_history(cluster.topics.records[HISTORY][0][0].value)
    assert event.at == NOW + HOUR


async def test_a_token_for_some_tenants_sends_a_command_again_whose_schema_only_the_registry_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command_dialects, "SCHEMA_TIMEOUT_S", 0.2)
    schemas, registry, port = Schemas(), FakeRegistry({7: REORDERED}), free_port()
    schemas.note(7, REORDERED)
    monkeypatch.setattr(decoded_commands, "dialect_named", lambda name: dialect_named(name, schemas))  # lanes know it
    settings = {"schema_registry": f"http://127.0.0.1:{port}", "commands_topics": f"{COMMANDS}:skyuk"}
    async with running(**settings) as (cluster, workers):
        headers = {"Authorization": f"Bearer {await cluster.token('write', 'default')}"}
        letter = add_letter(cluster, value=(value := avro(REORDERED, DOCUMENT, 7)), headers=[])
        problem = await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 503, headers=headers)
        assert "cannot be asked for schema 7" in problem["detail"]
        async with registry.serve(port):
            await workers[0].ask("POST", f"{PATH}/{letter}/redrive", 200, headers=headers)
        (sent,) = cluster.topics.records[COMMANDS][1]
    assert sent.value == value
