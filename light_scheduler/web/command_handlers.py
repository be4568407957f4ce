"""The HTTP handlers of commands. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial, partialmethod

from aiohttp import web
from msgspec import UNSET

from light_scheduler.client.commands import new_id
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Outcome
from light_scheduler.tables.views import QueryError
from light_scheduler.wire.build import ANY
from light_scheduler.wire.fields import parse_id, parse_tenant

from .access.guard import IDENTITY, refuse_reserved
from .access.requesters import naming
from .commands.bulk_responses import bulk_response
from .commands.dispatch import Dispatch, nothing_to_match
from .commands.idempotency.posts import Submission, Submissions
from .commands.idempotency.requests import Idempotency
from .commands.large_bodies import LargeBodies
from .commands.negotiation import expected_version, must_exist, negotiated, only_if_absent, send_parameters
from .commands.requested import Requested, no_selection, requested
from .commands.responses import ABOUT_FIRINGS, IDEMPOTENCY_KEY, failures_as_problems, result_response, sent_response
from .commands.send_parameters import DeleteParameters, SendParameters
from .forms.parameters import checked
from .worker import Worker

log = logging.getLogger(__name__)


class CommandHandlers:
    """One method per operation."""

    def __init__(self, dispatch: Dispatch, idempotency: Idempotency, worker: Worker, bodies: LargeBodies) -> None:
        self._dispatch = dispatch
        self._bodies = bodies
        self._submissions = Submissions(dispatch, idempotency)
        self._clock = worker.clock
        self._access = worker.access
        self._tenants = worker.tenants
        self._reserved_topics = worker.settings.reserved_topics

    @negotiated
    async def submit_schedule(self, request: web.Request) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        parameters = send_parameters(SendParameters, request)
        key = request.headers.get(IDEMPOTENCY_KEY)
        with failures_as_problems():
            named = naming(request, self._access)
            ruled = self._tenants.book.get(tenant)
            new, conditions = new_id(self._clock), only_if_absent(request)
            body = await request.read()
            read = partial(Submission.of, tenant, body, new, named, ruled, conditions)
            submission = await self._bodies.read(body, read)
            refuse_reserved(request, submission.wanted.target_topic, self._reserved_topics)
            if key is not None:
                return await self._submissions.once(request, submission, key, parameters)
            wanted = submission.wanted
            placed = wanted if submission.is_new else await self._dispatch.placed(request, wanted)
            return await self._carried_out(parameters, placed)

    @negotiated
    async def put_schedule(self, request: web.Request) -> web.Response:
        with failures_as_problems():
            given = {
                "command": "schedule",
                **_identity(request),
                **expected_version(request),
                **only_if_absent(request),
            }
            body, ruled = await request.read(), self._tenants.book.get(given["tenant"])
            read = partial(requested, body, given, naming(request, self._access), ruled=ruled)
            wanted = await self._bodies.read(body, read)
            refuse_reserved(request, wanted.target_topic, self._reserved_topics)
            parameters = send_parameters(SendParameters, request)
            if must_exist(request):
                return await self._replace(request, parameters, wanted)
            return await self._carried_out(parameters, await self._dispatch.placed(request, wanted))

    async def _replace(self, request: web.Request, parameters: SendParameters, wanted: Requested) -> web.Response:
        """Replace an existing schedule, of any version unless the body names one; 412 if there is none."""
        found = await self._dispatch.existing(request, wanted)
        placed = wanted if wanted.has_key else replace(wanted, place=found.place)
        return await self._of_version(parameters, placed, found.version)

    @negotiated
    async def delete_schedule(self, request: web.Request) -> web.Response:
        parameters = send_parameters(DeleteParameters, request)
        given = {"command": "cancel", **_identity(request), **expected_version(request)}
        if parameters.key is not UNSET:
            given["key"] = parameters.key
        if parameters.expected_version is not UNSET:
            if given.get("expected_version", parameters.expected_version) != parameters.expected_version:
                raise QueryError("expected_version", "differs from the version in If-Match")
            given["expected_version"] = parameters.expected_version
        return await self._control(request, parameters, b"", given)

    @negotiated
    async def _act(self, request: web.Request, command: str) -> web.Response:
        parameters = send_parameters(SendParameters, request)
        given = {"command": command, **_identity(request)}
        if command not in ABOUT_FIRINGS:
            given |= expected_version(request)
        return await self._control(request, parameters, await request.read(), given)

    pause_schedule = partialmethod(_act, command="pause")
    resume_schedule = partialmethod(_act, command="resume")
    trigger_schedule = partialmethod(_act, command="trigger")
    reschedule_schedule = partialmethod(_act, command="reschedule")
    complete_schedule = partialmethod(_act, command="complete")
    extend_schedule = partialmethod(_act, command="extend")

    @negotiated
    async def _act_on_many(self, request: web.Request, command: str) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        with failures_as_problems():
            given = {"command": command, "tenant": tenant}
            who = request[IDENTITY].name
            log.info("bulk %s of tenant %s was requested by %s from %s", command, tenant, who, request.remote)
            body = await request.read()
            wanted = await self._bodies.read(body, partial(requested, body, given, naming(request, self._access)))
            if not wanted.id.endswith(ANY):
                raise InvalidCommand(
                    "id",
                    f"must end in {ANY}: this path is for several schedules. Use the path with the id for one",
                )
            parameters = send_parameters(SendParameters, request)
            do = self._dispatch.ask_everywhere if parameters.wait else self._dispatch.send_everywhere
            return bulk_response(await do(wanted, parameters.timeout_s))

    cancel_schedules = partialmethod(_act_on_many, command="cancel")
    pause_schedules = partialmethod(_act_on_many, command="pause")
    resume_schedules = partialmethod(_act_on_many, command="resume")
    trigger_schedules = partialmethod(_act_on_many, command="trigger")
    reschedule_schedules = partialmethod(_act_on_many, command="reschedule")

    async def _control(
        self, request: web.Request, parameters: SendParameters, body: bytes, given: Mapping[str, str]
    ) -> web.Response:
        """Carry out a command about an existing schedule. Unless the request names its key, search for the schedule
        first."""
        with failures_as_problems():
            timeout_s = parameters.timeout_s
            wanted = await self._bodies.read(body, partial(requested, body, given, naming(request, self._access)))
            if wanted.id.endswith(ANY):
                return await self._control_starred(request, parameters, wanted)
            if must_exist(request):
                await self._dispatch.existing(request, wanted)
            if parameters.wait:
                result = await self._dispatch.ask_where_it_is(request, wanted, timeout_s)
                if must_exist(request) and result.outcome is Outcome.NOT_FOUND:
                    raise nothing_to_match(wanted)
                return result_response(result)
            return sent_response(await self._dispatch.send(await self._dispatch.placed(request, wanted), timeout_s))

    async def _control_starred(
        self, request: web.Request, parameters: SendParameters, wanted: Requested
    ) -> web.Response:
        """Carry out a command about a schedule whose id ends in `*`, as ids of other schedulers may. The command names
        the schedule's version, so it is not taken for a bulk command. 400 if there is no such schedule."""
        found = await self._dispatch.named(request, wanted)
        if found is None:
            raise nothing_to_match(wanted) if must_exist(request) else no_selection()
        return await self._of_version(parameters, replace(wanted, place=found.place), found.version)

    async def _of_version(self, parameters: SendParameters, placed: Requested, version: int) -> web.Response:
        """Carry out a placed command for a schedule that was found with `version`; if the request names no version, any
        later one will do."""
        if placed.expected_version is not None:
            return await self._carried_out(parameters, placed)
        if parameters.wait:
            asking = self._dispatch.ask_whichever_version(placed, version, parameters.timeout_s)
            return result_response(await asking)
        return await self._carried_out(parameters, placed.of_version(version))

    async def _carried_out(self, parameters: SendParameters, command: Requested) -> web.Response:
        if parameters.wait:
            return result_response(await self._dispatch.ask(command, parameters.timeout_s))
        return sent_response(await self._dispatch.send(command, parameters.timeout_s))


def _identity(request: web.Request) -> dict[str, str]:
    return {
        "tenant": checked("tenant", parse_tenant, request.match_info["tenant"]),
        "id": checked("id", parse_id, request.match_info["id"]),
    }
