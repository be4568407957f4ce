"""The schema registry of a run answers as a worker asks it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from light_scheduler.bench.dialects import registered
from light_scheduler.bench.schema_registry import serve_schemas
from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.wire.schemas import Schemas


async def known(address: str, *ids: int) -> Schemas:
    """Ask a registry for schemas, as a worker does."""
    registry = SchemaRegistry(RegistryAccess(address), Schemas())
    for id in ids:
        answered = asyncio.Event()
        registry.ask_for(id, answered.set)
        await asyncio.wait_for(answered.wait(), 10)
    await registry.close()
    return registry.schemas


@pytest.mark.parametrize("dialect", ["skyuk", "light4j"])
async def test_a_worker_gets_the_schemas_of_a_dialect(dialect: str) -> None:
    schemas: dict[int, Any] = registered(dialect)
    with serve_schemas(schemas) as address:
        found = await known(address, *schemas, 7)
    assert {id: found.get(id) for id in schemas} == schemas
    with pytest.raises(ValueError, match="does not have it"):
        found.get(7)
