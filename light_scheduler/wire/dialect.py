"""Dialects: the forms that commands come in, and firings go out. A commands topic has one; the engine sees none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from light_scheduler.model import Command, Entry, Headers, ReplyTo

from .record import CommandRecord


class Envelope(msgspec.Struct, frozen=True, gc=False):
    """What can be told of a command that cannot be understood: enough to answer it and to file it."""

    command: str
    tenant: str
    id: str | None
    reply_to: ReplyTo | None


class Dialect(Protocol):
    """One form of commands."""

    @property
    def name(self) -> str:
        """The name that the setting `commands_topics` uses."""
        ...

    @property
    def forwards(self) -> bool:
        """Whether a command for an unknown id is passed on to the partition of its key, as Kafka's murmur2 has it."""
        ...

    def decode(self, record: CommandRecord) -> Command:
        """Read a record. Raises InvalidCommand, and nothing else, naming the field as its sender wrote it."""
        ...

    def spelled(self, record: CommandRecord, field: str) -> str:
        """Return how the sender of a record writes a field that is named as a header. Never raises."""
        ...

    def salvage(self, record: CommandRecord) -> Envelope:
        """Tell what can be told of a record that `decode` refused. Never raises."""
        ...

    def delivered(self, entry: Entry, fired_at: int, source_topic: bytes) -> tuple[bytes | None, Headers]:
        """Return value and headers of an entry's next firing, produced at an instant (UTC epoch ms)."""
        ...

    @property
    def has_schemas(self) -> bool:
        """Whether records may need schemas of a registry."""
        ...

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:
        """Return the ids, in the schema registry, of the schemas without which a record cannot be read."""
        ...
