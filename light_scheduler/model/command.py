"""Commands: what a sender asks for, once it has been understood. Times and durations are ms."""

from __future__ import annotations

from typing import Literal

import msgspec

from .schedule import DEFAULT_PRIORITY, Headers, Target
from .trigger import Timing

OnConflict = Literal["replace", "keep", "fail"]

REJECT_PAST = -1
"""`on_past` of a schedule that must not be in the past when it arrives."""


class ReplyTo(msgspec.Struct, frozen=True, gc=False):
    """Where a command's result goes."""

    topic: str
    correlation_id: bytes | None = None


class ScheduleCommand(msgspec.Struct, frozen=True, gc=False):
    """Store a schedule, or replace the one of the same id.

    `recorded_at` is the command record's timestamp. `on_past` is None (fire at once), `REJECT_PAST`, or a grace in ms.
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

    @property
    def name(self) -> str:
        return "schedule"


class CancelCommand(msgspec.Struct, frozen=True, gc=False):
    """Forget a schedule."""

    tenant: str
    id: str
    key: bytes | None
    partition: int
    offset: int
    recorded_at: int
    expected_version: int | None = None
    reply_to: ReplyTo | None = None

    @property
    def name(self) -> str:
        return "cancel"


Command = ScheduleCommand | CancelCommand
