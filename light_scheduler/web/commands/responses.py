"""HTTP responses for the scheduler's answers to commands, and for failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from urllib.parse import quote

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from light_scheduler.client import Receipt
from light_scheduler.client.bulk_results import is_over_quota
from light_scheduler.client.errors import ResultTimeout
from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.model import Outcome, Result
from light_scheduler.web.forms.problems import RETRY_AFTER_S, Extension, ProblemError, ProblemType, TopicAnswer
from light_scheduler.wire.json_commands import json_name

from .errors import KeyReusedError, StillRunningError, TooManyKeysError, TooManyWaitingError

IDEMPOTENCY_KEY = "Idempotency-Key"
ABOUT_FIRINGS = ("complete", "extend")
"""Commands that name a firing instead of a version of a schedule."""

KEYS_RETRY_AFTER_S = 60

_JSON = "application/json"
_REFUSED = {
    Outcome.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Outcome.CONFLICT: HTTPStatus.CONFLICT,
    Outcome.REJECTED: HTTPStatus.BAD_REQUEST,
}


def schedule_path(tenant: str, id: str) -> str:
    """Return the path of a schedule."""
    return f"/api/v1/tenants/{quote(tenant, safe='')}/schedules/{quote(id, safe='')}"


def etag(version: int) -> str:
    """Return the ETag of a version of a schedule."""
    return f'"{version}"'


def sent_response(receipt: Receipt) -> web.Response:
    """Answer a command that was sent without waiting for its result."""
    return web.Response(status=HTTPStatus.ACCEPTED, body=msgspec.json.encode(receipt), content_type=_JSON)


def result_response(result: Result) -> web.Response:
    """Answer with a result. Raises ProblemError if the scheduler refused the command or found nothing."""
    status = result_status(result)
    headers = {} if result.version is None else {"ETag": etag(result.version)}
    if status is HTTPStatus.CREATED and result.id is not None:
        headers |= {"Location": schedule_path(result.tenant, result.id)}
    return web.Response(status=status, body=msgspec.json.encode(result), headers=headers, content_type=_JSON)


def result_status(result: Result) -> HTTPStatus:
    """Return the status of a result. Raises ProblemError if the scheduler refused the command or found nothing."""
    if result.outcome in _REFUSED:
        raise refusal(result)
    return HTTPStatus.CREATED if result.outcome is Outcome.SCHEDULED else HTTPStatus.OK


def refusal(result: Result, detail: str | None = None, topics: list[TopicAnswer] | UnsetType = UNSET) -> ProblemError:
    """Return the problem of a refused command. `detail` is said in place of the result's reason."""
    may_pass = is_over_quota(result)
    return ProblemError(
        HTTPStatus.TOO_MANY_REQUESTS if may_pass else _REFUSED[result.outcome],
        _detail(result) if detail is None else detail,
        parameter=UNSET if result.field is None else json_name(result.field),
        extension=Extension(result=result, topics=topics),
        type=ProblemType.QUOTA_EXCEEDED if may_pass else None,
        retry_after_s=RETRY_AFTER_S if may_pass else None,
    )


def _detail(result: Result) -> str:
    if result.outcome is Outcome.NOT_FOUND and result.command not in ABOUT_FIRINGS:
        return f"Tenant {result.tenant} has no pending schedule {result.id!r}."
    reason = result.reason or result.outcome.value
    return reason if result.field is None else f"{json_name(result.field)}: {reason}"


@contextmanager
def failures_as_problems() -> Iterator[None]:
    """Convert errors of commands to ProblemError."""
    try:
        yield
    except InvalidCommand as error:
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, str(error), parameter=error.field, type=ProblemType.INVALID_COMMAND
        ) from None
    except TooManyWaitingError:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "Too many commands of this tenant wait for their answers on this worker. This command was not sent. Try "
            "again later.",
            retry_after_s=RETRY_AFTER_S,
        ) from None
    except TooManyKeysError:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "This tenant has used as many idempotency keys within the last hour as it may. The command was not sent. "
            "Try again later, or send it without a key.",
            parameter=IDEMPOTENCY_KEY,
            retry_after_s=KEYS_RETRY_AFTER_S,
        ) from None
    except KeyReusedError:
        raise ProblemError(
            HTTPStatus.UNPROCESSABLE_ENTITY,
            f"{IDEMPOTENCY_KEY}: was used with another body before. Use a new key for a new request",
            parameter=IDEMPOTENCY_KEY,
            type=ProblemType.IDEMPOTENCY_KEY_REUSED,
        ) from None
    except StillRunningError:
        raise ProblemError(
            HTTPStatus.CONFLICT,
            f"The first request with this {IDEMPOTENCY_KEY} has no answer yet. Send it again later.",
            parameter=IDEMPOTENCY_KEY,
            type=ProblemType.IDEMPOTENCY_KEY_IN_USE,
            retry_after_s=RETRY_AFTER_S,
        ) from None
    except ResultTimeout as error:
        raise ProblemError(
            HTTPStatus.GATEWAY_TIMEOUT, f"There is {error}.", extension=Extension(sent=error.receipt)
        ) from None
    except BrokerError as error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"The command may or may not have been sent: {error}",
            retry_after_s=RETRY_AFTER_S,
        ) from None
