"""The requester of a command over HTTP: a header that the worker adds, and lanes write into the history.

    schedule-requested-by   {"by": "shop", "address": "192.0.2.7", "signature": "..."}

The signature is the HMAC-SHA256 of the name, the address and the record's value, with the secret of the workers. Lanes
ignore a header with a wrong signature, so that senders of commands cannot forge the requester in the history. The value
contains the schedule and the command, so someone who can also read commands can only repeat the same command.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

import msgspec

from light_scheduler.model import Requester

from .record import CommandRecord

REQUESTED_BY = "schedule-requested-by"


class _Signed(msgspec.Struct, frozen=True):
    by: str
    address: str
    signature: str


_DECODER = msgspec.json.Decoder(_Signed)


def requester_header(requester: Requester, value: bytes, secret: bytes) -> tuple[str, bytes]:
    """Return the header for a record with this value."""
    signed = _Signed(requester.by, requester.address, _signature(requester, value, secret))
    return REQUESTED_BY, msgspec.json.encode(signed)


def requester_of(record: CommandRecord, secret: bytes | None) -> Requester | None:
    """Return the requester of a command; None if there is no header with a valid signature."""
    told = next((value for name, value in record.headers if name == REQUESTED_BY), None)
    if told is None or secret is None:
        return None
    try:
        signed = _DECODER.decode(told)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    requester = Requester(signed.by, signed.address)
    right = _signature(requester, record.value or b"", secret).encode()
    return requester if hmac.compare_digest(signed.signature.encode(), right) else None


def _signature(requester: Requester, value: bytes, secret: bytes) -> str:
    told = msgspec.json.encode([REQUESTED_BY, requester.by, requester.address])
    return hmac.new(secret, told + b"\n" + value, sha256).hexdigest()
