"""Answers for the whole cluster: the request is forwarded to every worker with partitions, marked as local.

A worker answers a marked request from its own lanes only, so requests never circulate. Each share names the partitions
that it covers. If any partition is missing in the end, the answer is an error that names the missing ones: a list with
silent gaps would pass for complete.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Generic, Protocol, TypeVar

import aiohttp
import msgspec
from aiohttp import web
from yarl import URL

from light_scheduler.tables.views import Lane, Query, encode_cursor
from light_scheduler.web.forms.documents import ScheduleDetail
from light_scheduler.web.forms.problems import RETRY_AFTER_S, Extension, MissingPartition, ProblemError
from light_scheduler.web.interfaces import Peers, owner_of_each

from .own_answers import PAGE_BYTES, OwnMatches, OwnPage
from .peer_client import LOCAL_SCOPE, SCOPE_HEADER, PeerClient, why_unreachable

SHARE_MEDIA_TYPE = "application/vnd.light-scheduler.share+msgpack"

TOTAL_TIMEOUT_S = 3.0
"""A worker that takes longer counts as absent, so that it does not delay the answer."""

GRACE_S = 0.1
"""How long `find` waits for the remaining workers after a match, so that a frozen worker does not delay reads."""


class HasLanes(Protocol):
    """A worker's share of an answer: a msgspec struct that names the lanes it covers."""

    @property
    def lanes(self) -> list[Lane]: ...


Share = TypeVar("Share", bound=HasLanes)


@dataclass(frozen=True)
class Whole(Generic[Share]):
    """The shares of all lanes: worker -> share, and lane -> the one worker whose share counts for it.

    While a partition moves, two workers may both cover it.
    """

    shares: dict[str, Share]
    claims: dict[Lane, str]


class EncodedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A `SchedulePage` whose rows are JSON already."""

    schedules: list[msgspec.Raw]
    next_cursor: str | None
    total: int | None


def is_local(request: web.Request) -> bool:
    """Return whether the request comes from another worker, for this worker's share."""
    return request.headers.get(SCOPE_HEADER) == LOCAL_SCOPE


def share_response(share: HasLanes) -> web.Response:
    """Answer with this worker's share."""
    return web.Response(body=msgspec.msgpack.encode(share), content_type=SHARE_MEDIA_TYPE)


