"""Kafka records as codecs read them, with the names of aiokafka's ConsumerRecord."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from light_scheduler.model import Command, Headers, ScheduleCommand


class CommandRecord(Protocol):
    """A record as it was read; its content is not checked. `timestamp` is UTC epoch ms."""

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
    """A record that was passed on to another partition, as a dialect reads it.

    `partition` and `offset` are the copy's own; `timestamp` is that of the record that was sent, whose place is `sent`.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int
    offset: int
    timestamp: int
    sent: tuple[int, int]


class UnsentRecord(NamedTuple):
    """A command that is in no topic, as codecs take it. `timestamp` is UTC epoch ms; 0 is unknown."""

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = 0
    partition: int = 0
    offset: int = 0


def with_key_of(record: CommandRecord, command: Command) -> Command:
    """Return a command as a lane carries it out: a schedule has the key that its record was sent by, if there is one.

    A value may give another key, but the record's is the one that has decided the partition.
    """
    if isinstance(command, ScheduleCommand) and record.key not in (None, command.key):
        return msgspec.structs.replace(command, key=record.key)
    return command
