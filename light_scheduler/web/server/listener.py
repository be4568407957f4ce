"""Accepting connections: no more than a worker can hold, and without log noise when descriptors run out.

asyncio's own server accepts every connection, and logs a traceback again and again for those that it cannot accept.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import select
import socket
import ssl
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from light_scheduler.host.listening import listening_on
from light_scheduler.web.forms.problems import PROBLEM_MEDIA_TYPE, RETRY_AFTER_S, ProblemError, ProblemType

from .connection import Answers, Connection

MOST_CONNECTIONS = 1_000
DESCRIPTORS_SHARE = 4
"""Connections may have a quarter of the process's descriptors: state and Kafka need them too."""

HANDSHAKE_S = 5.0
"""Time-out of a TLS handshake."""

CLOSE_NOTIFY_S = 2.0
"""How long a client may take to close TLS."""

IDLE_LEAST_S = 1.0
"""If all places are taken, the connection that has been idle for longest is closed, if it was idle for this long."""

LEAVE_S = 0.1
"""How long a full process leaves a pending connection of a shared socket to other processes. After that, they count as
full, too."""

OTHERS_FULL_S = 0.5
"""For how long they count as full."""

_AT_ONCE = 8
_REFUSAL_PAUSE_S = 0.005
_RETRY_S = 0.5
_STUCK_CHECK_S = 2.0
_WARN_EVERY_S = 10.0

_TLS_TIMEOUTS = {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": CLOSE_NOTIFY_S}

log = logging.getLogger(__name__)


def most_connections() -> int:
    """Return the number of connections that this process can hold."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // DESCRIPTORS_SHARE)


class Listener:
    """Accepts connections on `sockets`, up to `most` at a time, for `server`. With `tls`, they are over TLS.

    Other processes listen on the `shared` sockets, too, and go first while this one is full. `close` it at the end.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        server: web.Server,
        most: int,
        tls: ssl.SSLContext | None = None,
        shared: Sequence[socket.socket] = (),
    ) -> None:
        self.sockets = sockets
        self._shared = shared
        self._others_full_until = 0.0
        self._server = server
        self._most = most
        self._tls = tls
        self._timed = {} if tls is None else _TLS_TIMEOUTS
        self._loop = asyncio.get_running_loop()
        self._answers = Answers()
        self._opening: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._warned_at = -_WARN_EVERY_S
        self._resume()
        self._end_stuck()

    def close(self) -> None:
        """Accept no more connections. Open ones stay open."""
        for timer in self._timers.values():
            timer.cancel()
        for listening in self.sockets:
            self._loop.remove_reader(listening)
            listening.close()

    def _resume(self) -> None:
        for listening in self.sockets:
            self._loop.add_reader(listening, self._take, listening)

    def _pause(self, seconds: float) -> None:
        for listening in self.sockets:
            self._loop.remove_reader(listening)
        if "resume" in self._timers:
            self._timers["resume"].cancel()
        self._timers["resume"] = self._loop.call_later(seconds, self._resume)

    @property
    def _is_full(self) -> bool:
        return len(self._server.connections) + len(self._opening) >= self._most

    def _leave(self, listening: socket.socket) -> None:
        """Leave pending connections of a shared socket to other processes, if one of them has room."""
        self._loop.remove_reader(listening)

        def come_back() -> None:
            waiting = select.poll()
            waiting.register(listening, select.POLLIN)
            if waiting.poll(0):
                self._others_full_until = self._loop.time() + OTHERS_FULL_S
            self._loop.add_reader(listening, self._take, listening)

        self._timers[f"left {listening.fileno()}"] = self._loop.call_later(LEAVE_S, come_back)

    def _take(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            if listening in self._shared and self._is_full and self._loop.time() >= self._others_full_until:
                self._leave(listening)
                return
            try:
                accepted, _address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._warn(f"cannot take HTTP connections: {error.strerror}")
                self._make_room()
                self._pause(_RETRY_S)
                return
            accepted.setblocking(False)
            if self._is_full and not self._make_room():
                self._warn(f"{self._most} HTTP connections are open: no more are taken")
                if self._tls is None:
                    _refuse(accepted)
                accepted.close()
                self._pause(_REFUSAL_PAUSE_S)
                return
            opening = self._loop.create_task(self._open(accepted))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)

    async def _open(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: Connection(self._server, self._answers, self._loop), accepted, ssl=self._tls, **self._timed
            )
        except OSError as error:
            accepted.close()
            log.debug("a connection ended before it began: %s", error)

    def _make_room(self) -> bool:
        """Close the connection that has been idle for longest. Return whether there was one."""
        idle = [
            (since, connection)
            for connection in self._server.connections
            if isinstance(connection, Connection) and (since := connection.idle_since()) is not None
        ]
        since, longest = min(idle, key=lambda pair: pair[0], default=(0.0, None))
        if longest is None or self._loop.time() - since < IDLE_LEAST_S:
            return False
        longest.force_close()
        return True

    def _end_stuck(self) -> None:
        for connection in self._server.connections:
            if isinstance(connection, Connection):
                connection.end_if_stuck()
        self._timers["stuck"] = self._loop.call_later(_STUCK_CHECK_S, self._end_stuck)

    def _warn(self, message: str) -> None:
        """Log a line, but not too often: clients may keep trying for hours."""
        if self._loop.time() - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = self._loop.time()
            log.warning("%s", message)


class LimitedSite(web.BaseSite):
    """Serves an application at a host and a port, and on `shared` sockets, through a `Listener`.

    Other processes also listen on the `shared` sockets. With `tls`, it serves HTTPS.
    """

    def __init__(
        self,
        runner: web.BaseRunner,
        host: str,
        port: int,
        shared: Sequence[socket.socket] = (),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(runner, ssl_context=tls)
        self._host = host
        self._port = port
        self._shared = shared

    @property
    def name(self) -> str:
        return f"{self._host}:{self._port}"

    async def start(self) -> None:
        await super().start()
        found = await asyncio.get_running_loop().getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        sockets = [*listening_on(found), *self._shared]
        server = self._runner.server
        assert server is not None
        listener: Any = Listener(sockets, server, most_connections(), self._ssl_context, self._shared)
        self._server = listener  # its runner needs no more of a server than `sockets` and `close`


def _refuse(accepted: socket.socket) -> None:
    """Answer with the reason, without waiting."""
    try:
        accepted.send(_REFUSAL)
    except OSError as error:
        log.debug("a refused connection was closed by its client: %s", error)


_PROBLEM = msgspec.json.encode(
    ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "This worker has too many connections. Try again later.",
        type=ProblemType.TOO_MANY_CONNECTIONS,
    ).problem
)
_REFUSAL = (
    f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: {PROBLEM_MEDIA_TYPE}\r\nContent-Length: {len(_PROBLEM)}\r\n"
    f"Retry-After: {RETRY_AFTER_S}\r\nConnection: close\r\n\r\n"
).encode() + _PROBLEM
