"""Whether a server of any kind is alive."""

from __future__ import annotations

import socket


def takes_connections(host: str, port: int, *, timeout: float) -> bool:
    """Return whether a server reacts to a connection that ends without a request: a hanging program does not.

    A server at its limits refuses the connection, which also counts as alive. Blocks for at most `timeout` seconds per
    step.
    """
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    except OSError:
        return False
    return True
