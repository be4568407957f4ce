"""The handlers of etf1's API. Each is named like its operation (see `operations`)."""

from __future__ import annotations

import socket
from contextlib import suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import msgspec
from aiohttp import web
from yarl import URL

from light_scheduler.web.cluster.answers import ClusterAnswers, is_local, share_response
from light_scheduler.web.cluster.caught_up import caught_up
from light_scheduler.web.cluster.peer_client import PEER_CLIENT
from light_scheduler.web.forms.problems import ProblemError
from light_scheduler.web.limits.sliced_turns import SlicedTurns
from light_scheduler.web.limits.turns import Turns
from light_scheduler.web.worker import Worker
from light_scheduler.web.worker_documents import InfoDocument

from .documents import Etf1Info, Instance, Kafka, Scheduler, Totals
from .history import Delivered
from .merging import Merged, merged, search_result, with_name
from .own_answers import OwnSearch, own_lookup, own_search, too_much
from .search import Search, search_of

DIALECT = "etf1"
DAY_MS = 86_400_000


class Etf1Handlers:
    """One method per operation. The application is the only scheduler; its name is the application's id."""

    def __init__(self, worker: Worker, lists: Turns, work: SlicedTurns, searches: Turns) -> None:
        self._worker = worker
        self._name = worker.settings.app_id
        self._lists = lists
        self._work = work
        self._delivered = Delivered(worker.kafka.logs, worker.settings.topics.history, searches, worker.clock)
        self.topics = frozenset(source.name for source in worker.settings.inputs if source.dialect == DIALECT)
        """The commands topics of the dialect."""

    async def etf1_liveness(self, request: web.Request) -> web.Response:
        """Answer. This shows that the loop of all lanes runs, which etf1 checks with a schedule of its own."""
        del request
        return web.Response(text="")

    async def etf1_planned(self, request: web.Request) -> web.Response:
        del request
        own = await self._own_search(self._live(Search()))
        if own.is_refused:
            raise too_much()
        return _json([msgspec.Raw(row.encoded) for matches in own.matches for row in matches.rows])

    async def etf1_stats(self, request: web.Request) -> web.Response:
        search = self._live(Search(most=0))
        if is_local(request):
            return share_response(await self._own_search(search))
        found = await self._searched(request, search)
        return _json([Totals(scheduler=self._name, total_live=found.found, total_history=0, total=found.pending)])

    async def etf1_schedulers(self, request: web.Request) -> web.Response:
        del request
        urls = sorted(self._worker.peers.owners())
        port = URL(self._worker.peers.own_url).port
        instances = [self._instance(URL(url)) for url in urls]
        return _json([Scheduler(name=self._name, http_port=str(port), instances=instances)])

    async def etf1_search(self, request: web.Request) -> web.Response:
        return await self._search(request, search_of(request.query))

    async def etf1_search_live(self, request: web.Request) -> web.Response:
        return await self._search(request, self._live(search_of(request.query)))

    async def etf1_get(self, request: web.Request) -> web.Response:
        return await self._get(request, Search())

    async def etf1_get_live(self, request: web.Request) -> web.Response:
        return await self._get(request, self._live(Search()))

    async def etf1_search_history(self, request: web.Request) -> web.Response:
        search = search_of(request.query)
        found, rows = await self._delivered.search(search) if request.match_info["name"] == self._name else (0, [])
        return _json(search_result(self._name, found, rows))

    async def etf1_get_history(self, request: web.Request) -> web.Response:
        id, name = request.match_info["id"], request.match_info["name"]
        rows = await self._delivered.named(id) if name == self._name else []
        if not rows:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"The newest history of {name!r} has no message of {id!r}.")
        return _json(with_name(self._name, rows))

    def info_with_instance(self, document: InfoDocument) -> Etf1Info:
        """Return a worker's info with the fields that etf1's admin reads."""
        url, settings = URL(document.url), self._worker.settings
        return Etf1Info(
            **{field: getattr(document, field) for field in document.__struct_fields__},
            hostname=socket.gethostname(),
            address=[address] if (address := _address(url)) else [],
            server_address=f"{settings.web_host}:{settings.web_port}",
            kafka=Kafka(bootstrap_servers=settings.bootstrap_servers, topics=sorted(self.topics), history_topic=""),
        )

    def _instance(self, url: URL) -> Instance:
        return Instance(
            ip=_address(url),
            hostname=[url.host or ""],
            topics=sorted(self.topics),
            history_topic="",
            bootstrap_servers=self._worker.settings.bootstrap_servers,
        )

    def _live(self, search: Search) -> Search:
        """Return a search limited to schedules due until the end of the day, UTC, as etf1 holds them in memory."""
        now = self._worker.clock.now()
        return search.until(now - now % DAY_MS + DAY_MS)

    async def _search(self, request: web.Request, search: Search) -> web.Response:
        if is_local(request):
            return share_response(await self._own_search(search))
        if request.match_info["name"] != self._name:
            return _json(search_result(self._name, 0, []))
        found = await self._searched(request, search)
        return _json(search_result(self._name, found.found, found.rows))

    async def _searched(self, request: web.Request, search: Search) -> Merged:
        async with self._lists.turn():
            cluster = self._cluster(request)
            whole = await cluster.whole(self._own_search(search), request.rel_url.raw_path_qs, OwnSearch)
        return merged(whole, search)

    async def _own_search(self, search: Search) -> OwnSearch:
        lanes = await caught_up(self._worker.lanes)
        async with self._work.turn():
            return await own_search(lanes, self.topics, search)

    async def _get(self, request: web.Request, search: Search) -> web.Response:
        id, name = request.match_info["id"], request.match_info["name"]
        own = self._own_lookup(id, search)
        if is_local(request):
            return share_response(await own)
        whole = await self._cluster(request).whole(own, request.rel_url.raw_path, OwnSearch)
        rows = merged(whole, search).rows
        if not rows or name != self._name:
            raise ProblemError(HTTPStatus.NOT_FOUND, f"The scheduler {name!r} has no schedule {id!r} pending.")
        return _json(with_name(self._name, rows))

    async def _own_lookup(self, id: str, search: Search) -> OwnSearch:
        return own_lookup(await caught_up(self._worker.lanes), self.topics, id, search)

    def _cluster(self, request: web.Request) -> ClusterAnswers:
        return ClusterAnswers(self._worker.peers, self.topics, request.app[PEER_CLIENT])


def _address(url: URL) -> str:
    """Return the URL's host if it is an IP address, otherwise an empty text."""
    with suppress(ValueError):
        return str(ip_address(url.host or ""))
    return ""


def _json(document: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), content_type="application/json")
