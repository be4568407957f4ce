"""Records that the scheduler writes about its work: results, history events and dead letters.

Results and history events are JSON objects with the fields of the structs. A dead letter is the original record, byte
for byte, with headers that describe what happened.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from light_scheduler.errors import FormatError, FormatTooNew
from light_scheduler.model import (
    DeadLetter,
    DeadLetterCause,
    EventType,
    Headers,
    HistoryEvent,
    Requester,
    Result,
    firing_id,
)

from .record import CommandRecord

T = TypeVar("T")

CORRELATION_ID = "schedule-correlation-id"
DEAD_LETTER_PREFIX = "dead-letter-"
CHANGES_PARTITION = 0
"""The partition of the history for all changes, so that they are in order."""

_DROPPED = f"{DEAD_LETTER_PREFIX}dropped"
_CONTENT = b"key, value and headers"
_SCHEDULE_KEY = b"key of the schedule"
_TOO_LARGE = b": too large for this topic"
CONTENT_TOO_LARGE = (_DROPPED, _CONTENT + _TOO_LARGE)
CONTENT_UNREAD = (_DROPPED, _CONTENT + b": they cannot be read")
SCHEDULE_KEY_TOO_LARGE = (_DROPPED, _SCHEDULE_KEY + _TOO_LARGE)
"""Headers that follow all others of a dead letter: what it lacks, and why."""

_PARTITION_KEY = f"{DEAD_LETTER_PREFIX}target-partition-key"
_KEY = "schedule-key-base64"


class _Typed(msgspec.Struct):
    event: str


_ENCODER = msgspec.json.Encoder()
_RESULT = msgspec.json.Decoder(Result)
_HISTORY = msgspec.json.Decoder(HistoryEvent)
_TYPED = msgspec.json.Decoder(_Typed)
_KNOWN = frozenset(event.value for event in EventType)

encode_result = _ENCODER.encode
"""Result -> JSON."""

encode_history = _ENCODER.encode
"""HistoryEvent -> JSON."""


def decode_result(value: bytes | None) -> Result:
    """Decode a result record's value. Raises FormatError."""
    return _decoded(_RESULT, value, "a result")


def decode_history(value: bytes | None) -> HistoryEvent:
    """Decode a history record's value. Raises FormatError; FormatTooNew for an event of an unknown type."""
    try:
        return _decoded(_HISTORY, value, "a history event")
    except FormatError:
        if (unknown := _unknown_type(value)) is not None:
            raise FormatTooNew(f"not a history event that this version knows: {unknown!r}") from None
        raise


def decode_events(document: bytes, kind: type[T]) -> T:
    """Decode a JSON document of a worker. Raises MsgspecError.

    Leaves out entries of the list `events` with types that only newer versions know.
    """
    try:
        return msgspec.json.decode(document, type=kind)
    except msgspec.ValidationError:
        if (known := _known_only(document)) is None:
            raise
        return msgspec.json.decode(known, type=kind)


def change_record(tenant: str, reason: str, requester: Requester, at: int) -> tuple[bytes, bytes]:
    """Return key and value of the history record of a change. `reason` describes the old and the new value.

    `tenant` is empty if the change does not concern exactly one tenant.
    """
    event = HistoryEvent(
        EventType.CHANGED,
        tenant,
        None,
        version=None,
        due=None,
        at=at,
        sequence=None,
        attempt=None,
        target_topic=None,
        reason=reason,
        partition=CHANGES_PARTITION,
        by=requester.by,
        address=requester.address,
    )
    return history_key(tenant, None), encode_history(event)


def result_headers(correlation_id: bytes | None) -> Headers:
    """Return the headers of a result record."""
    return [] if correlation_id is None else [(CORRELATION_ID, correlation_id)]


