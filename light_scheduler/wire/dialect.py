"""Dialects: the forms that commands come in, and firings go out. A commands topic has one; the engine sees none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from light_scheduler.model import Command, Entry, FixedRate, Headers, ReplyTo, Target

from .record import CommandRecord

Plain = tuple[int, Target, bytes | None, Headers]
"""A one-shot of a command: due (UTC epoch ms), target, payload, the user's headers. A plain tuple for speed, as nearly
every command makes one."""


class PlainTask(msgspec.Struct, frozen=True, gc=False):
    """A series at a fixed rate, without any other rule. `start` is UTC epoch ms: nothing is due before it."""

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
    """Whether the command is of this tenant. If not, it may be any other one's: what names the tenant is unreadable."""
    key: bytes | None = None
    """The entity key, if the command names one beside the key of its record."""


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

    def plain(self, record: CommandRecord) -> Plain | None:
        """Read the most frequent command the short way: a one-shot in the default tenant, without any other rule.

        Its id is the record's key, which is not checked here. None only means that `decode` has to read the record.
        Raises InvalidCommand only where `decode` does, too.
        """
        ...

    @property
    def has_tasks(self) -> bool:
        """Whether the most frequent command is one that `task` reads; otherwise it is one that `plain` reads."""
        ...

    def task(self, record: CommandRecord) -> PlainTask | None:
        """Read a series at a fixed rate, whose target has the record's key, the short way.

        None only means that `decode` has to read the record. Never raises.
        """
        ...

    def decode(self, record: CommandRecord) -> Command:
        """Read a record. Raises InvalidCommand, and nothing else, naming the field as its sender wrote it."""
        ...

    def field_name(self, record: CommandRecord, field: str) -> str:
        """Return the sender's name of a field that is given by its header name. Never raises."""
        ...

    def salvage(self, record: CommandRecord) -> Envelope:
        """Return the readable part of a record that `decode` refused. Never raises."""
        ...

    def delivered(self, entry: Entry, fired_at: int, source_topic: bytes) -> tuple[bytes | None, Headers]:
        """Return value and headers of an entry's next firing, produced at an instant (UTC epoch ms)."""
        ...

    def fired_headers(self, fired_at: int, source_topic: bytes) -> Callable[[Entry, bytes], Headers] | None:
        """Return what makes the headers that `delivered` returns, at less cost for each of many firings.

        It is called with an entry and its id in UTF-8; the value is the payload. None: there is no such way.
        """
        ...

    @property
    def has_schemas(self) -> bool:
        """Whether records may need schemas of a registry."""
        ...

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:
        """Return whether `schema_ids` may name any for some records."""
        ...

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:
        """Return the ids, in the schema registry, of the schemas without which a record cannot be read."""
        ...
