"""Tracks by connection how long brokers throttle a client.

A request beyond the client's quota is answered immediately, and the answer says how long the broker will not read from
this connection (KIP-219). aiokafka continues to send, and gets the answers later: this is not silence.
"""

from __future__ import annotations

import time
from typing import Any
from weakref import WeakKeyDictionary, ref


class _Wait:
    """The time (monotonic, s) until which a broker throttles."""

    until = 0.0


_waits: WeakKeyDictionary[Any, _Wait] = WeakKeyDictionary()
"""By connection. A connection shares the object of the one that it replaced."""


def follow(conn: Any) -> None:
    """Track the throttle times in the answers of a connection."""
    if conn in _waits:
        return
    _waits[conn] = _Wait()
    handle, followed = type(conn)._handle_frame, ref(conn)

    def handle_frame(frame: bytes) -> None:
        if (conn := followed()) is not None:
            answered = conn._requests[0][2]
            handle(conn, frame)
            _take_in(conn, answered)

    conn._handle_frame = handle_frame


def is_throttled(conn: Any) -> bool:
    """Return whether the broker currently throttles a connection."""
    return conn is not None and conn in _waits and time.monotonic() < _waits[conn].until


def share_waits(old: Any, new: Any) -> None:
    """Make a new connection share the throttle time of the one that it replaces, which may still have answers due."""
    for conn in (old, new):
        follow(conn)
    _waits[new] = _waits[old]


def _take_in(conn: Any, answered: Any) -> None:
    if answered.done() and not answered.cancelled() and answered.exception() is None:
        throttle_ms = getattr(answered.result(), "throttle_time_ms", 0)
        if throttle_ms > 0:
            _waits[conn].until = time.monotonic() + throttle_ms / 1_000
