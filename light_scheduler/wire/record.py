"""Kafka records for codecs, with the attribute names of aiokafka's ConsumerRecord."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from light_scheduler.model import Command, Headers, ScheduleCommand
from light_scheduler.model.arrival import arrival_in


class CommandRecord(Protocol):
    """A record that was read. Its content is not checked. `timestamp` is UTC epoch ms."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...


class Copy(NamedTuple):
    """A record of which a lane does not only know where it has read it, for a dialect.

    It was forwarded to another partition, or it is of a later log, and its `offset` is its arrival (`model.arrival`).
    `partition` and `offset` are the copy's own. `timestamp` is the original record's, and `sent` is its place.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int
    sent: tuple[int, int]


class SentAt(NamedTuple):
    """The place of a record of a commands topic."""

    partition: int
    offset: int


def sent_at(record: CommandRecord) -> SentAt:
    """Return where the sender of a command has put it, wherever it is read."""
    return SentAt(*record.sent) if isinstance(record, Copy) else SentAt(record.partition, record.offset)


def arrived(record: CommandRecord, log: int) -> Copy:
    """Return a record that was read from log number `log`, with its arrival as its offset (`model.arrival`)."""
    place = record.partition, record.offset
    arrival = arrival_in(log, record.offset)
    return Copy(record.key, record.value, [*record.headers], record.partition, arrival, record.timestamp, place)


class UnsentRecord(NamedTuple):
    """A command that was not sent to a topic, for codecs. `timestamp` is UTC epoch ms; 0 if unknown."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = 0
    partition: int = 0
    offset: int = 0


def with_key_of(record: CommandRecord, command: Command) -> Command:
    """Return a command as a lane executes it: a schedule gets the key of its record, if there is one.

    A value may have another key, but the record's key has decided the partition.
    """
    if isinstance(command, ScheduleCommand) and record.key not in (None, command.key):
        return msgspec.structs.replace(command, key=record.key)
    return command
