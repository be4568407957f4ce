"""The HTTP handlers of the preview: when a schedule would fire if it were accepted at a given instant."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.clock import Clock
from light_scheduler.engine import first_due_times
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import DEFAULT_TENANT, Command, ScheduleCommand
from light_scheduler.wire import UnsentRecord, json_command
from light_scheduler.wire.build import FIELDS_OF, TargetMissing, command_from
from light_scheduler.wire.fields import CONTROL_PREFIX, RULES
from light_scheduler.wire.instants import parse_lower_bound
from light_scheduler.wire.json_commands import JSON, json_name

from .access.guard import refuse_hidden
from .forms.documents import PreviewDocument
from .forms.parameters import checked, read_parameters
from .forms.problems import ProblemError, ProblemType
from .forms.query_durations import refuse_bare_durations
from .forms.text_forms import LOWER_BOUND, described
from .limits.sliced_turns import SlicedTurns
from .limits.slices import LoopTime

MOST_FIRINGS = 1_000

MOST_TIME_S = 0.25
"""Processor time for one preview."""

_ELSEWHERE = ("command", "reply-topic", "reply-partition", "correlation-id")

_ASSUMED_ID = _ASSUMED_TARGET = "preview"
"""A preview only computes times, so it needs no target; a command does."""


class PreviewParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of every preview."""

    accepted: (
        Annotated[
            str,
            described("When the schedule would be accepted: UTC epoch ms, or RFC 3339. Default: now.", LOWER_BOUND),
        ]
        | UnsetType
    ) = msgspec.field(default=UNSET, name="from")
    count: Annotated[int, Meta(ge=1, le=MOST_FIRINGS, description="Number of firings.")] = 10


class _KeyParameters(PreviewParameters, frozen=True, kw_only=True):
    key: Annotated[str, Meta(description="Entity key, which is the id unless one is given.")] | UnsetType = UNSET


_FIELDS = tuple(field for field in RULES if field in FIELDS_OF["schedule"] and field not in _ELSEWHERE)

RuleParameters: type[_KeyParameters] = msgspec.defstruct(  # type: ignore[assignment]
    "RuleParameters",
    [
        (field.replace("-", "_"), Annotated[str, Meta(description=RULES[field].summary)] | UnsetType, UNSET)
        for field in _FIELDS
    ],
    bases=(_KeyParameters,),
    frozen=True,
    kw_only=True,
)
"""The query string of a preview without a body: names of headers, with underscores."""


class PreviewHandlers:
    """One method per operation."""

    def __init__(self, clock: Clock, work: SlicedTurns) -> None:
        self._clock = clock
        self._work = work

    async def preview(self, request: web.Request) -> web.Response:
        parameters = read_parameters(RuleParameters, request.query)
        accepted = self._accepted(parameters)
        key = None if parameters.key is UNSET else parameters.key.encode()
        given: dict[str, Any] = {"target-topic": _ASSUMED_TARGET, "command": "schedule"}
        if key is None:
            given["id"] = _ASSUMED_ID
        for field in _FIELDS:
            name = field.replace("-", "_")
            text = getattr(parameters, name)
            if text is not UNSET:
                checked(name, partial(refuse_bare_durations, field), text)
                given[field] = checked(name, RULES[field].parse, text)
        refuse_hidden(request, given.get("tenant"))
        return await self._previewed(
            lambda: command_from(given, UnsentRecord(None, b"", (), accepted), key, b"", [], _parameter),
            parameters.count,
            _parameter,
        )

    async def preview_command(self, request: web.Request) -> web.Response:
        parameters = read_parameters(PreviewParameters, request.query)
        accepted = self._accepted(parameters)
        body = await request.read()

        def decode() -> Command:
            command = command_of(body, accepted)
            if command.tenant != DEFAULT_TENANT:  # the body may omit it; a preview ignores the tenant
                refuse_hidden(request, command.tenant)
            return command

        return await self._previewed(decode, parameters.count, json_name)

    async def _previewed(
        self, decode: Callable[[], Command], count: int, name_of: Callable[[str], str]
    ) -> web.Response:
        try:
            async with self._work.turn():
                firings = await _reckoned(decode, count)
        except InvalidCommand as error:
            name = name_of(error.field)
            detail = f"{name}: {error.reason}"
            raise ProblemError(
                HTTPStatus.BAD_REQUEST, detail, parameter=name, type=ProblemType.INVALID_COMMAND
            ) from None
        body = msgspec.json.encode(PreviewDocument(next=firings))
        return web.Response(body=body, content_type="application/json")

    def _accepted(self, parameters: PreviewParameters) -> int:
        return (
            self._clock.now()
            if parameters.accepted is UNSET
            else checked("from", parse_lower_bound, parameters.accepted)
        )


def command_of(body: bytes, accepted: int) -> Command:
    """Return the schedule command of a preview's body, recorded at an instant. Raises InvalidCommand."""
    value = json_command(body, {"command": "schedule"}, {"id": _ASSUMED_ID})
    try:
        return JSON.decode(UnsentRecord(None, value, (), accepted))
    except TargetMissing as error:
        return error.command  # the target makes no difference


async def _reckoned(decode: Callable[[], Command], count: int) -> list[int]:
    """Return the due times. Runs in slices in the lanes' loop: a thread would hold the interpreter's lock for
    longer."""
    async with LoopTime(MOST_TIME_S) as time:
        command = decode()
        assert isinstance(command, ScheduleCommand)
        firings: list[int] = []
        for due in islice(first_due_times(command), count):
            firings.append(due)
            if time.is_used_up():
                raise _too_long(count, len(firings))
            if time.slice_is_over():
                await time.rest()
        return firings


def _too_long(count: int, found: int) -> ProblemError:
    return ProblemError(
        HTTPStatus.BAD_REQUEST,
        f"count: {count} firings of this schedule take too long to compute. Ask for at most {found}, or run "
        "`light-scheduler preview`, which needs no worker",
        parameter="count",
    )


def _parameter(field: str) -> str:
    return field.removeprefix(CONTROL_PREFIX).replace("-", "_")
