"""Which commands of a lane can be read: those whose schemas are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.wire import CommandRecord, Dialect


class Readable:
    """Of one lane; without a registry or schemas every command can be read. `wake` is called when more of them can."""

    def __init__(self, dialect: Dialect, registry: SchemaRegistry | None, wake: Callable[[], None]) -> None:
        self._schema_ids = dialect.schema_ids
        self._registry = registry if dialect.has_schemas else None
        self._wake = wake
        self.is_held = False
        """Whether the next command waits for a schema."""

    @property
    def reason(self) -> str | None:
        """Why commands wait."""
        if not self.is_held or self._registry is None:
            return None
        return self._registry.trouble or "the next command waits for the schema registry"

    def count(self, waiting: Iterator[CommandRecord], most: int) -> int:
        """Return how many of the waiting commands, from the first on, can be read; at most `most`.

        What the one after them needs is asked for.
        """
        self.is_held = False
        if self._registry is None:
            return most
        for number, record in enumerate(waiting):
            if number == most:
                return most
            unknown = [id for id in self._schema_ids(record) if id not in self._registry.schemas]
            for id in unknown:
                self._registry.ask_for(id, self._wake)
            if unknown:
                self.is_held = number == 0
                return number
        return most
