"""Records of the idempotency topic: which request executes a key, that its command was sent, and its result.

    key of a record     hash of tenant and idempotency key, 32 hex digits
    claim               header `idempotency-claim`: request id; value {"fingerprint", "id" of the schedule, "tenant"}
    sent                header `idempotency-sent`: request id; value {"partition", "offset"} of the command
    result              header `schedule-correlation-id`: request id; key and value as in the results topic

A request id is `{hash}:{32 random hex digits}`. Lanes write the results, since the topic is the reply topic of the
command. Claims and marks are written without a transaction. The owner of a key renews its claim with the same record.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import Headers, Result

from .events import correlation_id_of, decode_result
from .record import CommandRecord

CLAIM = "idempotency-claim"
SENT = "idempotency-sent"

T = TypeVar("T")


class ClaimMade(msgspec.Struct, frozen=True):
    """A request claims to execute a key, with its own schedule id.

    `tenant` is empty if it is missing, as in records of other versions.
    """

    fingerprint: str
    id: str
    tenant: str = ""


class CommandSent(msgspec.Struct, frozen=True):
    """The request's command was sent."""

    partition: int
    offset: int


ClaimEvent = ClaimMade | CommandSent | Result


def key_hash(tenant: str, key: str) -> str:
    """Return the hash of a tenant's idempotency key."""
    return _digest(tenant.encode() + b"\0" + key.encode())


def fingerprint_of(body: bytes) -> str:
    """Return the hash of a request's body."""
    return _digest(body)


def key_hash_of(request_id: str) -> str:
    """Return the key's hash in a request id."""
    return request_id.partition(":")[0]


def claim_record(request_id: str, event: ClaimMade | CommandSent) -> tuple[bytes, bytes, Headers]:
    """Return key, value and headers of a claim or a mark."""
    header = CLAIM if isinstance(event, ClaimMade) else SENT
    return key_hash_of(request_id).encode(), msgspec.json.encode(event), [(header, request_id.encode())]


def claim_event_of(record: CommandRecord) -> tuple[str, ClaimEvent] | None:
    """Return the request id and the event of a record; None for any other record."""
    try:
        for name, value in record.headers:
            if name == CLAIM:
                return (value or b"").decode(), _decoded(record, ClaimMade)
            if name == SENT:
                return (value or b"").decode(), _decoded(record, CommandSent)
        correlation_id = correlation_id_of(record.headers)
        return None if correlation_id is None else (correlation_id.decode(), decode_result(record.value))
    except (FormatError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _decoded(record: CommandRecord, kind: type[T]) -> T:
    return msgspec.json.decode(record.value or b"", type=kind)


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
