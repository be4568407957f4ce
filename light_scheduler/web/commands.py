"""The HTTP handlers of commands. Each is named like its operation (see `operations`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partialmethod
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.client.commands import new_id
from light_scheduler.clock import Clock
from light_scheduler.durations import parse_duration
from light_scheduler.errors import BrokerError, InvalidCommand, ResultTimeout
from light_scheduler.model import Outcome, Result
from light_scheduler.tables.views import QueryError
from light_scheduler.wire import derived_id
from light_scheduler.wire.build import ANY
from light_scheduler.wire.fields import CONTROL_PREFIX, RULES, parse_id, parse_tenant
from light_scheduler.wire.json_form import json_path

from .command_channel import Commands, NoCommandsTopicError, TooManyWaitingError
from .documents import ScheduleDetail
from .idempotency import Answer, KeyReusedError, RecentAnswers, StillRunningError
from .parameters import checked, read_parameters
from .problems import ProblemError
from .requested import Requested, requested
from .scatter import RETRY_AFTER_S

IDEMPOTENCY_KEY = "Idempotency-Key"
LONGEST_KEY = 255
LONGEST_WAIT_S = 60.0

_JSON = "application/json"
_REFUSED = {
    Outcome.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Outcome.CONFLICT: HTTPStatus.CONFLICT,
    Outcome.REJECTED: HTTPStatus.BAD_REQUEST,
}

Find = Callable[[web.Request, str, str], Awaitable[ScheduleDetail | None]]
"""Finds the schedule of a tenant and an id wherever in the cluster it is."""


class SendParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a command."""

    timeout: Annotated[
        str, Meta(description="How long to wait for the scheduler's answer: ms, 10s, PT10S; at most 60s.")
    ] = "10s"
    wait: Annotated[bool, Meta(description="false: answer 202 as soon as the broker has the command.")] = True

    @property
    def timeout_s(self) -> float:
        """Raises QueryError."""
        seconds = checked("timeout", parse_duration, self.timeout) / 1_000
        if not 0 < seconds <= LONGEST_WAIT_S:
            raise QueryError("timeout", f"{self.timeout!r} must be 1ms to {LONGEST_WAIT_S:g}s")
        return seconds


class DeleteParameters(SendParameters, frozen=True, kw_only=True):
    """The query string of a cancel."""

    key: (
        Annotated[
            str, Meta(description="Entity key that it was scheduled with; default: the id, then wherever it is found.")
        ]
        | UnsetType
    ) = UNSET
    expected_version: Annotated[str, Meta(description="Version that the schedule must have now.")] | UnsetType = UNSET


