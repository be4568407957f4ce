"""Ids of schemas that a worker writes with: asked for, kept for a while, and asked for again."""

from __future__ import annotations

import pytest
from support.foreign import LIGHT4J_KEY
from support.registry import FakeRegistry

from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.schema_ids import KEPT_S, RETRY_S, RegistryError, SchemaIds


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


async def test_an_id_that_is_known_stays_while_the_registry_does_not_answer() -> None:
    seconds = 1_000.0
    registry = FakeRegistry({})
    async with registry.serve(free_port()) as address:
        ids = SchemaIds(RegistryAccess(address), "topic", lambda: seconds)
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        registry.failing = 503
        seconds += KEPT_S
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        with pytest.raises(RegistryError):
            await ids.id_of("other", "key", LIGHT4J_KEY)
        registry.failing, registry.schemas, registry.subjects = None, {1: {"type": "string"}}, {}
        seconds += RETRY_S
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 2


@pytest.mark.parametrize(("status", "stays"), [(401, True), (429, True), (404, False), (409, False), (422, False)])
async def test_an_id_whose_schema_the_registry_refuses_later_is_not_written_any_more(status: int, stays: bool) -> None:
    seconds = 1_000.0
    registry = FakeRegistry({})
    async with registry.serve(free_port()) as address:
        ids = SchemaIds(RegistryAccess(address), "topic", lambda: seconds)
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        registry.failing = status
        seconds += KEPT_S
        if stays:
            assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        else:
            for _ in range(2):
                with pytest.raises(RegistryError, match=f"has no id for t-key: it answers {status}"):
                    await ids.id_of("t", "key", LIGHT4J_KEY)
