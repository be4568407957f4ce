"""Decides which commands of a lane can be read: those whose schemas are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.wire import CommandRecord, Dialect

CanRead = Callable[[CommandRecord], bool]
"""Returns whether a command can be read. If not, requests its schema."""


def all_can_be_read(_: CommandRecord) -> bool:
    """Return True for every command, for use without schemas."""
    return True


class Readable:
    """The readable commands of one lane. Without a registry or schemas, every command can be read.

    `wake` is called when more commands can be read, and when the registry cannot be reached.
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
        """Whether the next command waits for a schema, and the registry cannot provide it."""
        return self._trouble is not None

    @property
    def reason(self) -> str | None:
        """The reason why commands wait, or None."""
        if self._awaited is None:
            return None
        return self._trouble or "the next command waits for the schema registry"

    def begin(self) -> None:
        """Start over, as the lane reads from another offset."""
        self._awaited = None

    def close(self) -> None:
        """Stop waiting for schemas."""
        if self._registry is not None:
            self._registry.forget(self._wake)

    def count(self, waiting: Iterator[CommandRecord], most: int) -> int:
        """Return how many of the first `most` waiting commands can be read, up to the first that cannot.

        Requests the schemas that this one needs.
        """
        was_held, self._awaited = self.is_held, None
        if self._registry is None:
            return most
        if was_held and (first := next(waiting, None)) is not None:
            if unknown := self._ask(self._schema_ids(first), self._registry):  # the others wait after it
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
        """Return whether a command that was taken before can be read. If not, request its schemas."""
        return self._registry is None or not self._ask(self._schema_ids(record), self._registry)

    def _ask(self, needed: Sequence[int], registry: SchemaRegistry) -> list[int]:
        """Request the unknown schemas, and return their ids."""
        unknown = [id for id in needed if id not in registry.schemas]
        for id in unknown:
            registry.ask_for(id, self._wake, self._wake)
        return unknown

    @property
    def _trouble(self) -> str | None:
        return None if self._awaited is None or self._registry is None else self._registry.trouble_with(self._awaited)
