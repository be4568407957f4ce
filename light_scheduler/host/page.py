"""One page of an HTTP server, for those who wait for it anyway."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from http.client import OK, HTTPConnection, HTTPException


def page_of(
    host: str, port: int, path: str, *, timeout: float, headers: Mapping[str, str] | None = None
) -> bytes | None:
    """Return what a server answers; None if it does not, or with another status than 200.

    Blocks for at most `timeout` seconds at each step: connecting, and every part of the answer.
    """
    with closing(HTTPConnection(host, port, timeout=timeout)) as connection:
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.read() if answer.status == OK else None
        except (OSError, HTTPException):
            return None
