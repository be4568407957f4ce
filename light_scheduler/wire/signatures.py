"""Headers that workers sign on the records that they send each other through the commands topic.

The signature is the HMAC-SHA256 of the header's name, of what it says and of some content, with the secret that workers
share: anyone may write to the topic, and nobody else may say these things.
"""

from __future__ import annotations

import hmac
from hashlib import sha256

from light_scheduler.errors import InvalidCommand

from .record import CommandRecord


def signed(name: str, said: str, content: bytes, secret: bytes) -> tuple[str, bytes]:
    """Return a header that says something about content, with the signature of both at its end."""
    return name, f"{said}:{_signature(name, said, content, secret)}".encode()


def is_signed(name: str, value: bytes | None, content: bytes, secret: bytes) -> bool:
    """Return whether a worker has signed a header. Without a secret nothing can be signed."""
    said, _, signature = (value or b"").decode(errors="replace").rpartition(":")
    return bool(secret) and hmac.compare_digest(signature.encode(), _signature(name, said, content, secret).encode())


def bound_to(topic: str, to: int) -> bytes:
    """Return the content for a header that counts in one partition of a topic only."""
    return f"{topic}:{to}".encode()


def require_ours(record: CommandRecord, topic: str, secret: bytes) -> None:
    """Raise InvalidCommand unless a worker has signed all headers of a record for its partition of a topic."""
    for name, value in record.headers:
        if not is_signed(name, value, bound_to(topic, record.partition), secret):
            raise not_ours(name)


def not_ours(name: str) -> InvalidCommand:
    """Return the error of a header that only workers set."""
    return InvalidCommand(name, "is set by workers on the records that they send each other: leave it out")


def _signature(name: str, said: str, content: bytes, secret: bytes) -> str:
    return hmac.new(secret, f"{name}:{said}\n".encode() + content, sha256).hexdigest()
