"""Sockets that listen at a host and a port."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from typing import Any

BACKLOG = 512
"""Number of connections that the system queues until they are accepted. Beyond it, clients retry only after a
second."""

_ABSENT = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""A name may have addresses that this machine lacks, such as an IPv6 one."""

AddressInfo = tuple[Any, Any, int, str, Any]
"""A result of `socket.getaddrinfo`."""


def listening_at(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of a host that this machine has. Raises OSError if it has none of
    them."""
    return listening_on(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE))


def listening_on(found: Iterable[AddressInfo]) -> list[socket.socket]:
    """Return a listening socket for each of the addresses that this machine has. Raises OSError if it has none of
    them."""
    sockets: list[socket.socket] = []
    absent: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        try:
            sockets.append(socket.create_server(address[:2], family=family, backlog=BACKLOG))
        except OSError as error:
            if error.errno not in _ABSENT:
                for listening in sockets:
                    listening.close()
                raise
            absent = error
    if absent is not None and not sockets:
        raise absent
    for listening in sockets:
        listening.setblocking(False)
    return sockets
