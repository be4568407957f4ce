"""Ids of schemas that a worker writes with: asked for, kept for a while, and asked for again."""

from __future__ import annotations

from support.foreign import LIGHT4J_KEY
from support.registry import FakeRegistry

from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.schema_ids import KEPT_S, SchemaIds


async def test_an_id_is_kept_for_a_while_and_a_registry_that_was_set_up_anew_is_asked_for_its_own() -> None:
    seconds = 1_000.0
    registry = FakeRegistry({})
    async with registry.serve(free_port()) as address:
        ids = SchemaIds(RegistryAccess(address), "topic", lambda: seconds)
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        registry.schemas, registry.subjects = {1: {"type": "string"}}, {}
        seconds += KEPT_S - 1
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        seconds += 1
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 2
