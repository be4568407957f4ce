"""Free TCP ports of this machine."""

from __future__ import annotations

import errno
import random
import socket
from typing import Any, Literal

HOST = "127.0.0.1"

PORTS = range(20_000, 32_000)
"""Ports to choose from. They are below the range for outgoing connections, so that a broker that restarts finds its
port still free. Processes that choose ports at the same time need separate ranges."""

_ATTEMPTS = 200
_given: set[int] = set()


def port_is_free(port: int, host: str = HOST) -> bool:
    """Return whether a server could listen on a port at each address of a host, IPv4 and IPv6.

    Addresses that this machine lacks are ignored, as servers ignore them, unless there is no other.
    """
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    tried = {_binding(family, kind, protocol, address) for family, kind, protocol, _, address in addresses}
    return tried - {None} == {"free"}


def _binding(family: int, kind: int, protocol: int, address: Any) -> Literal["free", "in use"] | None:
    """Try one address. None if this machine lacks it."""
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # As servers do. Otherwise an IPv6 wildcard would also take the IPv4 port, and conflict with itself.
                probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        return None if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT) else "in use"
    return "free"


def free_port() -> int:
    """Return a port that nothing listens on. Each call returns another one, since the caller may begin to listen
    later."""
    numbers = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        port = numbers.choice(PORTS)
        if port not in _given and port_is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no free port found between {PORTS.start} and {PORTS.stop - 1}")
