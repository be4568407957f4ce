"""Requests to a worker's HTTP server, with the standard library's client, which is imported fastest."""

from __future__ import annotations

import re
import ssl
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit

from light_scheduler.errors import ClientError, ConfigurationError, WorkerUnreachable

from .http_security import NO_TLS, HttpSecurity
from .secret import Secret

TIMEOUT_S = 15.0
"""Default time-out of each step of a request."""

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*", re.ASCII)
"""Valid tokens after `Bearer` (RFC 6750, section 2.1)."""

_MAY_SPEAK_TLS = "If it speaks TLS, use https://"
_MAY_WANT_CERTIFICATE = "If it requires a client certificate, set web_ssl_certificate and web_ssl_key"


@dataclass(frozen=True)
class WorkerAddress:
    """A worker's address (`url`: `http[s]://host:port`, no login), the token for it, and the trusted authorities for
    https.

    `timeout_s` is for each step of a request: connecting, and every part of the answer.
    """

    url: str
    token: Secret | None = None
    security: HttpSecurity = NO_TLS
    timeout_s: float = TIMEOUT_S

    @property
    def is_valid(self) -> bool:
        """Whether `url` is a valid address."""
        try:
            place = urlsplit(self.url)
            return place.scheme in ("http", "https") and bool(place.hostname) and place.port != 0
        except ValueError:  # invalid port or IPv6 address
            return False

    def exchange(self, method: str, target: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Send a request. Return status and body. `target` is the encoded path with its query.

        Raises WorkerUnreachable, ClientError if there is no answer, and ConfigurationError.
        """
        place, headers = urlsplit(self.url), _bearer(self.token)
        with closing(self._new_connection(place)) as connection:
            self._open(connection)
            try:
                connection.request(method, place.path.rstrip("/") + target, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except TimeoutError:
                raise no_answer(self.url, self.timeout_s) from None
            except (HTTPException, OSError, ValueError) as error:
                raise _failed(self.url, error) from error

    def _new_connection(self, place: SplitResult) -> HTTPConnection:
        host = place.hostname or ""
        if place.scheme != "https":
            return HTTPConnection(host, place.port, timeout=self.timeout_s)
        from .http_tls import client_context

        return HTTPSConnection(host, place.port, timeout=self.timeout_s, context=client_context(self.security))

    def _open(self, connection: HTTPConnection) -> None:
        try:
            connection.connect()
        except ssl.SSLError as error:
            raise _failed(self.url, error) from error
        except OSError as error:
            raise WorkerUnreachable(self.url) from error


def no_answer(url: str, timeout_s: float) -> ClientError:
    """Return the error for a request that took too long."""
    return ClientError(f"{url} did not answer within {timeout_s:g} s")


def _bearer(token: Secret | None) -> dict[str, str]:
    """Return the header with a token. Raises ConfigurationError, without showing the token, if it is not valid in a
    header."""
    if token is None:
        return {}
    text = token.reveal().strip()
    if not _TOKEN.fullmatch(text):
        raise ConfigurationError(
            "token",
            "is not one word of letters, digits and the characters - . _ ~ + / = (its text is not shown here): check "
            "for a second line, spaces or quotes",
        )
    return {"Authorization": f"Bearer {text}"}


def _failed(url: str, error: Exception) -> ClientError:
    """Return the error for a request that the worker did not answer."""
    from .http_tls import tls_fault

    reason = tls_fault(error) or str(error) or type(error).__name__
    if isinstance(error, HTTPException | ConnectionResetError):  # asyncio's servers close the connection silently
        is_plain = url.startswith("http:")
        reason += f". {_MAY_SPEAK_TLS if is_plain else _MAY_WANT_CERTIFICATE}"
    return ClientError(f"cannot ask the worker at {url}: {reason}")
