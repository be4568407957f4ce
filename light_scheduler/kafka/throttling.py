"""For how long brokers have told a client to wait, by connection.

A request beyond the client's quota is answered at once; the answer says for how long the broker reads nothing more from
this connection (KIP-219). aiokafka goes on sending, and what it sends is answered afterwards: that is no silence.
"""

from __future__ import annotations

import time
from typing import Any
from weakref import WeakKeyDictionary, ref


class _Wait:
    """When (monotonic, s) a broker reads on."""

    until = 0.0


_waits: WeakKeyDictionary[Any, _Wait] = WeakKeyDictionary()
"""By connection; one that has replaced another has the same."""


def follow(conn: Any) -> None:
    """Take in what the answers of a connection say from now on."""
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
    """Return whether a broker does not read from a connection just now, for it has said so."""
    return conn is not None and conn in _waits and time.monotonic() < _waits[conn].until


def share_waits(old: Any, new: Any) -> None:
    """Have a connection count as told to wait whenever that is which it has replaced, whose answers may be due."""
    for conn in (old, new):
        follow(conn)
    _waits[new] = _waits[old]


def _take_in(conn: Any, answered: Any) -> None:
    if answered.done() and not answered.cancelled() and answered.exception() is None:
        throttle_ms = getattr(answered.result(), "throttle_time_ms", 0)
        if throttle_ms > 0:
            _waits[conn].until = time.monotonic() + throttle_ms / 1_000
