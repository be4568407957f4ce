"""Problem documents (RFC 9457), the body of every error answer. Each class of errors has a `type`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.client import Receipt
from light_scheduler.model import Result

if TYPE_CHECKING:
    from aiohttp import web

PROBLEM_MEDIA_TYPE = "application/problem+json"

RETRY_AFTER_S = 1
"""When the client may repeat a request that the worker could not answer at the moment."""

_URN = "urn:light-scheduler:problem:"


class ProblemType(StrEnum):
    """The classes of errors, as `type` names them; docs/http.md lists what each means."""

    INVALID_REQUEST = _URN + "invalid-request"
    INVALID_COMMAND = _URN + "invalid-command"
    COMMAND_REJECTED = _URN + "command-rejected"
    INVALID_DELAY_RULE = _URN + "invalid-delay-rule"
    INVALID_TENANT_RULES = _URN + "invalid-tenant-rules"
    INVALID_TOKEN = _URN + "invalid-token"
    UNAUTHORIZED = _URN + "unauthorized"
    FORBIDDEN = _URN + "forbidden"
    NOT_FOUND = _URN + "not-found"
    METHOD_NOT_ALLOWED = _URN + "method-not-allowed"
    REQUEST_TIMEOUT = _URN + "request-timeout"
    CONFLICT = _URN + "conflict"
    PARTLY_CARRIED_OUT = _URN + "partly-carried-out"
    NOT_REDRIVABLE = _URN + "not-redrivable"
    IDEMPOTENCY_KEY_IN_USE = _URN + "idempotency-key-in-use"
    DELAY_RULE_IN_CONFIGURATION = _URN + "delay-rule-in-configuration"
    PRECONDITION_FAILED = _URN + "precondition-failed"
    BODY_TOO_LARGE = _URN + "body-too-large"
    MISDIRECTED_REQUEST = _URN + "misdirected-request"
    IDEMPOTENCY_KEY_REUSED = _URN + "idempotency-key-reused"
    TOO_MANY_REQUESTS = _URN + "too-many-requests"
    QUOTA_EXCEEDED = _URN + "quota-exceeded"
    INTERNAL_ERROR = _URN + "internal-error"
    UNAVAILABLE = _URN + "unavailable"
    TOO_MANY_CONNECTIONS = _URN + "too-many-connections"
    PARTITIONS_MISSING = _URN + "partitions-missing"
    NOT_READY = _URN + "not-ready"
    NO_ANSWER = _URN + "no-answer"


ABOUT_BLANK = "about:blank"
"""RFC 9457's type for errors that the status describes completely."""

_OF_STATUS = {
    HTTPStatus.BAD_REQUEST: ProblemType.INVALID_REQUEST,
    HTTPStatus.UNAUTHORIZED: ProblemType.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: ProblemType.FORBIDDEN,
    HTTPStatus.NOT_FOUND: ProblemType.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: ProblemType.METHOD_NOT_ALLOWED,
    HTTPStatus.REQUEST_TIMEOUT: ProblemType.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT: ProblemType.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ProblemType.BODY_TOO_LARGE,
    HTTPStatus.MISDIRECTED_REQUEST: ProblemType.MISDIRECTED_REQUEST,
    HTTPStatus.TOO_MANY_REQUESTS: ProblemType.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR: ProblemType.INTERNAL_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE: ProblemType.UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT: ProblemType.NO_ANSWER,
}
"""The type of an error that has only a status."""


class MissingPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that no worker answered for."""

    topic: str
    partition: int
    worker: Annotated[str | None, Meta(description="Worker that owns the partition; null: none does.")]
    reason: str


class TopicAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of a command in one of several commands topics."""

    topic: str
    result: Annotated[Result, Meta(description="Answer of the scheduler to the command.")] | UnsetType = UNSET
    sent: (
        Annotated[Receipt, Meta(description="Partition and offset of the command, which will be carried out.")]
        | UnsetType
    ) = UNSET
    reason: (
        Annotated[str, Meta(description="Why there is no answer. Without `sent`, the command may not be in the topic.")]
        | UnsetType
    ) = UNSET


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error: why a request failed, and what to do."""

    title: str
    status: int
    detail: str
    type: Annotated[str, Meta(description="URI of the class of this error.")] = ABOUT_BLANK
    parameter: Annotated[str, Meta(description="Parameter that is wrong.")] | UnsetType = UNSET
    missing: Annotated[list[MissingPartition], Meta(description="Partitions that did not answer.")] | UnsetType = UNSET
    reasons: Annotated[list[str], Meta(description="All reasons, one by one.")] | UnsetType = UNSET
    result: Annotated[Result, Meta(description="Answer of the scheduler to the command.")] | UnsetType = UNSET
    sent: (
        Annotated[Receipt, Meta(description="Partition and offset of the command that has no answer yet.")] | UnsetType
    ) = UNSET
    topics: (
        Annotated[list[TopicAnswer], Meta(description="What came of a bulk command in each of several topics.")]
        | UnsetType
    ) = UNSET


class Extension(NamedTuple):
    """Members of problems of some types, beyond those of RFC 9457."""

    missing: list[MissingPartition] | UnsetType = UNSET
    reasons: list[str] | UnsetType = UNSET
    result: Result | UnsetType = UNSET
    sent: Receipt | UnsetType = UNSET
    topics: list[TopicAnswer] | UnsetType = UNSET


_NO_EXTENSION = Extension()


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        parameter: str | UnsetType = UNSET,
        extension: Extension = _NO_EXTENSION,
        type: ProblemType | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        missing, reasons, result, sent, topics = extension
        if missing is not UNSET:
            type = ProblemType.PARTITIONS_MISSING
        elif reasons is not UNSET:
            type = ProblemType.NOT_READY
        elif result is not UNSET and status is HTTPStatus.BAD_REQUEST:
            type = ProblemType.COMMAND_REJECTED
        self.problem = Problem(
            title=status.phrase,
            status=int(status),
            detail=detail,
            type=ABOUT_BLANK if type is None else type,
            parameter=parameter,
            missing=missing,
            reasons=reasons,
            result=result,
            sent=sent,
            topics=topics,
        )
        self.headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    """Answer with a problem document. If its type is unset, it gets that of its status."""
    from aiohttp import web  # only servers need aiohttp; clients read problems too, and should not wait for its import

    return web.Response(
        status=problem.status,
        body=msgspec.json.encode(typed(problem)),
        content_type=PROBLEM_MEDIA_TYPE,
        headers=headers,
    )


def typed(problem: Problem) -> Problem:
    """Return the problem, with the type of its status if its own is unset."""
    if problem.type == ABOUT_BLANK and problem.status in _OF_STATUS:
        return msgspec.structs.replace(problem, type=_OF_STATUS[HTTPStatus(problem.status)])
    return problem
