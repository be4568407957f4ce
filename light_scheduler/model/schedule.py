"""A schedule, how far it has come, and the two together as the table keeps them.

Definition and progress are values of their own: a series with a large payload moves on without rewriting it.
Fields are only ever appended, with a default: the state record is these structs as arrays (see `wire.state`).
"""

from __future__ import annotations

import msgspec

from .trigger import Trigger

Headers = list[tuple[str, bytes | None]]
"""Kafka record headers, in order; names may repeat."""

DEFAULT_TENANT = "default"
DEFAULT_PRIORITY = 100
"""Of 0 (first) to 255 (last) among firings due in the same instant."""


class Target(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where a firing goes. A null key stays null.

    The partition is `partition` if given, else Kafka's murmur2 of `partition_key`, else of `key`, else of the
    schedule's id.
    """

    topic: str
    key: bytes | None = None
    partition: int | None = None
    partition_key: bytes | None = None


class Schedule(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The stored intent: what to deliver, where, and when.

    `source_partition` and `source_offset` name the command record that defined it; `ttl` is in ms after due.
    """

    tenant: str
    id: str
    version: int
    trigger: Trigger
    target: Target
    payload: bytes | None
    headers: Headers
    source_partition: int
    source_offset: int
    accepted_at: int
    ttl: int | None = None
    priority: int = DEFAULT_PRIORITY
    labels: dict[str, str] | None = None


class Progress(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How far a schedule has come: what its next firing is.

    `arrival` orders schedules that are due in the same instant: the offset of the command that set the due time.
    """

    due: int
    arrival: int
    sequence: int = 1
    attempt: int = 1


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A pending schedule as the table keeps it."""

    schedule: Schedule
    progress: Progress
