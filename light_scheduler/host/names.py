"""Addresses of names, as this machine resolves them."""

from __future__ import annotations

import socket
import threading


def addresses_of(name: str, timeout_s: float) -> tuple[str, ...]:
    """Return the addresses on which a server with this name would listen; empty if there are none, or not within the
    time-out.

    The resolver has no time-out. So a daemon thread waits for it, which does not delay the exit of the process.
    """
    found: list[str] = []

    def ask() -> None:
        try:
            answers = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except (OSError, UnicodeError):  # a label can be too long to be encoded
            return
        found.extend(dict.fromkeys(str(address[0]) for *_, address in answers))

    asking = threading.Thread(target=ask, name="addresses of a name", daemon=True)
    asking.start()
    asking.join(timeout_s)
    return tuple(found)
