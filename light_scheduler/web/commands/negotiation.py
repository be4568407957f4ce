"""Request headers of commands: the version that the client expects, and how long to wait.

`If-Match` has the version as an ETag; another version is answered with 412. So is `If-Match: *` without such a
schedule, and `If-None-Match: *` for an existing one. A GET with an ETag in `If-None-Match` is answered with 304 if the
version is still the same. `Prefer: wait=5` waits that long and then answers 202 in place of 504; `Prefer:
respond-async` does not wait (RFC 9110, RFC 7240).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import UNSET

from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.parameters import read_parameters
from light_scheduler.web.forms.problems import Extension, ProblemError, ProblemType

from .responses import sent_response
from .send_parameters import LONGEST_WAIT_S, SendParameters

IF_MATCH = "If-Match"
IF_NONE_MATCH = "If-None-Match"
PREFER = "Prefer"

P = TypeVar("P", bound=SendParameters)
Handle = Callable[..., Awaitable[web.Response]]

_VERSION = re.compile(r'"(\d{1,18})"', re.ASCII)
_ETAG = re.compile(r'(?:W/)?("[^"]*")')
_WAIT = re.compile(r'wait\s*=\s*"?(\d{1,9})"?', re.ASCII | re.IGNORECASE)


def expected_version(request: web.Request) -> dict[str, str]:
    """Return the fields that `If-Match` sets in a command. Raises QueryError if it is not an ETag of a schedule."""
    given = request.headers.getall(IF_MATCH, [])
    if not given:
        return {}
    if must_exist(request):
        return {}
    match = _VERSION.fullmatch(given[0].strip())
    if len(given) > 1 or match is None:
        raise QueryError(IF_MATCH, 'must be one ETag of the schedule, which is its version: "4"; or * for any version')
    return {"expected_version": match[1]}


def must_exist(request: web.Request) -> bool:
    """Return whether `If-Match` is `*`: the schedule must exist, with any version."""
    return [each.strip() for each in request.headers.getall(IF_MATCH, [])] == ["*"]


def only_if_absent(request: web.Request) -> dict[str, str]:
    """Return the fields that `If-None-Match` sets in a command that creates. Raises QueryError for anything but `*`."""
    given = request.headers.getall(IF_NONE_MATCH, [])
    if not given:
        return {}
    if [each.strip() for each in given] != ["*"]:
        raise QueryError(IF_NONE_MATCH, "must be * here: only if no schedule of this id is pending")
    if IF_MATCH in request.headers:
        raise QueryError(IF_NONE_MATCH, f"contradicts {IF_MATCH}: send one of them")
    return {"on_conflict": "fail"}


def is_known(request: web.Request, tag: str) -> bool:
    """Return whether `If-None-Match` contains the current ETag, so that the client already has the answer of a GET."""
    given = ",".join(request.headers.getall(IF_NONE_MATCH, []))
    return given.strip() == "*" or tag in _ETAG.findall(given)


def send_parameters(kind: type[P], request: web.Request) -> P:
    """Return the query string of a command, completed with the preferences in `Prefer`. Raises QueryError."""
    parameters = read_parameters(kind, request.query)
    seconds = preferred_wait_s(request)
    if seconds is None:
        return parameters
    if seconds == 0:
        return msgspec.structs.replace(parameters, wait=False)
    return msgspec.structs.replace(parameters, timeout=f"{min(seconds, int(LONGEST_WAIT_S))}s")


def preferred_wait_s(request: web.Request) -> int | None:
    """Return the seconds that `Prefer` asks to wait; 0: not at all. None if it does not say, or the query string
    decides."""
    if "timeout" in request.query or "wait" in request.query:
        return None
    for preference in ",".join(request.headers.getall(PREFER, [])).split(","):
        name = preference.partition(";")[0].strip()
        if name.lower() == "respond-async":
            return 0
        if (match := _WAIT.fullmatch(name)) is not None:
            return int(match[1])
    return None


def negotiated(handle: Handle) -> Handle:
    """Wrap a handler of a command so that its answers follow the request's `Prefer` header."""

    @functools.wraps(handle)
    async def answer(self: Any, request: web.Request, *args: Any, **options: Any) -> web.Response:
        seconds = preferred_wait_s(request)
        try:
            response = await handle(self, request, *args, **options)
        except ProblemError as error:
            problem = error.problem
            is_conditional = IF_MATCH in request.headers or IF_NONE_MATCH in request.headers
            if problem.status == HTTPStatus.CONFLICT and problem.result is not UNSET and is_conditional:
                raise ProblemError(
                    HTTPStatus.PRECONDITION_FAILED,
                    problem.detail,
                    extension=Extension(result=problem.result),
                    type=ProblemType.PRECONDITION_FAILED,
                ) from None
            if problem.status != HTTPStatus.GATEWAY_TIMEOUT or problem.sent is UNSET or seconds is None:
                raise
            response = sent_response(problem.sent)
        if seconds is not None:
            applied = f"wait={min(seconds, int(LONGEST_WAIT_S))}" if seconds else "respond-async"
            response.headers["Preference-Applied"] = applied
        return response

    return answer
