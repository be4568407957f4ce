"""The handlers of light-4j's endpoint. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from http import HTTPStatus
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.client.commands import CommandToSend
from light_scheduler.kafka.registry_client import RegistryError
from light_scheduler.kafka.schema_ids import SchemaIds
from light_scheduler.tables.views import Lane
from light_scheduler.web.access.guard import IDENTITY, refuse_hidden, refuse_reserved
from light_scheduler.web.access.requesters import naming
from light_scheduler.web.cluster.answers import ClusterAnswers, Whole, is_local, share_response
from light_scheduler.web.cluster.bounded import MOST_BYTES
from light_scheduler.web.cluster.caught_up import caught_up
from light_scheduler.web.cluster.peer_client import PEER_CLIENT
from light_scheduler.web.cluster.tenants_asked import TenantParameters, Tenants, questions
from light_scheduler.web.commands.large_bodies import LargeBodies
from light_scheduler.web.commands.responses import failures_as_problems
from light_scheduler.web.forms.parameters import optional, read_parameters
from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError
from light_scheduler.web.forms.text_forms import ID, TENANT, described
from light_scheduler.web.limits.shares import HOLDER
from light_scheduler.web.limits.sliced_turns import SlicedTurns
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.worker import Worker
from light_scheduler.wire.fields import parse_id, parse_tenant

from .documents import ReadTask, TimeUnit
from .own_answers import LaneTasks, OwnTasks, Row, Wanted, own_tasks, too_much
from .sending import Ids, TaskBody, read_body, record_of

DIALECT = "light4j"
SEND_TIMEOUT_S = 10.0
"""How long Kafka may take to acknowledge a task."""

log = logging.getLogger(__name__)


class TaskParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of a list of tasks."""

    host: Annotated[str, described("Only tasks of this host, which is the tenant.", TENANT)] | UnsetType = UNSET
    name: Annotated[str, described("Only tasks of this name.", ID)] | UnsetType = UNSET
    unit: Annotated[TimeUnit, Meta(description="Only tasks whose frequency is in this unit.")] | UnsetType = UNSET
    local: Annotated[str, Meta(description="Whatever it is: only what this worker has.")] | UnsetType = UNSET

    def wanted(self, request: web.Request) -> Wanted:
        """Return the filter, limited to tenants that the request may see. Raises QueryError, and ProblemError (404) if
        the host is not one of them."""
        host = optional("host", parse_tenant, self.host)
        refuse_hidden(request, host)
        return _wanted(request[IDENTITY].tenants if host is None else frozenset((host,)), self.name, self.unit)


class PeerParameters(TenantParameters, frozen=True, kw_only=True):
    """The query string of a request from another worker."""

    name: str | UnsetType = UNSET
    unit: TimeUnit | UnsetType = UNSET

    def wanted(self) -> Wanted:
        """Return the filter. Raises QueryError, ProblemError."""
        return _wanted(self.tenants(), self.name, self.unit)


