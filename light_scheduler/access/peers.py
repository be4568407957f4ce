"""How a worker proves to another one that it is a worker: it signs each question for that worker and moment. Pure.

    Light-Scheduler-Peer: {UTC epoch ms}:{HMAC-SHA256, hexadecimal}

The secret is in the tenants topic, which workers make and share anyway. It needs no set-up, and gives nothing to those
who can read the application's topics that they do not have: a peer may only read schedules, which the changelog has.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256

PEER_HEADER = "Light-Scheduler-Peer"

LEEWAY_MS = 30_000
"""How old a signature may be, and how far the clocks of two workers may differ."""

_SIGNED = re.compile(r"(?P<at>\d{1,16}):(?P<signature>[0-9a-f]{64})", re.ASCII)


def signed(secret: bytes, authority: str, path: str, now: int) -> str:
    """Return the header of a GET of a path, with its query, at the worker `authority` (host:port)."""
    return f"{now}:{_signature(secret, authority, path, now)}"


def is_signed(header: str, secret: bytes, authority: str, path: str, now: int) -> bool:
    """Return whether a worker asks for this path of the worker `authority`, now."""
    match = _SIGNED.fullmatch(header)
    if match is None or abs(now - int(match["at"])) > LEEWAY_MS:
        return False
    return hmac.compare_digest(match["signature"], _signature(secret, authority, path, int(match["at"])))


def _signature(secret: bytes, authority: str, path: str, at: int) -> str:
    return hmac.new(secret, f"GET\n{authority}\n{path}\n{at}".encode(), sha256).hexdigest()
