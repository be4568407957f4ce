"""Dialects: the formats of commands and firings. Each commands topic has one. The engine is independent of dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from light_scheduler.model import Command, Entry, FixedRate, Headers, ReplyTo, Target

from .record import CommandRecord

Plain = tuple[int, Target, bytes | None, Headers]
"""A one-shot from a command: due (UTC epoch ms), target, payload, the user's headers. This is a plain tuple for speed,
since nearly every command creates one.
"""


class PlainTask(msgspec.Struct, frozen=True, gc=False):
    """A series at a fixed rate, without other rules. Nothing is due before `start` (UTC epoch ms)."""

    tenant: str
    id: str
    trigger: FixedRate
    start: int
    target: Target
    payload: bytes
    headers: Headers


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """The readable part of an invalid command: enough to answer it and to write its dead letter."""

    command: str
    tenant: str
    id: str | None
    reply_to: ReplyTo | None
    is_tenant_known: bool = True
    """Whether the tenant could be read. Otherwise, the command may belong to any tenant."""
    key: bytes | None = None
    """The entity key, if the command has one in addition to the key of its record."""


class Dialect(Protocol):
    """A format of commands."""

    @property
    def name(self) -> str:
        """The name in the setting `commands_topics`."""
        ...

    @property
    def forwards(self) -> bool:
        """Whether a command for an unknown id is forwarded to the partition of its key by Kafka's murmur2."""
        ...

    def plain(self, record: CommandRecord) -> Plain | None:
        """Fast path of `decode` for the most frequent command: a one-shot in the default tenant, without other rules.

        The id is the record's key, which is not checked here. None only means that `decode` must read the record.
        Raises InvalidCommand only if `decode` would also raise it.
        """
        ...

    @property
    def has_tasks(self) -> bool:
        """Whether `task` reads the most frequent command of this dialect. Otherwise, `plain` does."""
        ...

    def task(self, record: CommandRecord) -> PlainTask | None:
        """Fast path of `decode` for a series at a fixed rate whose target key is the record's key.

        None only means that `decode` must read the record. Never raises.
        """
        ...

    def decode(self, record: CommandRecord) -> Command:
        """Decode a record. Raises only InvalidCommand, with the sender's name of the field."""
        ...

    def field_name(self, record: CommandRecord, field: str) -> str:
        """Return the sender's name of a field, given by its header name. Never raises."""
        ...

    def salvage(self, record: CommandRecord) -> Envelope:
        """Return the readable part of a record that `decode` refused. Never raises."""
        ...

    def delivered(self, entry: Entry, fired_at: int, source_topic: bytes) -> tuple[bytes | None, Headers]:
        """Return value and headers of an entry's next firing, which is produced at `fired_at` (UTC epoch ms)."""
        ...

    def fired_headers(self, fired_at: int, source_topic: bytes) -> Callable[[Entry, bytes], Headers] | None:
        """Return a function `(entry, id in UTF-8) -> headers`, which is faster than `delivered` for many firings.

        The value of the firings is then the payload. None if the dialect has no fast path.
        """
        ...

    @property
    def has_schemas(self) -> bool:
        """Whether records may need schemas from a registry."""
        ...

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:
        """Return whether `schema_ids` may return any id for these records."""
        ...

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:
        """Return the ids of the schemas from the registry that are needed to read a record."""
        ...