def correlation_id_of(headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """Return the correlation id of a result record."""
    return next((value for name, value in headers if name == CORRELATION_ID), None)


def history_key(tenant: str, id: str | None) -> bytes:
    """Return the key of a schedule's history records: `tenant/id`, or `tenant/` if no id is known."""
    return f"{tenant}/{id or ''}".encode()


def history_key_of(identity: bytes) -> bytes:
    """Return the key of a schedule's history records from its identity in state records."""
    return identity.replace(b"\0", b"/", 1)


def encode_dead_letter(letter: DeadLetter, source_topic: str) -> tuple[bytes | None, bytes | None, Headers]:
    """Return key, value and headers of a dead letter's record.

    `cause`, `reason`, `tenant`, `at` and the source are always there; `field`, `id`, `due`, `target-topic`,
    `firing-id`, `target-partition`, `target-partition-key`, `original-due` and `schedule-key-base64` where they are
    known, and `tenant-unknown` where it is. The schedule's key is base64 since older versions read any header as text.
    """
    firing = None if letter.id is None or letter.due is None else firing_id(letter.id, letter.due)
    fields = (
        ("cause", letter.cause.value),
        ("reason", letter.reason),
        ("field", letter.field),
        ("tenant", letter.tenant),
        ("id", letter.id),
        ("at", letter.at),
        ("due", letter.due),
        ("target-topic", letter.target_topic),
        ("source-topic", source_topic),
        ("source-partition", letter.source_partition),
        ("source-offset", letter.source_offset),
        ("firing-id", firing),
        ("target-partition", letter.target_partition),
        ("tenant-unknown", None if letter.is_tenant_known else "true"),
        ("original-due", letter.original_due),
        (_KEY, None if letter.schedule_key is None else b64encode(letter.schedule_key).decode()),
    )
    ours: Headers = [(DEAD_LETTER_PREFIX + name, str(value).encode()) for name, value in fields if value is not None]
    if letter.target_partition_key is not None:
        ours.append((_PARTITION_KEY, letter.target_partition_key))
    return letter.key, letter.value, [*letter.headers, *ours]


def decode_dead_letter(record: CommandRecord) -> tuple[DeadLetter, str]:
    """Decode a dead letter's record. Return the letter and the topic of its source record. Raises FormatError."""
    headers = list(record.headers)
    fields: dict[str, str] = {}
    try:
        # The last `dead-letter-cause` begins the headers of this letter: a message that was a dead letter before still
        # has the older headers.
        start = max(place for place, (name, _) in enumerate(headers) if name == DEAD_LETTER_PREFIX + "cause")
        ours = headers[start:]
        for name, value in ours:
            if name == _PARTITION_KEY:
                continue  # any bytes
            fields[name.removeprefix(DEAD_LETTER_PREFIX)] = (value or b"").decode()
        letter = DeadLetter(
            cause=DeadLetterCause(fields["cause"]),
            reason=fields["reason"],
            field=fields.get("field"),
            tenant=fields["tenant"],
            id=fields.get("id"),
            at=int(fields["at"]),
            due=int(fields["due"]) if "due" in fields else None,
            target_topic=fields.get("target-topic"),
            source_partition=int(fields["source-partition"]),
            source_offset=int(fields["source-offset"]),
            key=record.key,
            value=record.value,
            headers=headers[:start],
            target_partition=int(fields["target-partition"]) if "target-partition" in fields else None,
            target_partition_key=dict(ours).get(_PARTITION_KEY),
            is_tenant_known="tenant-unknown" not in fields,
            original_due=int(fields["original-due"]) if "original-due" in fields else None,
            schedule_key=b64decode(fields[_KEY], validate=True) if _KEY in fields else None,
        )
        return letter, fields["source-topic"]
    except (KeyError, ValueError) as error:
        raise FormatError(f"not a dead letter: {error}") from error


class Lacking(NamedTuple):
    """What a dead letter lacks, in words, and whether that is its content or only the key of its schedule."""

    what: str
    is_content: bool


def lacking_in(record: CommandRecord) -> Lacking | None:
    """Return what the record of a dead letter lacks; None if it is complete."""
    name, value = record.headers[-1]
    if name != _DROPPED:
        return None
    what, *_ = (value or b"").partition(b": ")
    return Lacking(what.decode(errors="replace"), what != _SCHEDULE_KEY)


def _known_only(document: bytes) -> bytes | None:
    """Return a document without events of unknown types; None if it has no such events."""
    try:
        members = msgspec.json.decode(document, type=dict[str, msgspec.Raw])
        events = msgspec.json.decode(members.get("events", b"[]"), type=list[msgspec.Raw])
    except msgspec.ValidationError:
        return None
    known = [event for event in events if _unknown_type(event) is None]
    if len(known) == len(events):
        return None
    return _ENCODER.encode(members | {"events": msgspec.Raw(_ENCODER.encode(known))})


def _unknown_type(value: bytes | msgspec.Raw | None) -> str | None:
    try:
        event = _TYPED.decode(value or b"").event
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if event in _KNOWN else event


def _decoded(decoder: msgspec.json.Decoder[T], value: bytes | None, what: str) -> T:
    try:
        return decoder.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"not {what}: {error}") from error
