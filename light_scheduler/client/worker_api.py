"""Queries any worker over HTTP: blocking, with the standard library, which is imported fastest."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TypeVar

import msgspec

from light_scheduler.connection import HttpSecurity, Secret
from light_scheduler.connection.http_security import NO_TLS
from light_scheduler.connection.urls import without_login
from light_scheduler.connection.worker_connection import WorkerAddress
from light_scheduler.errors import ClientError, InvalidCommand

from .questions import Question

A = TypeVar("A")
T = TypeVar("T", bound=msgspec.Struct)

MOST_RETRIES = 10
RETRY_AFTER_S = 1.0
"""How often and how long after a request is repeated if the worker is too busy."""


class TooManyRequests(ClientError):
    """The worker is too busy at the moment."""

    retriable = True


class _Problem(msgspec.Struct):
    detail: str
    parameter: str | None = None


class WorkerApi:
    """A worker at `url` (`http[s]://host:port`), which answers for the whole cluster. Thread-safe.

    `token` is sent as `Authorization: Bearer`. `security` sets the trusted authorities for https. Raises InvalidCommand
    for an invalid `url`.
    """

    def __init__(self, url: str, token: str | Secret | None = None, security: HttpSecurity = NO_TLS) -> None:
        url = without_login(url).rstrip("/")
        self._address = WorkerAddress(url, Secret(token) if isinstance(token, str) else token, security)
        self._has_token = token is not None
        if not self._address.is_valid:
            raise InvalidCommand("url", f"{url!r} is not an address of a worker: use http[s]://HOST:PORT")

    def asked(self, question: Question[T]) -> T | None:
        """Return the answer; None if the requested thing does not exist.

        Raises WorkerUnreachable, InvalidCommand for a parameter that the worker refuses, and ClientError if it refuses
        for another reason.
        """
        for _ in range(MOST_RETRIES):
            try:
                return self.asked_once(question)
            except TooManyRequests:
                time.sleep(RETRY_AFTER_S)
        return self.asked_once(question)

    def asked_once(self, question: Question[T]) -> T | None:
        """Query once, as `asked`, but raise TooManyRequests if the worker is too busy."""
        url = self._address.url
        status, body = self._address.exchange(question.method, question.path, question.body)
        if status == HTTPStatus.OK:
            return question.read(body)
        try:
            problem = msgspec.json.decode(body, type=_Problem)
        except msgspec.MsgspecError:
            raise ClientError(f"{url} answered {status}, and is not a worker: check the address") from None
        if status == HTTPStatus.NOT_FOUND:
            return None
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            raise TooManyRequests(f"{url}: {problem.detail}")
        if problem.parameter is not None:
            raise InvalidCommand(problem.parameter, problem.detail.removeprefix(f"{problem.parameter}: "))
        if status == HTTPStatus.UNAUTHORIZED and not self._has_token:
            raise ClientError(f"{url}: the worker needs a token: give the client token='...'")
        raise ClientError(f"{url}: {problem.detail}")


def api_of(url: str | None, token: str | Secret | None, security: HttpSecurity) -> WorkerApi | None:
    """Return the API at an address; None without an address."""
    return None if url is None else WorkerApi(url, token, security)


def required(api: A | None) -> A:
    """Return the API. Raises ClientError if it is None."""
    if api is None:
        raise ClientError("this call asks a worker over HTTP: give the client url='http://HOST:PORT'")
    return api
