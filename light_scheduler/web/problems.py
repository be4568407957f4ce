"""Problem documents (RFC 9457): what every error answer of the API is."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.client import Receipt
from light_scheduler.model import Result

PROBLEM_MEDIA_TYPE = "application/problem+json"


class MissingPartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition that nobody answered for."""

    topic: str
    partition: int
    worker: Annotated[str | None, Meta(description="The worker that has it; null: none has.")]
    reason: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong, and what would be right."""

    title: str
    status: int
    detail: str
    parameter: Annotated[str, Meta(description="The parameter at fault.")] | UnsetType = UNSET
    missing: Annotated[list[MissingPartition], Meta(description="What the answer would lack.")] | UnsetType = UNSET
    reasons: Annotated[list[str], Meta(description="All reasons, one by one.")] | UnsetType = UNSET
    result: Annotated[Result, Meta(description="The scheduler's answer to the command.")] | UnsetType = UNSET
    sent: Annotated[Receipt, Meta(description="Where the command is that no answer is known to.")] | UnsetType = UNSET


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        *,
        parameter: str | UnsetType = UNSET,
        missing: list[MissingPartition] | UnsetType = UNSET,
        reasons: list[str] | UnsetType = UNSET,
        result: Result | UnsetType = UNSET,
        sent: Receipt | UnsetType = UNSET,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.problem = Problem(
            title=status.phrase,
            status=int(status),
            detail=detail,
            parameter=parameter,
            missing=missing,
            reasons=reasons,
            result=result,
            sent=sent,
        )
        self.headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> web.Response:
    """Answer with a problem document."""
    return web.Response(
        status=problem.status, body=msgspec.json.encode(problem), content_type=PROBLEM_MEDIA_TYPE, headers=headers
    )
