"""A connection to a worker's HTTP server, with the standard library: its import costs least."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult

from light_scheduler.errors import ClientError, WorkerUnreachable

from .http_security import HttpSecurity

_MAY_SPEAK_TLS = "If it speaks TLS, use https://"
_MAY_WANT_CERTIFICATE = "If it wants a client certificate, set web_ssl_certificate and web_ssl_key"


def new_connection(place: SplitResult, timeout: float, security: HttpSecurity) -> HTTPConnection:
    """Return a connection, not opened yet; `timeout` is in seconds. Raises ConfigurationError."""
    host = place.hostname or ""
    if place.scheme != "https":
        return HTTPConnection(host, place.port, timeout=timeout)
    from .http_tls import client_context

    return HTTPSConnection(host, place.port, timeout=timeout, context=client_context(security))


def open_connection(connection: HTTPConnection, url: str) -> None:
    """Connect. Raises WorkerUnreachable if nobody answers, ClientError if TLS fails."""
    try:
        connection.connect()
    except ssl.SSLError as error:
        raise failed(url, error) from error
    except OSError as error:
        raise WorkerUnreachable(url) from error


def failed(url: str, error: Exception) -> ClientError:
    """Return the error of a question that a worker did not answer."""
    from .http_tls import tls_fault

    reason = tls_fault(error) or str(error) or type(error).__name__
    if isinstance(error, HTTPException | ConnectionResetError):  # asyncio's servers close without a word
        is_plain = url.startswith("http:")
        reason += f". {_MAY_SPEAK_TLS if is_plain else _MAY_WANT_CERTIFICATE}"
    return ClientError(f"cannot ask the worker at {url}: {reason}")
