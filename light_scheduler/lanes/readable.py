"""Which commands of a lane can be read: those whose schemas are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.wire import CommandRecord, Dialect

CanRead = Callable[[CommandRecord], bool]
"""Returns whether a command can be read. If it cannot, its schema is asked for."""


def all_can_be_read(_: CommandRecord) -> bool:
    """Take every command for one that can be read: no schema is needed."""
    return True


class Readable:
    """Of one lane; without a registry or schemas every command can be read.

    `wake` is called when more of them can be read, and when the registry cannot be asked.
    """

    def __init__(self, dialect: Dialect, registry: SchemaRegistry | None, wake: Callable[[], None]) -> None:
        self._schema_ids, self._needs_schemas = dialect.schema_ids, dialect.needs_schemas
        self._registry = registry if dialect.has_schemas else None
        self._wake = wake
        self._awaited: int | None = None  # the schema that the next command needs

    @property
    def is_held(self) -> bool:
        """Whether the next command waits for a schema."""
        return self._awaited is not None

    @property
    def is_stuck(self) -> bool:
        """Whether the next command waits for a schema, and the registry cannot be asked for it."""
        return self._trouble is not None

    @property
    def reason(self) -> str | None:
        """Why commands wait."""
        if self._awaited is None:
            return None
        return self._trouble or "the next command waits for the schema registry"

    def begin(self) -> None:
        """Expect other commands: the lane reads from another offset on."""
        self._awaited = None

    def close(self) -> None:
        """Wait for no schema any more."""
        if self._registry is not None:
            self._registry.forget(self._wake)

    def count(self, waiting: Iterator[CommandRecord], most: int) -> int:
        """Return how many of the waiting commands, from the first on, can be read; at most `most`.

        What the one after them needs is asked for.
        """
        was_held, self._awaited = self.is_held, None
        if self._registry is None:
            return most
        if was_held and (first := next(waiting, None)) is not None:
            if unknown := self._ask(self._schema_ids(first), self._registry):  # the others wait behind it
                self._awaited = unknown[0]
                return 0
            waiting = chain((first,), waiting)
        if not self._needs_schemas(records := list(islice(waiting, most))):
            return most
        for number, record in enumerate(records):
            if (needed := self._schema_ids(record)) and (unknown := self._ask(needed, self._registry)):
                self._awaited = unknown[0] if number == 0 else None
                return number
        return most

    def can_read(self, record: CommandRecord) -> bool:
        """Return whether a command that was taken before can be read; what it needs is asked for."""
        return self._registry is None or not self._ask(self._schema_ids(record), self._registry)

    def _ask(self, needed: Sequence[int], registry: SchemaRegistry) -> list[int]:
        """Ask for those schemas that are not known; return them."""
        unknown = [id for id in needed if id not in registry.schemas]
        for id in unknown:
            registry.ask_for(id, self._wake, self._wake)
        return unknown

    @property
    def _trouble(self) -> str | None:
        return None if self._awaited is None or self._registry is None else self._registry.trouble_with(self._awaited)
