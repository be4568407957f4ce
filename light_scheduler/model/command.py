"""Parsed commands of senders. Times and durations are in ms.

`offset` is that of the command's record. In a lane, it is the command's arrival (`model.arrival`).

Bulk commands are stored while they are in progress (`wire.state`), so only add fields, with a default.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .schedule import DEFAULT_PRIORITY, Acknowledgement, Bounds, Headers, Target
from .trigger import Timing

OnConflict = Literal["replace", "keep", "fail"]

REJECT_PAST = -1
"""`on_past` of a schedule that is rejected if it is past on arrival."""

FIRE_PAST = -2
"""`on_past` of a schedule that fires however long ago it was due."""

FIRE_BACKLOG = -3
"""`on_past` of a schedule that is rejected if it is past on arrival, unless its command waited in the log."""


class ReplyTo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    """The destination of a command's result: `partition` if given, otherwise the partition of the command's key."""

    topic: str
    correlation_id: bytes | None = None
    partition: int | None = None


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Selects a tenant's schedules by a prefix of the id and by labels, all of which must match."""

    id_prefix: str = ""
    labels: dict[str, str] | None = None


class ScheduleCommand(msgspec.Struct, frozen=True, gc=False):
    """Store a schedule, or replace the one with the same id.

    `recorded_at` is the timestamp of the command record. `on_past` is None (fire at once, unless the due time is before
    the lookback), `FIRE_PAST`, `REJECT_PAST`, `FIRE_BACKLOG`, or a grace in ms.
    """

    tenant: str
    id: str
    key: bytes | None
    timing: Timing
    target: Target
    payload: bytes | None
    headers: Headers
    partition: int
    offset: int
    recorded_at: int
    ttl: int | None = None
    priority: int = DEFAULT_PRIORITY
    labels: dict[str, str] | None = None
    on_past: int | None = None
    on_conflict: OnConflict = "replace"
    expected_version: int | None = None
    reply_to: ReplyTo | None = None
    bounds: Bounds | None = None
    acknowledgement: Acknowledgement | None = None
    paused: bool = False

    @property
    def name(self) -> str:
        return "schedule"


ControlName = Literal["cancel", "pause", "resume", "trigger"]


class ControlCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="control"):
    """Cancel, pause, resume or trigger a schedule, or all schedules that match `selection`."""

    name: ControlName
    tenant: str
    id: str
    key: bytes | None
    partition: int
    offset: int
    recorded_at: int
    expected_version: int | None = None
    reply_to: ReplyTo | None = None
    selection: Selection | None = None


class RescheduleCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False, tag="reschedule"):
    """Change the time rule of a schedule, or of all schedules that match `selection`. Everything else stays."""

    tenant: str
    id: str
    key: bytes | None
    timing: Timing
    partition: int
    offset: int
    recorded_at: int
    on_past: int | None = None
    expected_version: int | None = None
    reply_to: ReplyTo | None = None
    bounds: Bounds | None = None
    selection: Selection | None = None

    @property
    def name(self) -> str:
        return "reschedule"


class CompleteCommand(msgspec.Struct, frozen=True, gc=False):
    """Reports a firing as completed or failed. `firing_due` (UTC epoch ms) and `attempt` identify it."""

    tenant: str
    id: str
    key: bytes | None
    firing_due: int
    attempt: int
    succeeded: bool
    partition: int
    offset: int
    recorded_at: int
    expected_version: int | None = None
    reply_to: ReplyTo | None = None

    @property
    def name(self) -> str:
        return "complete"


class ExtendCommand(msgspec.Struct, frozen=True, gc=False):
    """Report that a firing is still being processed. Its timeout restarts, with `timeout` ms if given.

    `firing_due` (UTC epoch ms) and `attempt` identify the firing.
    """

    tenant: str
    id: str
    key: bytes | None
    firing_due: int
    attempt: int
    partition: int
    offset: int
    recorded_at: int
    timeout: int | None = None
    expected_version: int | None = None
    reply_to: ReplyTo | None = None

    @property
    def name(self) -> str:
        return "extend"


Command = ScheduleCommand | ControlCommand | RescheduleCommand | CompleteCommand | ExtendCommand
