"""Whether a server is alive, whatever it serves."""

from __future__ import annotations

import socket


def takes_connections(host: str, port: int, *, timeout: float) -> bool:
    """Return whether a server reacts to a connection that ends without a request: a program that hangs does nothing.

    One that is at its limits refuses it, which tells as much. Blocks for at most `timeout` seconds at each step.
    """
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    except OSError:
        return False
    return True
