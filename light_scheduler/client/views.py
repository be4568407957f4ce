"""Pending schedules as workers return them over HTTP. Times are UTC epoch ms, durations ms."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Literal

import msgspec

from light_scheduler.errors import ClientError
from light_scheduler.model import DeadLetterCause, EventType, Headers, HistoryEvent


class Content(msgspec.Struct, frozen=True):
    """Bytes: as text if they are UTF-8, otherwise as base64; neither if they are masked for this token."""

    text: str | None = None
    base64: str | None = None
    masked: bool = False

    @property
    def data(self) -> bytes:
        """The bytes. Raises ClientError if the token may not see them."""
        if self.masked and self.text is None and self.base64 is None:
            raise ClientError("it is masked (setting masked_fields): only a token with the role write may see it")
        return b64decode(self.base64 or "") if self.text is None else self.text.encode()


class PendingTarget(msgspec.Struct, frozen=True):
    """The destination of the message. `key_base64` is set if the key is not UTF-8."""

    topic: str
    key: str | None = None
    partition: int | None = None
    key_base64: str | None = None


class PendingSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A pending schedule in a list.

    `due` is None while it is paused or waits for a completion. `trigger` has the JSON form of a command.
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
        """The payload; None is a tombstone. Raises ClientError if it is masked for this token."""
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
    """A page of a history, newest event first. All events since `searched_from` have been read."""

    events: list[HistoryEvent]
    searched_from: int
    next_cursor: str | None


class WhyEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a schedule, as a sentence."""

    at: int
    event: EventType
    version: int | None
    due: int | None
    text: str


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The explanation of a schedule: its events and their reasons, oldest first. `summary` says what happens next.

    `state` is "pending", "paused" or "awaiting"; how the schedule ended, such as "delivered" or "cancelled"; or
    "unknown" if there is no trace of the id. The history has been read back to `searched_from`, which is `since` if
    `complete`.
    """

    tenant: str
    id: str
    state: str
    next_due: int | None
    summary: str
    events: list[WhyEvent]
    searched_from: int
    complete: bool


class Source(msgspec.Struct, frozen=True):
    """The command record of a schedule or dead letter."""

    topic: str
    partition: int
    offset: int


class DeadLetterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A dead letter in a list; `letter` names it. `due`, `firing_id` and `target_topic` are set for a firing.

    One that `lacks` something, here in words, cannot be redriven. If it is `dropped`, it lacks its content.
    """

    letter: str
    kind: Literal["command", "firing"]
    cause: DeadLetterCause
    reason: str
    field: str | None
    tenant: str
    id: str | None
    at: int
    due: int | None
    firing_id: str | None
    target_topic: str | None
    source: Source
    key_content: Content | None = msgspec.field(name="key")
    payload_bytes: int | None
    dropped: bool
    lacks: str | None = None

    @property
    def key(self) -> bytes | None:
        """The key of the record that is sent again."""
        return None if self.key_content is None else self.key_content.data


class DeadLetterDetail(DeadLetterSummary, frozen=True, kw_only=True):
    """A dead letter with its bytes."""

    content: Content | None = msgspec.field(name="payload")
    shown_headers: list[PendingHeader] = msgspec.field(name="headers")

    @property
    def payload(self) -> bytes | None:
        """The value of the record that is sent again."""
        return None if self.content is None else self.content.data

    @property
    def headers(self) -> Headers:
        """Its headers, in order."""
        return [(header.name, None if header.value is None else header.value.data) for header in self.shown_headers]


class DeadLetterPage(msgspec.Struct, frozen=True):
    """A page of dead letters, the newest first."""

    dead_letters: list[DeadLetterSummary]
    next_cursor: str | None


class Redriven(msgspec.Struct, frozen=True):
    """The new place of a dead letter that was sent again."""

    letter: str
    kind: Literal["command", "firing"]
    topic: str
    partition: int
    offset: int


class Preview(msgspec.Struct, frozen=True):
    """Due times."""

    next: list[int]
