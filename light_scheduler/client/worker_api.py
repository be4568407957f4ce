"""Asks any worker over HTTP: blocking, with the standard library, whose import costs least."""

from __future__ import annotations

import time
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from light_scheduler.connection import HttpSecurity, Secret
from light_scheduler.connection.http_security import NO_TLS
from light_scheduler.connection.worker_connection import failed, new_connection, open_connection
from light_scheduler.errors import ClientError, InvalidCommand

from .questions import Question

T = TypeVar("T", bound=msgspec.Struct)

TIMEOUT_S = 15.0
MOST_RETRIES = 10
RETRY_AFTER_S = 1.0
"""How often, and how long after, a request is sent again that a worker had too many others for."""


class _Problem(msgspec.Struct):
    detail: str
    parameter: str | None = None


class WorkerApi:
    """A worker at `url` (`http[s]://host:port`), which answers for the whole cluster. Safe in threads.

    `token` is sent as `Authorization: Bearer`, and `security` says whom to trust with https. Raises InvalidCommand if
    `url` is none.
    """

    def __init__(self, url: str, token: str | Secret | None = None, security: HttpSecurity = NO_TLS) -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise InvalidCommand("url", f"{url!r} is not an address of a worker: use http[s]://HOST:PORT")
        self._url = url.rstrip("/")
        self._place = place
        self._token = Secret(token) if isinstance(token, str) else token
        self._security = security

    def asked(self, question: Question[T]) -> T | None:
        """Return the answer; None if there is nothing of that name.

        Raises WorkerUnreachable, InvalidCommand for a parameter that the worker refuses, ClientError if it refuses
        for another reason.
        """
        status, body = self._asked(question.method, question.path, question.body)
        for _ in range(MOST_RETRIES):
            if status != HTTPStatus.TOO_MANY_REQUESTS:
                break
            time.sleep(RETRY_AFTER_S)
            status, body = self._asked(question.method, question.path, question.body)
        if status == HTTPStatus.OK:
            return question.read(body)
        try:
            problem = msgspec.json.decode(body, type=_Problem)
        except msgspec.MsgspecError:
            raise ClientError(f"{self._url} answered {status}, and is not a worker: check the address") from None
        if status == HTTPStatus.NOT_FOUND:
            return None
        if problem.parameter is not None:
            raise InvalidCommand(problem.parameter, problem.detail.removeprefix(f"{problem.parameter}: "))
        raise ClientError(f"{self._url}: {problem.detail}")

    def _asked(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        place = self._place
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token.reveal()}"}
        with closing(new_connection(place, TIMEOUT_S, self._security)) as connection:
            open_connection(connection, self._url)
            try:
                connection.request(method, place.path.rstrip("/") + path, body, headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except TimeoutError:
                raise ClientError(f"{self._url} did not answer within {TIMEOUT_S:g} s") from None
            except (HTTPException, OSError) as error:
                raise failed(self._url, error) from error


def api_of(url: str | None, token: str | Secret | None, security: HttpSecurity) -> WorkerApi | None:
    """Return the API at an address, if there is one."""
    return None if url is None else WorkerApi(url, token, security)


def required(api: WorkerApi | None) -> WorkerApi:
    """Return the API. Raises ClientError if the client was given none."""
    if api is None:
        raise ClientError("this call asks a worker over HTTP: give the client url='http://HOST:PORT'")
    return api
