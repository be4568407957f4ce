"""Reads single records of the commands topics, such as the sources of dead letters, in the same way as lanes do."""

from __future__ import annotations

from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.settings import Settings
from light_scheduler.wire import CommandRecord, Dialect, dialect_named
from light_scheduler.wire.schemas import Schemas

SCHEMA_TIMEOUT_S = 2.0


class CommandDialects:
    """The dialects of a worker's commands topics, and the schemas that their records need."""

    def __init__(self, settings: Settings) -> None:
        access, effect = settings.registry, "dead letters with unknown schemas are not redriven"
        self._registry = None if access is None else SchemaRegistry(access, Schemas(), effect)
        schemas = None if self._registry is None else self._registry.schemas
        self._dialects = {source.name: dialect_named(source.dialect, schemas) for source in settings.inputs}

    def __contains__(self, topic: object) -> bool:
        return topic in self._dialects

    def __getitem__(self, topic: str) -> Dialect:
        return self._dialects[topic]

    async def trouble_reading(self, topic: str, record: CommandRecord) -> str | None:
        """Load the schemas that a record of a topic needs. Return None, or the reason why one could not be loaded in
        time."""
        if self._registry is None:
            return None
        for id in self._dialects[topic].schema_ids(record):
            if id not in self._registry.schemas:
                trouble = await self._registry.trouble_getting(id, SCHEMA_TIMEOUT_S)
                if trouble is not None:
                    return trouble
        return None

    async def close(self) -> None:
        """Stop requesting schemas."""
        if self._registry is not None:
            await self._registry.close()
