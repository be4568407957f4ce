"""Reads schedules over the HTTP API, for `light-scheduler get` and `list`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sized
from http import HTTPStatus
from operator import attrgetter
from typing import TypeVar
from urllib.parse import quote

import msgspec
from msgspec import UNSET

from light_scheduler.errors import ClientError
from light_scheduler.tables.views import MAX_LIMIT, QueryError
from light_scheduler.wire import decode_events

from .cluster.document import IdentityDocument
from .cluster.worker_http import Parameters, WorkerHttp
from .forms.documents import ScheduleDetail, SchedulePage, ScheduleSummary
from .forms.problems import RETRY_AFTER_S, Problem
from .records.change_page import ChangePage
from .records.dead_letter_documents import DeadLetterPage
from .records.history_page import HistoryPage
from .why_document import WhyDocument

DECODED: Parameters = {"decoded": "true"}
"""Requests decoded payloads."""

MOST_RETRIES = 10
"""How often a request is repeated if the worker is too busy for it."""

T = TypeVar("T", bound=msgspec.Struct)
P = TypeVar("P", SchedulePage, HistoryPage, ChangePage, DeadLetterPage)


class ApplicationView(msgspec.Struct, frozen=True):
    """An application, and the dialect of each of its commands topics."""

    app_id: str
    commands_topics: dict[str, str]


class ScheduleReader(WorkerHttp):
    """Raises QueryError naming a parameter that the worker refuses, and ClientError if there is no complete answer."""

    async def identity(self) -> IdentityDocument:
        """Return the identity that the token stands for."""
        return await self._required("/api/v1/identity", IdentityDocument)

    async def application(self, asking: IdentityDocument) -> ApplicationView:
        """Return the application of a worker. It is part of `asking`, except for workers of earlier versions."""
        if asking.app_id is None or asking.commands_topics is None:
            return await self._required("/info", ApplicationView)
        return ApplicationView(asking.app_id, asking.commands_topics)

    async def _required(self, path: str, kind: type[T]) -> T:
        document = await self._answer(path, {}, kind)
        if document is None:
            raise self._no_worker()
        return document

    async def get(self, tenant: str, id: str) -> ScheduleDetail | None:
        """Return a schedule, with its payload decoded, or None."""
        path = f"{self._list_path(tenant)}/{quote(id, safe='')}"
        return await self._answer(path, DECODED, ScheduleDetail)

    async def list(self, tenant: str, parameters: Parameters, limit: int | None) -> SchedulePage:
        """Return the first `limit` schedules, or all (None), following the cursors of the API's pages.

        `parameters` are those of the API; a cursor among them is where to begin.
        """
        schedules: list[ScheduleSummary] = []
        cursor, total = None, None
        async for page in self.pages(tenant, parameters, limit):
            schedules += page.schedules
            cursor, total = page.next_cursor, page.total
        if cursor is None and "cursor" not in parameters:
            total = len(schedules)
        return SchedulePage(schedules=schedules, next_cursor=cursor, total=total)

    def pages(self, tenant: str, parameters: Parameters, limit: int | None) -> AsyncIterator[SchedulePage]:
        """Yield the same schedules, page by page."""
        of_page = attrgetter("schedules")
        return self._pages(self._list_path(tenant), parameters, limit, SchedulePage, of_page, self._no_worker())

    def history(self, tenant: str, id: str, parameters: Parameters, limit: int | None) -> AsyncIterator[HistoryPage]:
        """Yield the pages of an id's history, the newest events first, up to `limit` events in all (None: no limit).

        `parameters` are those of the API.
        """
        path = f"{self._list_path(tenant)}/{quote(id, safe='')}/history"
        return self._pages(path, parameters, limit, HistoryPage, attrgetter("events"), self._no_worker())

    def changes(self, parameters: Parameters, limit: int | None) -> AsyncIterator[ChangePage]:
        """Yield the pages of the list of changes as `history` does; `parameters` are those of the API."""
        return self._pages(
            "/api/v1/changes", parameters, limit, ChangePage, attrgetter("changes"), self._no_tenant_or_worker()
        )

    async def why(self, tenant: str, id: str, parameters: Parameters) -> WhyDocument:
        """Explain why a schedule fired, will fire or does not fire. `parameters` are those of the API."""
        document = await self._answer(f"{self._list_path(tenant)}/{quote(id, safe='')}/why", parameters, WhyDocument)
        if document is None:
            raise self._no_worker()
        return document

    async def _pages(
        self,
        path: str,
        parameters: Parameters,
        limit: int | None,
        kind: type[P],
        rows_of: Callable[[P], Sized],
        not_found: ClientError,
    ) -> AsyncIterator[P]:
        """Yield page after page, up to `limit` rows in all (None: no limit). Raises `not_found` for a 404."""
        given, count = dict(parameters), 0
        while True:
            given["limit"] = str(MAX_LIMIT if limit is None else min(MAX_LIMIT, limit - count))
            page = await self._answer(path, given, kind)
            if page is None:
                raise not_found
            yield page
            count += len(rows_of(page))
            if page.next_cursor is None or count == limit:
                return
            given["cursor"] = page.next_cursor

    def _no_worker(self) -> ClientError:
        return ClientError(f"{self.url} is not a worker of light-scheduler: check the address")

    def _no_tenant_or_worker(self) -> ClientError:
        """Return the error for a 404 that can also mean a hidden tenant."""
        return ClientError(f"{self.url} knows no such tenant, or is not a worker of light-scheduler")

    def _list_path(self, tenant: str) -> str:
        return f"/api/v1/tenants/{quote(tenant, safe='')}/schedules"

    async def _answer(self, path: str, parameters: Parameters, kind: type[T], method: str = "GET") -> T | None:
        status, body = await self.ask(method, path, parameters)
        for _ in range(MOST_RETRIES):
            if status != HTTPStatus.TOO_MANY_REQUESTS:
                break
            await asyncio.sleep(RETRY_AFTER_S)
            status, body = await self.ask(method, path, parameters)
        if status == HTTPStatus.OK:
            try:
                return decode_events(body, kind)
            except msgspec.MsgspecError as error:
                raise ClientError(
                    f"{self.url} is not a worker of light-scheduler, or one of another version: {error}"
                ) from error
        problem = self._problem(status, body)
        if status == HTTPStatus.NOT_FOUND:
            return None
        raise self._refusal(problem)

    def _problem(self, status: int, body: bytes) -> Problem:
        try:
            return msgspec.json.decode(body, type=Problem)
        except msgspec.MsgspecError:
            raise ClientError(
                f"{self.url} answered {status}, and is not a worker of light-scheduler: check the address"
            ) from None

    def _refusal(self, problem: Problem) -> ClientError | QueryError:
        if problem.parameter is not UNSET:
            return QueryError(problem.parameter, problem.detail.removeprefix(f"{problem.parameter}: "))
        causes = (
            ""
            if problem.missing is UNSET
            else "".join(
                f"\n  {each.topic}[{each.partition}] {each.worker or ''}: {each.reason}" for each in problem.missing
            )
        )
        return ClientError(f"{self.url}: {problem.detail}{causes}")
