"""Records that the scheduler writes about its work: results, history events and dead letters.

Results and history events are JSON objects whose members are the fields of the structs. A dead letter is the original
record, byte for byte, with headers that say what happened to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import (
    DeadLetter,
    DeadLetterCause,
    Headers,
    HistoryEvent,
    Result,
    firing_id,
)

from .record import CommandRecord

T = TypeVar("T")

CORRELATION_ID = "schedule-correlation-id"
DEAD_LETTER_PREFIX = "dead-letter-"
_PARTITION_KEY = f"{DEAD_LETTER_PREFIX}target-partition-key"

_ENCODER = msgspec.json.Encoder()
_RESULT = msgspec.json.Decoder(Result)
_HISTORY = msgspec.json.Decoder(HistoryEvent)

encode_result = _ENCODER.encode
"""Result -> JSON."""

encode_history = _ENCODER.encode
"""HistoryEvent -> JSON."""


def decode_result(value: bytes | None) -> Result:
    """Read a result record's value. Raises FormatError."""
    return _decoded(_RESULT, value, "a result")


def decode_history(value: bytes | None) -> HistoryEvent:
    """Read a history record's value. Raises FormatError."""
    return _decoded(_HISTORY, value, "a history event")


def result_headers(correlation_id: bytes | None) -> Headers:
    """Return the headers of a result record."""
    return [] if correlation_id is None else [(CORRELATION_ID, correlation_id)]


def correlation_id_of(headers: Sequence[tuple[str, bytes | None]]) -> bytes | None:
    """Return the correlation id of a result record."""
    return next((value for name, value in headers if name == CORRELATION_ID), None)


def history_key(tenant: str, id: str | None) -> bytes:
    """Return the key of a schedule's history records: `tenant/id`, and `tenant/` where no id is known."""
    return f"{tenant}/{id or ''}".encode()


def history_key_of(identity: bytes) -> bytes:
    """Return the key of a schedule's history records from the bytes that name it in state records."""
    return identity.replace(b"\0", b"/", 1)


def encode_dead_letter(letter: DeadLetter, source_topic: str) -> tuple[bytes | None, bytes | None, Headers]:
    """Return key, value and headers of a dead letter's record.

    `cause`, `reason`, `tenant`, `at` and the source are always there; `field`, `id`, `due`, `target-topic`,
    `firing-id`, `target-partition` and `target-partition-key` where they are known.
    """
    firing = None if letter.id is None or letter.due is None else firing_id(letter.id, letter.due)
    told = (
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
    )
    ours: Headers = [(DEAD_LETTER_PREFIX + name, str(value).encode()) for name, value in told if value is not None]
    if letter.target_partition_key is not None:
        ours.append((_PARTITION_KEY, letter.target_partition_key))
    return letter.key, letter.value, [*letter.headers, *ours]


def decode_dead_letter(record: CommandRecord) -> tuple[DeadLetter, str]:
    """Read a dead letter's record back: the letter, and the topic that its source record is in. Raises FormatError."""
    headers = list(record.headers)
    told: dict[str, str] = {}
    try:
        # The last `dead-letter-cause` begins what was told of this record: a message that has been a dead letter before
        # brings the older headers with it.
        start = max(place for place, (name, _) in enumerate(headers) if name == DEAD_LETTER_PREFIX + "cause")
        ours = headers[start:]
        for name, value in ours:
            if name == _PARTITION_KEY:
                continue  # any bytes
            told[name.removeprefix(DEAD_LETTER_PREFIX)] = (value or b"").decode()
        letter = DeadLetter(
            cause=DeadLetterCause(told["cause"]),
            reason=told["reason"],
            field=told.get("field"),
            tenant=told["tenant"],
            id=told.get("id"),
            at=int(told["at"]),
            due=int(told["due"]) if "due" in told else None,
            target_topic=told.get("target-topic"),
            source_partition=int(told["source-partition"]),
            source_offset=int(told["source-offset"]),
            key=record.key,
            value=record.value,
            headers=headers[:start],
            target_partition=int(told["target-partition"]) if "target-partition" in told else None,
            target_partition_key=dict(ours).get(_PARTITION_KEY),
        )
        return letter, told["source-topic"]
    except (KeyError, ValueError) as error:
        raise FormatError(f"not a dead letter: {error}") from error


def _decoded(decoder: msgspec.json.Decoder[T], value: bytes | None, what: str) -> T:
    try:
        return decoder.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FormatError(f"not {what}: {error}") from error
