"""TCP ports of the loopback address."""

from __future__ import annotations

import random
import socket

from .properties import HOST

# Below the ranges that systems take the ports of outgoing connections from, so that a broker that is down for a moment
# finds its port still free.
_LOWEST, _HIGHEST = 20_000, 31_999
_ATTEMPTS = 200
_given: set[int] = set()


def port_is_free(port: int, host: str = HOST) -> bool:
    """Say whether a server could listen on a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a port that nothing listens on; another one each time, since who gets it may begin to listen later."""
    numbers = random.SystemRandom()
    for _ in range(_ATTEMPTS):
        port = numbers.randint(_LOWEST, _HIGHEST)
        if port not in _given and port_is_free(port):
            _given.add(port)
            return port
    raise OSError(f"no free port found between {_LOWEST} and {_HIGHEST}")