class ClusterAnswers:
    """Asks the other workers. `topics` are the commands topics of the application."""

    def __init__(self, peers: Peers, topics: frozenset[str], client: PeerClient) -> None:
        self._peers = peers
        self._topics = topics
        self._client = client

    async def page(self, own: Coroutine[Any, Any, OwnPage], path: str, query: Query) -> EncodedPage:
        """Return a page of a list over all partitions. `path` is the request's, with its query string.

        Raises ProblemError naming the partitions that are missing.
        """
        return merged(_claimed(await self.whole(own, path, OwnPage, query.lane)), query)

    async def whole(
        self, own: Coroutine[Any, Any, Share], path: str, kind: type[Share], lane: Lane | None = None
    ) -> Whole[Share]:
        """Return every worker's share of an answer, or only that of a lane's owner. `path` is the request's, with its
        query string.

        Raises ProblemError naming the partitions that are missing.
        """
        whole, missing = await self.known(own, path, kind, lane)
        _refuse_gaps(missing)
        return whole

    async def known(
        self, own: Coroutine[Any, Any, Share], path: str, kind: type[Share], lane: Lane | None = None
    ) -> tuple[Whole[Share], list[MissingPartition]]:
        """Return the shares of the workers that answer, and the partitions that no share covers. With `lane`, asks only
        its owner."""
        owners = owner_of_each(self._peers, self._topics)
        if lane is not None:
            owners = {lane: owners.get(lane)}
        async with self._asked(own, path, owners, kind) as asked:
            await asyncio.wait(asked.values())
            shares, failures = _collected(asked)
        return Whole(shares, _claims(owners, shares)), _missing(owners, shares, failures)

    async def find(
        self, own: Coroutine[Any, Any, OwnMatches], path: str, *, to_change: bool = False
    ) -> ScheduleDetail | None:
        """Return the schedule that a path names, or None. If several partitions have the id, return the one accepted
        last among the answers that come within `GRACE_S` of the first match. With `to_change`, wait for all workers.

        Raises ProblemError naming the partitions that are missing, if no other partition has the schedule.
        """
        owners = owner_of_each(self._peers, self._topics)
        async with self._asked(own, path, owners, OwnMatches) as asked:
            waiting: set[asyncio.Task[OwnMatches | str]] = set(asked.values())
            found: list[ScheduleDetail] = []
            while waiting:
                grace_s = GRACE_S if found and not to_change else None
                done, waiting = await asyncio.wait(waiting, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    break
                answers = [task.result() for task in done]
                found += [match for answer in answers if not isinstance(answer, str) for match in answer.found]
            if found:
                return max(found, key=lambda match: (match.accepted_at, match.version))
            shares, failures = _collected(asked)
        _refuse_gaps(_missing(owners, shares, failures))
        return None

    @asynccontextmanager
    async def _asked(
        self, own: Coroutine[Any, Any, Share], path: str, owners: Mapping[Lane, str | None], kind: type[Share]
    ) -> AsyncIterator[dict[str, asyncio.Task[Share | str]]]:
        """Ask all workers at once: worker -> task that returns its share, or the reason why there is none. Leaves no
        task running."""
        own_url = self._peers.own_url
        urls = sorted({url for url in owners.values() if url is not None and url != own_url})
        asked: dict[str, asyncio.Task[Share | str]] = {own_url: asyncio.create_task(own)}
        asked |= {url: asyncio.create_task(self._ask(url, path, kind)) for url in urls}
        try:
            yield asked
        finally:
            for task in asked.values():
                task.cancel()
            await asyncio.gather(*asked.values(), return_exceptions=True)

    async def _ask(self, url: str, path: str, kind: type[Share]) -> Share | str:
        """Return a worker's share, or the reason why there is none. Raises ProblemError (429) if the worker is too
        busy."""
        address = URL(url.rstrip("/") + path, encoded=True)
        try:
            async with self._client.get(address, TOTAL_TIMEOUT_S) as response:
                body = await response.read()
                if response.status == HTTPStatus.TOO_MANY_REQUESTS:
                    detail = f"The worker {url} has too many requests to answer; try again."
                    raise ProblemError(HTTPStatus.TOO_MANY_REQUESTS, detail, retry_after_s=RETRY_AFTER_S)
                if response.status != HTTPStatus.OK or response.content_type != SHARE_MEDIA_TYPE:
                    return f"answered {response.status}"
            return msgspec.msgpack.decode(body, type=kind)
        except TimeoutError:
            return "did not answer in time"
        except (aiohttp.ClientError, ValueError, msgspec.MsgspecError) as error:
            return why_unreachable(error)


def _collected(asked: Mapping[str, asyncio.Task[Share | str]]) -> tuple[dict[str, Share], dict[str, str]]:
    """Return the shares that arrived, and the reasons for those that did not; both by worker."""
    shares: dict[str, Share] = {}
    failures: dict[str, str] = {}
    for url, task in asked.items():
        answer = task.result()
        if isinstance(answer, str):
            failures[url] = answer
        else:
            shares[url] = answer
    return shares, failures


def merged(pages: list[OwnPage], query: Query) -> EncodedPage:
    """Return one page from the pages of different lanes.

    It ends at the last place that all of them have read up to: beyond it, a lane might still have earlier rows.
    """
    frontier = min((page.reached for page in pages if page.reached is not None), default=None)
    schedules: list[msgspec.Raw] = []
    last, size = None, 0
    for mark, row in heapq.merge(*(page.rows for page in pages), key=lambda row: row[0]):
        if frontier is not None and mark > frontier:
            break
        if len(schedules) == query.limit or size >= PAGE_BYTES:
            frontier = last
            break
        schedules.append(msgspec.Raw(row))
        last, size = mark, size + len(row)
    return EncodedPage(
        schedules=schedules,
        next_cursor=None if frontier is None else encode_cursor(query.sort, frontier),
        total=len(schedules) if frontier is None and query.cursor is None else _total(pages),
    )


def _total(pages: list[OwnPage]) -> int | None:
    """Return how many schedules match in all lanes; None if a lane does not know its number."""
    counts = {lane: count for page in pages for lane, count in page.counts}
    if not all(lane in counts for page in pages for lane in page.lanes):
        return None
    return sum(counts.values())


def _missing(
    owners: Mapping[Lane, str | None], shares: Mapping[str, Share], failures: Mapping[str, str]
) -> list[MissingPartition]:
    covered = {lane for share in shares.values() for lane in share.lanes}
    return [
        MissingPartition(topic=topic, partition=partition, worker=url, reason=_why(url, failures))
        for (topic, partition), url in sorted(owners.items())
        # Without an owner it counts as missing even if a share covers it: the number of such partitions is unknown
        # then.
        if url is None or (topic, partition) not in covered
    ]


def _why(url: str | None, failures: Mapping[str, str]) -> str:
    if url is None:
        return "no worker has it"
    return failures.get(url, "is not running, or waits for a commit")


def _refuse_gaps(missing: list[MissingPartition]) -> None:
    if not missing:
        return
    names = ", ".join(f"{each.topic}[{each.partition}]" for each in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    raise ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"No worker answered for {names}{more}, so the list would be incomplete. Try again later.",
        extension=Extension(missing=missing),
        retry_after_s=RETRY_AFTER_S,
    )


def _claims(owners: Mapping[Lane, str | None], shares: Mapping[str, Share]) -> dict[Lane, str]:
    """Return lane -> the worker whose share counts for it: the owner, if its share has the lane."""
    claims: dict[Lane, str] = {}
    for url, share in shares.items():
        for lane in share.lanes:
            if lane not in claims or owners.get(lane) == url:
                claims[lane] = url
    return claims


def _claimed(whole: Whole[OwnPage]) -> list[OwnPage]:
    """Return the pages, with each lane in only one of them."""
    return [
        msgspec.structs.replace(
            share,
            lanes=[lane for lane in share.lanes if whole.claims.get(lane) == url],
            rows=[row for row in share.rows if whole.claims.get(row[0].lane) == url],
            counts=[each for each in share.counts if whole.claims.get(each[0]) == url],
        )
        for url, share in whole.shares.items()
    ]