class CommandHandlers:
    """One method per operation."""

    def __init__(self, commands: Commands, find: Find, json_topics: frozenset[str], clock: Clock) -> None:
        self._commands = commands
        self._find = find
        self._json_topics = json_topics
        self._clock = clock
        self._recent = RecentAnswers(clock)

    async def submit_schedule(self, request: web.Request) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        body = await request.read()
        key = request.headers.get(IDEMPOTENCY_KEY)
        if key is None:
            answer = await self._submit(request, tenant, body, {"id": new_id(self._clock)})
        else:
            answer = await self._submit_once(request, tenant, body, key)
        return _response(answer)

    async def put_schedule(self, request: web.Request) -> web.Response:
        told = {"command": "schedule", **_identity(request)}
        with _problems():
            return _response(await self._send(request, requested(await request.read(), told)))

    async def delete_schedule(self, request: web.Request) -> web.Response:
        parameters = read_parameters(DeleteParameters, request.query)
        told = {"command": "cancel", **_identity(request)}
        if parameters.key is not UNSET:
            told["key"] = parameters.key
        if parameters.expected_version is not UNSET:
            told["expected-version"] = parameters.expected_version
        return await self._control(request, b"", told)

    async def _act(self, request: web.Request, command: str) -> web.Response:
        return await self._control(request, await request.read(), {"command": command, **_identity(request)})

    pause_schedule = partialmethod(_act, command="pause")
    resume_schedule = partialmethod(_act, command="resume")
    trigger_schedule = partialmethod(_act, command="trigger")
    reschedule_schedule = partialmethod(_act, command="reschedule")
    complete_schedule = partialmethod(_act, command="complete")

    async def _act_on_many(self, request: web.Request, command: str) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        with _problems():
            wanted = requested(await request.read(), {"command": command, "tenant": tenant})
            if not wanted.id.endswith(ANY):
                raise InvalidCommand("id", f"must end in {ANY}, for many; one schedule has a path of its own")
            return _response(await self._send(request, wanted))

    cancel_schedules = partialmethod(_act_on_many, command="cancel")
    pause_schedules = partialmethod(_act_on_many, command="pause")
    resume_schedules = partialmethod(_act_on_many, command="resume")
    trigger_schedules = partialmethod(_act_on_many, command="trigger")
    reschedule_schedules = partialmethod(_act_on_many, command="reschedule")

    async def _submit(self, request: web.Request, tenant: str, body: bytes, defaults: Mapping[str, str]) -> Answer:
        with _problems():
            return await self._send(request, requested(body, {"command": "schedule", "tenant": tenant}, defaults))

    async def _submit_once(self, request: web.Request, tenant: str, body: bytes, key: str) -> Answer:
        if not (key.isprintable() and 1 <= len(key) <= LONGEST_KEY):
            raise QueryError(IDEMPOTENCY_KEY, f"must be 1 to {LONGEST_KEY} printable characters")
        # What this worker does not remember is still the same schedule for as long as that is pending.
        defaults = {"id": derived_id(f"idempotency-key/{key}"), "on-conflict": "keep"}
        try:
            with self._recent.claimed(tenant, key, body) as claim:
                if claim.answer is None:
                    answer = await self._submit(request, tenant, body, defaults)
                    claim.answer = answer
                return claim.answer
        except KeyReusedError:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY,
                f"{IDEMPOTENCY_KEY}: {key!r} came with another request before; a new request needs a new key",
                parameter=IDEMPOTENCY_KEY,
            ) from None
        except StillRunningError:
            raise ProblemError(
                HTTPStatus.CONFLICT,
                f"The request with the {IDEMPOTENCY_KEY} {key!r} is being carried out; ask again for its answer.",
                parameter=IDEMPOTENCY_KEY,
                retry_after_s=RETRY_AFTER_S,
            ) from None

    async def _control(self, request: web.Request, body: bytes, told: Mapping[str, str]) -> web.Response:
        """Carry out a command about a schedule that is there, wherever it is if the request does not name its key."""
        with _problems():
            command = requested(body, told)
            try:
                return _response(await self._send(request, command))
            except ProblemError as error:
                if error.problem.status != HTTPStatus.NOT_FOUND or command.has_key:
                    raise
                found = await self._find(request, command.tenant, command.id)
                if found is None or found.source.topic not in self._json_topics:
                    raise
            place = found.source.topic, found.source.partition
            return _response(await self._send(request, replace(command, place=place)))

    async def _send(self, request: web.Request, command: Requested) -> Answer:
        parameters = read_parameters(DeleteParameters if request.method == "DELETE" else SendParameters, request.query)
        if not parameters.wait:
            receipt = await self._commands.send(command.record, parameters.timeout_s)
            return Answer(HTTPStatus.ACCEPTED, msgspec.json.encode(receipt), {})
        result = await self._commands.ask(command.record, parameters.timeout_s)
        if result.outcome in _REFUSED:
            raise _refused(result)
        status = HTTPStatus.CREATED if result.outcome is Outcome.SCHEDULED else HTTPStatus.OK
        location = {"Location": schedule_path(command.tenant, command.id)} if status is HTTPStatus.CREATED else {}
        return Answer(status, msgspec.json.encode(result), location)


def schedule_path(tenant: str, id: str) -> str:
    """Return the path of a schedule."""
    return f"/api/v1/tenants/{quote(tenant, safe='')}/schedules/{quote(id, safe='')}"


def json_name(field: str) -> str:
    """Return what the JSON form calls a field that an error names by its header."""
    name = field.removeprefix(CONTROL_PREFIX)
    return json_path(name) if field.startswith(CONTROL_PREFIX) and name in RULES else field


def _identity(request: web.Request) -> dict[str, str]:
    return {
        "tenant": checked("tenant", parse_tenant, request.match_info["tenant"]),
        "id": checked("id", parse_id, request.match_info["id"]),
    }


def _refused(result: Result) -> ProblemError:
    reason = result.reason or result.outcome.value
    return ProblemError(
        _REFUSED[result.outcome],
        f"Tenant {result.tenant} has no pending schedule {result.id!r}."
        if result.outcome is Outcome.NOT_FOUND and result.command != "complete"
        else reason
        if result.field is None
        else f"{json_name(result.field)}: {reason}",
        parameter=UNSET if result.field is None else json_name(result.field),
        result=result,
    )


@contextmanager
def _problems() -> Iterator[None]:
    try:
        yield
    except InvalidCommand as error:
        raise ProblemError(HTTPStatus.BAD_REQUEST, str(error), parameter=error.field) from None
    except TooManyWaitingError:
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "So many commands wait for their answers here that this one was not sent; try again.",
            retry_after_s=RETRY_AFTER_S,
        ) from None
    except NoCommandsTopicError:
        raise ProblemError(
            HTTPStatus.NOT_IMPLEMENTED,
            "None of the commands topics takes what HTTP sends; the setting commands_topics has to name one of the "
            "dialect native or json.",
        ) from None
    except ResultTimeout as error:
        raise ProblemError(HTTPStatus.GATEWAY_TIMEOUT, f"There is {error}.", sent=error.receipt) from None
    except BrokerError as error:
        raise ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"The command may or may not have been sent: {error}",
            retry_after_s=RETRY_AFTER_S,
        ) from None


def _response(answer: Answer) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, headers=answer.headers, content_type=_JSON)