class Light4jHandlers:
    """One method per operation. A hidden tenant is treated as if it did not exist."""

    def __init__(self, worker: Worker, lists: Turns, work: SlicedTurns, bodies: LargeBodies) -> None:
        self._worker = worker
        self._bodies = bodies
        self._lists = lists
        self._work = work
        self.topics = frozenset(source.name for source in worker.settings.inputs if source.dialect == DIALECT)
        """The commands topics of the dialect."""
        registry = worker.settings.registry
        self._ids = None if registry is None else SchemaIds(registry, worker.settings.schema_registry_subjects)

    async def close(self) -> None:
        """Let go of what requests have opened."""
        if self._ids is not None:
            await self._ids.close()

    async def light4j_tasks(self, request: web.Request) -> web.Response:
        if is_local(request):
            asked = read_parameters(PeerParameters, request.query).wanted()
            if asked.hosts is not None:
                HOLDER.set(frozenset(asked.hosts))  # the tenants that the other worker asks for
            return share_response(await self._own(asked))
        parameters = read_parameters(TaskParameters, request.query)
        wanted = parameters.wanted(request)
        if parameters.local is not UNSET:
            own = await self._own(wanted)
            rows = merged(Whole({"": own}, dict.fromkeys(own.lanes, "")))
        else:
            rows = await self._rows(request, wanted)
        sees = request[IDENTITY].sees
        rows = [row for row in rows if sees(row.host)]
        _refuse_too_large(rows)
        body = msgspec.json.encode([msgspec.Raw(row.encoded) for row in rows])
        return web.Response(body=body, content_type="application/json")

    async def light4j_send(self, request: web.Request) -> web.Response:
        """Write a task to the partition where it is pending, or to that of its key. 404 for a change of a task that
        does not exist."""
        with failures_as_problems():
            given = await request.read()
            body = await self._bodies.read(given, partial(read_body, given))
            refuse_hidden(request, body.host)
            refuse_reserved(request, body.topic, self._worker.settings.reserved_topics)
            now = self._worker.clock.now()
            record_of(body, Ids(), now)  # refuses an invalid task before other workers are asked
            lane = await self._lane_of(request, body)
            if lane is None and body.action != "INSERT":
                raise ProblemError(HTTPStatus.NOT_FOUND, f"Host {body.host} has no task {body.name!r}.")
            topic, partition = lane or (self._first_topic, None)
            key, value, *_ = record_of(body, await self._schemas_of(topic), now)
            headers = naming(request, self._worker.access)(value or b"")
            sent = CommandToSend(body.host, body.name, key or b"", value, headers, topic, partition)
            await self._worker.kafka.commands.send(lambda _: sent, SEND_TIMEOUT_S)
        log.info("task %s of %s: %s by %s", body.name, body.host, body.action, request[IDENTITY].name)
        return web.Response(status=HTTPStatus.CREATED)

    @property
    def _first_topic(self) -> str:
        return next(source.name for source in self._worker.settings.inputs if source.name in self.topics)

    async def _schemas_of(self, topic: str) -> Ids:
        from light_scheduler.wire.dialects.light4j import KEY_SCHEMA, VALUE_SCHEMA

        if self._ids is None:
            return Ids()
        try:
            key = await self._ids.id_of(topic, "key", KEY_SCHEMA)
            return Ids(key, await self._ids.id_of(topic, "value", VALUE_SCHEMA))
        except RegistryError as error:
            detail = f"The task was not sent: {error}."
            raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, detail, retry_after_s=RETRY_AFTER_S) from None

    async def _lane_of(self, request: web.Request, body: TaskBody) -> Lane | None:
        """Return the lane in which a task is pending. Raises ProblemError if a partition did not answer."""
        wanted = Wanted(frozenset((body.host,)), body.name, None)
        cluster = ClusterAnswers(self._worker.peers, self.topics, request.app[PEER_CLIENT])
        lanes: list[Lane] = []
        async with self._lists.turn():
            for _, path in questions(request.rel_url.raw_path, wanted.hosts, **wanted.parameters()):
                whole = await cluster.whole(self._own(wanted), path, OwnTasks)
                lanes += [tasks.lane for tasks in claimed(whole) if tasks.has_name or tasks.rows]
        return min(lanes, default=None)

    async def _rows(self, request: web.Request, wanted: Wanted) -> list[Row]:
        """Return the tasks of all workers, by host and name."""
        cluster = ClusterAnswers(self._worker.peers, self.topics, request.app[PEER_CLIENT])
        rows: list[Row] = []
        async with self._lists.turn():
            for hosts, path in questions(request.rel_url.raw_path, wanted.hosts, **wanted.parameters()):
                own = self._own(msgspec.structs.replace(wanted, hosts=hosts))
                rows += merged(await cluster.whole(own, path, OwnTasks))
                _refuse_too_large(rows)
        return sorted(rows)

    async def _own(self, wanted: Wanted) -> OwnTasks:
        lanes = await caught_up(self._worker.lanes)
        async with self._work.turn():
            return await own_tasks(lanes, self.topics, wanted, _reading())


def _wanted(hosts: Tenants, name: str | UnsetType, unit: TimeUnit | UnsetType) -> Wanted:
    return Wanted(hosts, optional("name", parse_id, name), None if unit is UNSET else unit)


def _refuse_too_large(rows: list[Row]) -> None:
    if sum(len(row.encoded) for row in rows) > MOST_BYTES:
        raise too_much()


def merged(whole: Whole[OwnTasks]) -> list[Row]:
    """Return the tasks of all lanes, by host and name. Raises QueryError if a worker could not read all of its
    tasks."""
    return sorted(row for tasks in claimed(whole) for row in tasks.rows)


def claimed(whole: Whole[OwnTasks]) -> Iterator[LaneTasks]:
    """Yield the tasks of each lane, from the one worker whose share counts for it. Raises QueryError as `merged`
    does."""
    if any(share.is_refused for share in whole.shares.values()):
        raise too_much()
    for url, share in whole.shares.items():
        yield from (tasks for tasks in share.tasks if whole.claims.get(tasks.lane) == url)


def _reading() -> ReadTask:
    """Return a decoder of record values for the schemas that light-4j publishes. It is imported here since only this
    dialect needs Avro."""
    from light_scheduler.wire.dialects.light4j import published_task

    return published_task
