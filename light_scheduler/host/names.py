"""Addresses of names, as this machine knows them."""

from __future__ import annotations

import socket
import threading


def addresses_of(name: str, timeout_s: float) -> tuple[str, ...]:
    """Return the addresses that a server would listen on by a name; none if it has none, or not within a time.

    The resolver cannot be given a time-out. A thread waits for it, which holds up nobody's exit.
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
