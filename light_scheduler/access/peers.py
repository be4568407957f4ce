"""Signatures that prove to a worker that a request comes from another worker. Each is for one worker, path and moment.
Pure.

    Light-Scheduler-Peer: {UTC epoch ms}:{HMAC-SHA256, hexadecimal}

The secret is in the tenants topic, which all workers share, so it needs no set-up. Whoever can read the application's
topics gains nothing from it: a peer may only read schedules, which are in the changelog anyway.
"""

from __future__ import annotations

import hmac
import re
from hashlib import sha256

PEER_HEADER = "Light-Scheduler-Peer"

LEEWAY_MS = 30_000
"""Maximum age of a signature, and maximum difference between the clocks of two workers."""

_SIGNED = re.compile(r"(?P<at>\d{1,16}):(?P<signature>[0-9a-f]{64})", re.ASCII)


def signed(secret: bytes, authority: str, path: str, now: int) -> str:
    """Return the header for a GET of `path`, including its query, at the worker `authority` (host:port)."""
    return f"{now}:{_signature(secret, authority, path, now)}"


def is_signed(header: str, secret: bytes, authority: str, path: str, now: int) -> bool:
    """Return whether the header is a worker's valid signature for this path at the worker `authority`, at this time."""
    match = _SIGNED.fullmatch(header)
    if match is None or abs(now - int(match["at"])) > LEEWAY_MS:
        return False
    return hmac.compare_digest(match["signature"], _signature(secret, authority, path, int(match["at"])))


def _signature(secret: bytes, authority: str, path: str, at: int) -> str:
    return hmac.new(secret, f"GET\n{authority}\n{path}\n{at}".encode(), sha256).hexdigest()
