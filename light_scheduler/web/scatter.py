"""Answers for the whole cluster: the same request goes to every worker that has partitions, marked as local.

A worker answers a marked request from its own lanes only, so nothing goes round in circles. Each share names the
partitions that it speaks for. Should any be missing in the end, there is a list of those in place of an answer: one
with silent gaps would be taken for the truth.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Mapping
from http import HTTPStatus
from typing import TypeVar

import aiohttp
import msgspec
from yarl import URL

from light_scheduler.tables.views import Lane, Query, encode_cursor

from .cluster import Peers, owner_of_each
from .documents import ScheduleDetail, SchedulePage, ScheduleSummary
from .own import OwnMatches, OwnPage
from .problems import MissingPartition, ProblemError

SCOPE_HEADER = "Light-Scheduler-Scope"
LOCAL_SCOPE = "local"
SHARE_MEDIA_TYPE = "application/vnd.light-scheduler.share+msgpack"

CONNECT_TIMEOUT_S = 1.0
TOTAL_TIMEOUT_S = 3.0
"""A worker that is slower than this counts as absent, so that it does not hold up the answer for long."""

RETRY_AFTER_S = 1

Share = TypeVar("Share", OwnPage, OwnMatches)


def new_session() -> aiohttp.ClientSession:
    """Return a session for requests to other workers; its caller closes it."""
    return aiohttp.ClientSession(headers={SCOPE_HEADER: LOCAL_SCOPE}, cookie_jar=aiohttp.DummyCookieJar())


class Scatter:
    """Asks the other workers. `topics` are the commands topics of the application."""

    def __init__(self, peers: Peers, topics: frozenset[str], session: aiohttp.ClientSession) -> None:
        self._peers = peers
        self._topics = topics
        self._session = session

    async def page(self, own: Awaitable[OwnPage], path: str, query: Query) -> SchedulePage:
        """Return a page of a list over all partitions. `path` is the request's, with its query string.

        Raises ProblemError naming the partitions that are missing.
        """
        owners = owner_of_each(self._peers, self._topics)
        shares, failures = await self._gather(own, path, owners, OwnPage)
        _refuse_gaps(_missing(owners, shares, failures))
        return merged(_claimed(owners, shares), query)

    async def find(self, own: Awaitable[OwnMatches], path: str) -> ScheduleDetail | None:
        """Return the schedule that a path names, or None. Several of one id: the one that was accepted last.

        Raises ProblemError naming the partitions that are missing, if it was not found in the others.
        """
        owners = owner_of_each(self._peers, self._topics)
        shares, failures = await self._gather(own, path, owners, OwnMatches)
        found = [match for share in shares.values() for match in share.found]
        if found:
            return max(found, key=lambda match: (match.accepted_at, match.version))
        _refuse_gaps(_missing(owners, shares, failures))
        return None

    async def _gather(
        self, own: Awaitable[Share], path: str, owners: Mapping[Lane, str | None], kind: type[Share]
    ) -> tuple[dict[str, Share], dict[str, str]]:
        """Return the shares that came, and why the others did not; both by worker."""
        own_url = self._peers.own_url
        urls = sorted({url for url in owners.values() if url is not None and url != own_url})
        own_share, others = await asyncio.gather(own, asyncio.gather(*(self._ask(url, path, kind) for url in urls)))
        shares: dict[str, Share] = {own_url: own_share}
        failures: dict[str, str] = {}
        for url, other in zip(urls, others, strict=True):
            if isinstance(other, str):
                failures[url] = other
            else:
                shares[url] = other
        return shares, failures

    async def _ask(self, url: str, path: str, kind: type[Share]) -> Share | str:
        """Return a worker's share, or why there is none."""
        address = URL(url.rstrip("/") + path, encoded=True)
        timeout = aiohttp.ClientTimeout(total=TOTAL_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            async with self._session.get(address, timeout=timeout, allow_redirects=False) as response:
                body = await response.read()
                if response.status != HTTPStatus.OK or response.content_type != SHARE_MEDIA_TYPE:
                    return f"answered {response.status}"
            return msgspec.msgpack.decode(body, type=kind)
        except TimeoutError:
            return "did not answer in time"
        except (aiohttp.ClientError, ValueError, msgspec.MsgspecError) as error:
            return f"cannot be reached: {error}"


def merged(pages: list[OwnPage], query: Query) -> SchedulePage:
    """Return the page that pages of different lanes make together.

    Nothing beyond the place that every one of them has read up to may be shown: another might still have rows before.
    """
    frontier = min((page.reached for page in pages if page.reached is not None), default=None)
    schedules: list[ScheduleSummary] = []
    last = None
    for mark, row in heapq.merge(*(page.rows for page in pages), key=lambda row: row[0]):
        if frontier is not None and mark > frontier:
            break
        if len(schedules) == query.limit:
            frontier = last
            break
        schedules.append(row)
        last = mark
    return SchedulePage(
        schedules=schedules,
        next_cursor=None if frontier is None else encode_cursor(query.sort, frontier),
        total=len(schedules) if frontier is None and query.cursor is None else None,
    )


def _missing(
    owners: Mapping[Lane, str | None], shares: Mapping[str, Share], failures: Mapping[str, str]
) -> list[MissingPartition]:
    covered = {lane for share in shares.values() for lane in share.lanes}
    return [
        MissingPartition(topic=topic, partition=partition, worker=url, reason=_why(url, failures))
        for (topic, partition), url in sorted(owners.items())
        # Without an owner it is missing even if a share speaks for it: how many there are is not known then.
        if url is None or (topic, partition) not in covered
    ]


def _why(url: str | None, failures: Mapping[str, str]) -> str:
    if url is None:
        return "no worker has it"
    return failures.get(url, "is not running yet")


def _refuse_gaps(missing: list[MissingPartition]) -> None:
    if not missing:
        return
    names = ", ".join(f"{each.topic}[{each.partition}]" for each in missing[:5])
    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    raise ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"Nobody answered for {names}{more}: the answer would be incomplete.",
        missing=missing,
        retry_after_s=RETRY_AFTER_S,
    )


def _claimed(owners: Mapping[Lane, str | None], shares: Mapping[str, OwnPage]) -> list[OwnPage]:
    """Return the pages with each lane in one of them only: its owner's, if that has it.

    While a partition moves, two workers may both speak for it.
    """
    claims: dict[Lane, str] = {}
    for url, share in shares.items():
        for lane in share.lanes:
            if lane not in claims or owners.get(lane) == url:
                claims[lane] = url
    return [
        msgspec.structs.replace(share, rows=[row for row in share.rows if claims.get(row[0].lane) == url])
        for url, share in shares.items()
    ]
