"""Signed headers of records that workers send each other through the commands topic.

The signature is the HMAC-SHA256 of the header's name, its text and some content, with the secret of the workers. Other
senders can write to the topic too, but must not forge these headers.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable
from hashlib import sha256

from light_scheduler.errors import InvalidCommand

from .record import CommandRecord


def signed(name: str, said: str, content: bytes, secret: bytes) -> tuple[str, bytes]:
    """Return a header with a text, followed by the signature of text and content."""
    return name, f"{said}:{_signature(name, said, content, secret)}".encode()


def require_signed(headers: Iterable[tuple[str, bytes | None]], content: bytes, secret: bytes) -> None:
    """Raise InvalidCommand unless a worker has signed each of these headers with this content."""
    for name, value in headers:
        if not _is_signed(name, value, content, secret):
            raise not_ours(name)


def bound_to(topic: str, to: int) -> bytes:
    """Return the content to sign for a header that is only valid in one partition of a topic."""
    return f"{topic}:{to}".encode()


def require_signed_for(record: CommandRecord, topic: str, secret: bytes) -> None:
    """Raise InvalidCommand unless a worker has signed all headers of a record for its topic and partition."""
    require_signed(record.headers, bound_to(topic, record.partition), secret)


def parsed(form: re.Pattern[str], name: str, value: bytes | None) -> tuple[str, ...]:
    """Return the groups of a header's text, which may be forged. Raises InvalidCommand if it does not match `form`."""
    match = form.fullmatch((value or b"").decode(errors="replace"))
    if match is None:
        raise not_ours(name)
    return match.groups("")


def not_ours(name: str) -> InvalidCommand:
    """Return the error for a header that only workers may set."""
    return InvalidCommand(name, "is set by workers on the records that they send each other: leave it out")


def _is_signed(name: str, value: bytes | None, content: bytes, secret: bytes) -> bool:
    """Return whether a worker has signed a header. Without a secret, no signature is valid."""
    said, _, signature = (value or b"").decode(errors="replace").rpartition(":")
    return bool(secret) and hmac.compare_digest(signature.encode(), _signature(name, said, content, secret).encode())


def _signature(name: str, said: str, content: bytes, secret: bytes) -> str:
    return hmac.new(secret, f"{name}:{said}\n".encode() + content, sha256).hexdigest()
