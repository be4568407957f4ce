"""Commands: what a sender asks for, once it has been understood. Times and durations are ms.

Bulk commands are stored while they are at work (`wire.state`): fields are only added, with a default.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .schedule import DEFAULT_PRIORITY, Acknowledgement, Bounds, Headers, Target
from .trigger import Timing

OnConflict = Literal["replace", "keep", "fail"]

REJECT_PAST = -1
"""`on_past` of a schedule that must not be in the past when it arrives."""

FIRE_PAST = -2
"""`on_past` of a schedule whose sender says that it fires, however long ago it was due."""

FIRE_BACKLOG = -3
"""`on_past` of a schedule that must not be in the past when it arrives, unless its command waited in the log."""


class ReplyTo(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False, omit_defaults=True):
    """Where a command's result goes: to `partition` if given, else to that of the command's key."""

    topic: str
    correlation_id: bytes | None = None
    partition: int | None = None


class Selection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Which of a tenant's schedules a command is for: those whose id has a prefix, and that have all of the labels."""

    id_prefix: str = ""
    labels: dict[str, str] | None = None


class ScheduleCommand(msgspec.Struct, frozen=True, gc=False):
    """Store a schedule, or replace the one of the same id.

    `recorded_at` is the command record's timestamp. `on_past` is None (fire at once, unless it lies
    before the lookback), `FIRE_PAST`, `REJECT_PAST`, `FIRE_BACKLOG`, or a grace in ms.
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
    """Cancel, pause, resume or trigger a schedule: or, if `selection` is given, all that it selects."""

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
    """Give a schedule, or all that `selection` selects, another time rule; everything else of it stays."""

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
    """Say that a firing is still being processed: its time-out begins anew, with `timeout` ms if given.

    `firing_due` (UTC epoch ms) and `attempt` name the firing.
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
