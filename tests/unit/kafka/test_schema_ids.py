"""Ids of schemas that a worker writes with: asked for, kept for a while, and asked for again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.foreign import LIGHT4J_KEY
from support.registry import FakeRegistry

from light_scheduler.connection.registry import RegistryAccess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.registry_client import RegistryDeniedError, RegistryError, RegistryUnavailableError
from light_scheduler.kafka.schema_ids import KEPT_S, RETRY_S, SchemaIds


@asynccontextmanager
async def asking(address: str, monotonic: Callable[[], float]) -> AsyncIterator[SchemaIds]:
    ids = SchemaIds(RegistryAccess(address), "topic", monotonic)
    yield ids
    await ids.close()


async def test_an_id_is_kept_for_a_while_and_a_registry_that_was_set_up_anew_is_asked_for_its_own() -> None:
    seconds = 1_000.0
    registry = FakeRegistry({})
    async with registry.serve(free_port()) as address, asking(address, lambda: seconds) as ids:
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        registry.schemas, registry.subjects = {1: {"type": "string"}}, {}
        seconds += KEPT_S - 1
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        seconds += 1
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 2


async def test_an_id_that_is_known_stays_while_the_registry_does_not_answer() -> None:
    seconds = 1_000.0
    registry = FakeRegistry({})
    async with registry.serve(free_port()) as address, asking(address, lambda: seconds) as ids:
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
    async with registry.serve(free_port()) as address, asking(address, lambda: seconds) as ids:
        assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        registry.failing = status
        seconds += KEPT_S
        if stays:
            assert await ids.id_of("t", "key", LIGHT4J_KEY) == 1
        else:
            for _ in range(2):
                with pytest.raises(RegistryError, match=f"has no id for t-key: it answers {status}"):
                    await ids.id_of("t", "key", LIGHT4J_KEY)


async def test_a_registry_that_may_not_be_asked_is_told_with_the_settings_to_check() -> None:
    registry = FakeRegistry({})
    registry.login = ("user", "password")
    async with registry.serve(free_port()) as address, asking(address, lambda: 0.0) as ids:
        with pytest.raises(
            RegistryDeniedError, match="has no id for t-key: it answers 401; check schema_registry_user"
        ):
            await ids.id_of("t", "key", LIGHT4J_KEY)


async def test_a_password_that_cannot_be_read_is_told_as_any_other_trouble(tmp_path: Path) -> None:
    access = RegistryAccess("http://127.0.0.1:1", "user", None, tmp_path / "missing")
    ids = SchemaIds(access, "topic")
    with pytest.raises(RegistryUnavailableError, match=r"has no id for t-key: .*schema_registry_password_file"):
        await ids.id_of("t", "key", LIGHT4J_KEY)
    await ids.close()
