"""The HTTP handlers. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from functools import partial
from http import HTTPStatus
from importlib import metadata

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from light_scheduler.access import Right
from light_scheduler.tables.views import Query
from light_scheduler.wire.fields import parse_id, parse_tenant

from .access.guard import IDENTITY
from .access.login import LoginHandlers
from .access.rights import OF_RAW_PAYLOADS, RIGHTS
from .access.sessions import LOG_OUT_PATH, LOGIN_PATH
from .access.tokens import TokenHandlers
from .api.openapi import openapi_document
from .api.operations import JSON_MEDIA_TYPE, OPERATIONS, CommandLines, Operation
from .api.routes import route_of
from .batch import BatchHandlers
from .cluster.answers import ClusterAnswers, is_local, share_response
from .cluster.caught_up import caught_up
from .cluster.document import IdentityDocument
from .cluster.known_partitions import KnownPartitions
from .cluster.node import Node
from .cluster.own_answers import OwnMatches, OwnPage, own_matches, own_page
from .cluster.peer_client import PEER_CLIENT
from .cluster.state import ClusterHandlers
from .command_handlers import CommandHandlers
from .commands.dispatch import Dispatch
from .commands.idempotency.requests import Idempotency
from .commands.negotiation import is_known
from .commands.responses import etag, schedule_path
from .configuration import ConfigurationHandlers
from .dashboard import DASHBOARD_PATH, DashboardHandlers
from .delays import DelayHandlers
from .dry_run import DryRunHandlers
from .etf1.handlers import Etf1Handlers
from .etf1.metrics import EventCollector
from .etf1.operations import with_etf1
from .events import EventHandlers
from .forms.cursors import Cursors, path_with
from .forms.documents import DetailParameters, ScheduleDetail
from .forms.parameters import checked, list_query, read_parameters
from .forms.problems import Extension, ProblemError
from .last_hour import LastHour
from .light4j.handlers import Light4jHandlers
from .light4j.operations import LIGHT4J_OPERATIONS
from .limits.busy_connections import BusyConnections
from .limits.counts import count_turns
from .limits.turns import Turns
from .metrics.connections import ConnectionCollector
from .metrics.exposition import ACCEPT, exposition_wanted
from .metrics.lanes import registry_of
from .metrics.tenants import TenantCollector
from .overview import Overview, OverviewHandlers
from .preview import PreviewHandlers
from .rate_courier import PATH as RATES_PATH
from .rate_courier import RateCourier
from .readiness import why_not_ready
from .records.changes import ChangeHandlers
from .records.dead_letters import DeadLetterHandlers
from .records.decoding import Decoding
from .records.history import HistoryHandlers
from .records.redrive import Redrive
from .request_limits import request_turns
from .server.listener import most_connections
from .tenants import TenantHandlers
from .upcoming.groups import UpcomingGroupsHandlers
from .upcoming.of_tenant import UpcomingHandlers
from .why import WhyHandlers
from .worker import Worker
from .worker_documents import InfoDocument, ReadyDocument, live_document

VERSION = metadata.version("light-scheduler")

replace = msgspec.structs.replace


class Handlers:
    """One method per operation, here or in one of the parts."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.decoding = Decoding(worker.settings)
        self._lists, self._work, searches, batches, redrives, bodies = request_turns()
        counts = count_turns()
        self._cursors = Cursors(worker.access)
        self._idempotency = Idempotency(worker.kafka.commands, worker.settings.topics.idempotency, worker.clock)
        self._etf1 = Etf1Handlers(worker, self._lists, self._work, searches)
        self._light4j = Light4jHandlers(worker, self._lists, self._work, bodies)
        self._operations: tuple[Operation, ...] = (
            *(with_etf1(OPERATIONS) if self._etf1.topics else OPERATIONS),
            *(LIGHT4J_OPERATIONS if self._light4j.topics else ()),
        )
        dashboard = DashboardHandlers()
        dispatch = Dispatch(worker.kafka.commands, self._find, [source.name for source in worker.settings.own_inputs])
        self._partitions = KnownPartitions(worker.lanes, worker.peers, worker.topics, worker.kafka.count_partitions)
        self._hour = LastHour()
        overview = Overview(worker.lanes, self._hour, self._cluster, worker.clock)
        cluster = ClusterHandlers(self._own_info, worker.peers, worker.topics, worker.clock)
        self._events = EventHandlers({"overview": overview.answer, "cluster": cluster.answer})
        self._configuration = ConfigurationHandlers(worker, self._own_info)
        self._redrive = Redrive(worker, redrives)
        self._parts = (
            self,
            self._etf1,
            self._light4j,
            CommandHandlers(dispatch, self._idempotency, worker, bodies),
            BatchHandlers(dispatch, worker, batches, bodies),
            WhyHandlers(worker, self._cluster, searches),
            *self._log_handlers(searches),
            UpcomingHandlers(worker.lanes, self._cluster, counts, worker.clock),
            UpcomingGroupsHandlers(worker.lanes, self._partitions, self._cluster, counts, worker.clock),
            PreviewHandlers(worker.clock, self._work),
            DryRunHandlers(worker.clock, self._work, worker.settings, worker.tenants),
            DelayHandlers(worker.delays, worker.peers),
            TenantHandlers(worker.tenants),
            TokenHandlers(worker.access, worker.clock),
            self._configuration,
            cluster,
            OverviewHandlers(overview),
            self._events,
            dashboard,
        )
        self._handlers = {operation.name: self._handler(operation.name) for operation in self._operations}
        self.rates = RateCourier(worker)
        self._pages = _pages(dashboard, LoginHandlers(worker.access, worker.clock), self.rates)
        self.busy = BusyConnections(most_connections())
        self._tenants = TenantCollector(worker.lanes)
        self._registry = registry_of(
            worker.lanes,
            self._tenants,
            worker.delays,
            [source.name for source in worker.settings.inputs],
            app_id=worker.settings.app_id,
            version=VERSION,
        )
        self._registry.register(ConnectionCollector(self.busy))
        if self._etf1.topics:
            self._registry.register(EventCollector(worker.lanes, self._etf1.topics))
        self._node = None if worker.process is None else Node(worker.process, self._registry)
        self._openapi: asyncio.Future[bytes] | None = None

    def _log_handlers(self, searches: Turns) -> tuple[object, ...]:
        """Return the groups of handlers that search topics."""
        worker = self._worker
        logs, topics, clock, cursors = worker.kafka.logs, worker.settings.topics, worker.clock, self._cursors
        return (
            HistoryHandlers(logs, topics.history, searches, clock, cursors),
            ChangeHandlers(logs, topics.history, searches, clock, cursors),
            DeadLetterHandlers(logs, topics.dead_letters, searches, clock, cursors, self._redrive, self.decoding),
        )

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of all operations."""
        paths = [operation.path for operation in self._operations]
        return [
            getattr(web, operation.method)(route_of(operation.path, paths), self._handlers[operation.name])
            for operation in self._operations
        ] + [web.route(method, path, handler) for method, path, _, handler in self._pages]

    def rights(self) -> dict[Handler, Right]:
        """Return the right that each route's handler needs."""
        return {handler: RIGHTS[name] for name, handler in self._handlers.items()} | {
            handler: RIGHTS[name] for _, _, name, handler in self._pages
        }

    def headers(self) -> dict[Handler, Collection[str]]:
        """Return the conditional headers that each operation's handler supports."""
        return {self._handlers[operation.name]: frozenset(operation.headers) for operation in self._operations}

    def streaming(self) -> frozenset[Handler]:
        """Return the handlers that read a body while it arrives."""
        bodies = {operation.name: operation.body for operation in self._operations}
        return frozenset(
            handler
            for name, handler in self._handlers.items()
            if isinstance(body := bodies[name], CommandLines) and body.is_streamed
        )

    async def watched(self, application: web.Application) -> AsyncIterator[None]:
        """Record the last hour of this worker's figures while the application runs."""
        del application
        watch = asyncio.create_task(self._hour.watch(self._worker.lanes.status, self._worker.clock))
        yield
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)

    async def end_streams(self, application: web.Application) -> None:
        """End streams that would otherwise run until their readers leave."""
        await self._events.end(application)

    async def close(self, application: web.Application) -> None:
        """Release the resources that requests have opened."""
        del application
        await self._idempotency.close()
        await self._configuration.close()
        await self._redrive.close()
        await self._light4j.close()

    def _handler(self, name: str) -> Handler:
        handler: Handler = next(getattr(part, name) for part in self._parts if hasattr(part, name))
        return self.decoding.for_writers(handler) if name in OF_RAW_PAYLOADS else handler

    async def list_schedules(self, request: web.Request) -> web.Response:
        named = await self._partitions.asked_by(request)
        tenant, given = request.match_info["tenant"], request.query
        if is_local(request):
            return share_response(await self._own_page(list_query(tenant, given, named)))
        query = list_query(tenant, given, named, partial(self._cursors.opened, "schedules"))
        async with self._lists.turn():
            page = await self._cluster(request).page(self._own_page(query), path_with(request, query.cursor), query)
        return _json(replace(page, next_cursor=self._cursors.sealed("schedules", page.next_cursor)))

    async def _own_page(self, query: Query) -> OwnPage:
        lanes = await caught_up(self._worker.lanes)
        async with self._work.turn():
            return await own_page(lanes, query)

    async def get_schedule(self, request: web.Request) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        id = checked("id", parse_id, request.match_info["id"])
        is_asked = read_parameters(DetailParameters, request.query).decoded
        own = self._own_matches(tenant, id)
        if is_local(request):
            return share_response(await own)
        found = await self._cluster(request).find(own, request.rel_url.raw_path)
        if found is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"Tenant {tenant} has no pending schedule {id!r}.")
        headers = {"ETag": (tag := etag(found.version))}
        if is_known(request, tag):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        shown = await self.decoding.shown(found, found.target.topic, request[IDENTITY], is_asked=is_asked)
        return _json(shown, headers)

    async def openapi(self, request: web.Request) -> web.Response:
        """Answer with the document. The first request builds it, in a thread, since that takes longer than lanes should
        wait."""
        del request
        if self._openapi is None:
            self._openapi = asyncio.ensure_future(asyncio.to_thread(self._openapi_bytes))
        return web.Response(body=await asyncio.shield(self._openapi), content_type=JSON_MEDIA_TYPE)

    def _openapi_bytes(self) -> bytes:
        return msgspec.json.encode(openapi_document(VERSION, self._operations))

    async def live(self, request: web.Request) -> web.Response:
        del request
        return _json(live_document(self._worker.lanes.status()))

    async def ready(self, request: web.Request) -> web.Response:
        reasons = why_not_ready(self._worker.lanes, self._worker.peers, self._worker.topics, self._worker.access)
        if (node := self._node_asked(request)) is not None:
            reasons = await node.why_not_ready(reasons, request.app[PEER_CLIENT])
        if reasons:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE, "Not ready: " + "; ".join(reasons), extension=Extension(reasons=reasons)
            )
        return _json(ReadyDocument())

    async def info(self, request: web.Request) -> web.Response:
        document = self._own_info()
        if (node := self._node_asked(request)) is not None:
            document = await node.info(document, request.app[PEER_CLIENT])
        return _json(self._etf1.info_with_instance(document) if self._etf1.topics else document)

    def _own_info(self) -> InfoDocument:
        worker = self._worker
        return InfoDocument(
            version=VERSION,
            app_id=worker.settings.app_id,
            url=worker.peers.own_url,
            time=worker.clock.now(),
            commands_topics=self._dialects(),
            lanes=worker.lanes.status(),
            standbys=worker.lanes.standbys(),
            targets=worker.lanes.targets(),
            delays=worker.delays.lanes(),
            peers={
                url: {topic: sorted(partitions[topic]) for topic in sorted(worker.topics & partitions.keys())}
                for url, partitions in worker.peers.owners().items()
            },
        )

    async def metrics(self, request: web.Request) -> web.Response:
        await self._tenants.count()
        exposition = exposition_wanted(request.headers.get(ACCEPT, ""))
        if (node := self._node_asked(request)) is not None:
            body = await node.metrics(request.app[PEER_CLIENT], exposition)
        else:
            body = exposition.generate(self._registry if self._node is None else self._node.own)
        return web.Response(body=body, headers={"Content-Type": exposition.media_type})

    def _node_asked(self, request: web.Request) -> Node | None:
        """Return the node if a request is for all of its processes; None if it is for this process."""
        return None if is_local(request) else self._node

    async def identity(self, request: web.Request) -> web.Response:
        identity = request[IDENTITY]
        document = IdentityDocument(
            name=identity.name,
            role=identity.role,
            tenants=None if identity.tenants is None else sorted(identity.tenants),
            version=VERSION,
            app_id=self._worker.settings.app_id,
            commands_topics=self._dialects(),
        )
        return _json(document)

    def _dialects(self) -> dict[str, str]:
        """Return the dialect of each commands topic."""
        return {source.name: source.dialect for source in self._worker.settings.inputs}

    async def _own_matches(self, tenant: str, id: str) -> OwnMatches:
        return await own_matches(await caught_up(self._worker.lanes), tenant, id)

    async def _find(self, request: web.Request, tenant: str, id: str) -> ScheduleDetail | None:
        own = self._own_matches(tenant, id)
        return await self._cluster(request).find(own, schedule_path(tenant, id), to_change=True)

    def _cluster(self, request: web.Request) -> ClusterAnswers:
        return ClusterAnswers(self._worker.peers, self._worker.topics, request.app[PEER_CLIENT])


def _json(document: msgspec.Struct, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), headers=headers, content_type=JSON_MEDIA_TYPE)


def _pages(
    dashboard: DashboardHandlers, logins: LoginHandlers, rates: RateCourier
) -> tuple[tuple[str, str, str, Handler], ...]:
    """Return the routes that are only for people or for workers: method, path, name and handler."""
    return (
        ("GET", DASHBOARD_PATH, "dashboard_file", dashboard.dashboard_file),
        ("GET", LOGIN_PATH, "login", logins.login),
        ("POST", LOGIN_PATH, "log_in", logins.log_in),
        ("POST", LOG_OUT_PATH, "log_out", logins.log_out),
        ("GET", RATES_PATH, "take_rates", rates.take_rates),
    )
