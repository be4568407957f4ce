"""Outcomes of commands and firings: results, history events and dead letters.

Field names of `Result` and `HistoryEvent` are their JSON names on the wire.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import UNSET, UnsetType

from .schedule import Headers


class Outcome(StrEnum):
    """The answer to a command."""

    __hash__ = str.__hash__  # counts each command and firing; Enum's own hash is slower, in Python

    SCHEDULED = "scheduled"
    UPDATED = "updated"
    KEPT = "kept"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    RESUMED = "resumed"
    TRIGGERED = "triggered"
    RESCHEDULED = "rescheduled"
    COMPLETED = "completed"
    NOT_FOUND = "not_found"
    CONFLICT = "conflict"
    REJECTED = "rejected"


FAILURES = frozenset({Outcome.NOT_FOUND, Outcome.CONFLICT, Outcome.REJECTED})
"""The outcomes of commands that changed nothing because they failed."""


class EventType(StrEnum):
    """Events in the life of a schedule. CHANGED is not about a schedule: a tenant, a token or a delay rule was changed,
    or a dead letter's command was sent again.
    """

    __hash__ = str.__hash__

    SCHEDULED = "scheduled"
    UPDATED = "updated"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    RESUMED = "resumed"
    FIRED = "fired"
    COMPLETED = "completed"
    RETRIED = "retried"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    MISSED = "missed"
    DEAD_LETTERED = "dead_lettered"
    REJECTED = "rejected"
    FINISHED = "finished"
    MOVED = "moved"
    CHANGED = "changed"


SCHEDULE_EVENTS = frozenset(EventType) - {EventType.CHANGED}
"""Events about a schedule or a command."""


PARTITION_AWAY = "which cannot be written to just now"
"""How the reason of a MOVED ends, if the command has not reached the partition that it is passed on to."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """The answer to one command. `partition` and `offset` identify its record. Times are UTC epoch ms."""

    command: str
    tenant: str
    id: str | None
    outcome: Outcome
    version: int | None = None
    next_due: int | None = None
    reason: str | None = None
    field: str | None = None
    partition: int | None = None
    offset: int | None = None
    count: int | UnsetType = UNSET
    """Number of schedules changed by a bulk command."""


class Requester(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """Who requested a command over HTTP, or a change: a name and an address.

    Over HTTP, these are the name of the token and the address of the connection.
    """

    by: str
    address: str


class HistoryEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of the history, about a schedule or a change. `due` and `at` are UTC epoch ms.

    A change is not about a schedule, so `id` and other members of a schedule are None. Its `tenant` is empty unless it
    concerns a single tenant, and its `partition` is that of the history.
    """

    event: EventType
    tenant: str
    id: str | None
    version: int | None
    due: int | None
    at: int
    sequence: int | None
    attempt: int | None
    target_topic: str | None
    reason: str | None
    partition: int
    count: int | UnsetType = UNSET
    """Number of firings or schedules that the event stands for, if not one."""
    by: str | UnsetType = UNSET
    """Name of the requester, over HTTP or of a change."""
    address: str | UnsetType = UNSET
    """Address of the requester."""


class DeadLetterCause(StrEnum):
    """Why a record became a dead letter."""

    REJECTED = "rejected"
    REFUSED = "refused"
    MISSED = "missed"
    UNACKNOWLEDGED = "unacknowledged"


class DeadLetter(msgspec.Struct, frozen=True, gc=False):
    """A command that was not accepted, or a firing that could not be delivered, with its original bytes.

    `field` names the header or JSON field at fault; `due` is set for firings. `target_partition` and
    `target_partition_key` are those of a firing's target, if its sender chose one. `original_due` and `schedule_key`
    are what the message of a firing tells (None: it does not). Without `is_tenant_known`, a command may be any
    tenant's, and counts as the default one's.
    """

    cause: DeadLetterCause
    reason: str
    field: str | None
    tenant: str
    id: str | None
    at: int
    due: int | None
    target_topic: str | None
    source_partition: int
    source_offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    target_partition: int | None = None
    target_partition_key: bytes | None = None
    is_tenant_known: bool = True
    original_due: int | None = None
    schedule_key: bytes | None = None
