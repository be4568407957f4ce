"""Pending schedules as workers show them over HTTP. Times are UTC epoch ms, durations ms."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Literal

import msgspec

from light_scheduler.model import Headers, HistoryEvent


class Content(msgspec.Struct, frozen=True):
    """Bytes, as text where they are UTF-8, else as base64."""

    text: str | None = None
    base64: str | None = None

    @property
    def data(self) -> bytes:
        """The bytes."""
        return b64decode(self.base64 or "") if self.text is None else self.text.encode()


class PendingTarget(msgspec.Struct, frozen=True):
    """Where the message goes. `key_base64` is there if the key is not UTF-8."""

    topic: str
    key: str | None = None
    partition: int | None = None
    key_base64: str | None = None


class PendingSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A pending schedule in a list.

    `due` is None while it is paused or waits for a completion. `trigger` is as the JSON form of a command has it.
    """

    tenant: str
    id: str
    version: int
    state: Literal["pending", "paused", "awaiting"]
    due: int | None
    sequence: int
    attempt: int
    trigger: dict[str, Any]
    target: PendingTarget
    labels: dict[str, str]
    priority: int
    ttl: int | None
    accepted_at: int
    payload_bytes: int | None


class PendingHeader(msgspec.Struct, frozen=True):
    """A header of the message."""

    name: str
    value: Content | None


class PendingScheduleDetail(PendingSchedule, frozen=True, kw_only=True):
    """A pending schedule with its payload and headers."""

    content: Content | None = msgspec.field(name="payload")
    shown_headers: list[PendingHeader] = msgspec.field(name="headers")

    @property
    def payload(self) -> bytes | None:
        """The payload; None is a tombstone."""
        return None if self.content is None else self.content.data

    @property
    def headers(self) -> Headers:
        """The headers of the message, in order."""
        return [(header.name, None if header.value is None else header.value.data) for header in self.shown_headers]


class Page(msgspec.Struct, frozen=True):
    """A page of a list."""

    schedules: list[PendingSchedule]
    next_cursor: str | None


class HistoryPage(msgspec.Struct, frozen=True):
    """A page of a history, the newest event first. All events since `searched_from` have been looked at."""

    events: list[HistoryEvent]
    searched_from: int
    next_cursor: str | None


class Preview(msgspec.Struct, frozen=True):
    """Due times."""

    next: list[int]
