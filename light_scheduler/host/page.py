"""One page of an HTTP server, for those who wait for it anyway."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from http.client import OK, HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


def page_of(
    host: str,
    port: int,
    path: str,
    *,
    timeout: float,
    headers: Mapping[str, str] | None = None,
    context: ssl.SSLContext | None = None,
) -> bytes | None:
    """Return what a server answers; None if it does not, or with another status than 200. With `context`, over TLS.

    Blocks for at most `timeout` seconds at each step: connecting, and every part of the answer.
    """
    opened = (
        HTTPConnection(host, port, timeout=timeout)
        if context is None
        else HTTPSConnection(host, port, timeout=timeout, context=context)
    )
    with closing(opened) as connection:
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.read() if answer.status == OK else None
        except (OSError, HTTPException):
            return None
