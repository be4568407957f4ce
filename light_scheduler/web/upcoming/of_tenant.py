"""Counts a tenant's schedules by due time, from the counts of tables, without reading schedules."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import msgspec
from aiohttp import web
from multidict import MultiMapping
from yarl import URL

from light_scheduler.clock import Clock
from light_scheduler.model import State
from light_scheduler.tables.cell_changes import Group
from light_scheduler.tables.counts import Counts
from light_scheduler.tables.views import Lane, ReadableTable
from light_scheduler.web.cluster.answers import ClusterAnswers, Whole, is_local, share_response
from light_scheduler.web.cluster.caught_up import caught_up
from light_scheduler.web.forms.parameters import checked, read_parameters
from light_scheduler.web.interfaces import Lanes, Tables
from light_scheduler.web.limits.counts import CountTurns, count_time, too_much
from light_scheduler.web.limits.slices import SHORT_REST, LoopTime, pieces
from light_scheduler.wire.fields import parse_tenant

from .document import By, PendingCount, UpcomingCount, UpcomingParameters
from .intervals import MINUTE_MS, Intervals, cells_in, intervals_asked


class Kind(NamedTuple):
    """Schedules that are counted together: topic, state, and the minute (UTC) in which the interval begins.

    The minute is None in the count of all pending schedules.
    """

    topic: str
    state: State
    minute: int | None


class OwnCounts(msgspec.Struct, frozen=True):
    """The counts of some lanes. `is_refused`: counting them exceeds the limits of one request."""

    lanes: list[Lane]
    counts: list[tuple[Lane, Kind, int]]
    is_refused: bool = False


class EncodedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """An `UpcomingDocument` whose counts are already encoded as JSON."""

    by: By
    due_from: int
    due_to: int
    counts: list[msgspec.Raw]
    pending: list[msgspec.Raw]


@dataclass(frozen=True)
class TenantIntervals(Intervals):
    """Minutes, hours or days of a tenant."""

    tenant: str


def intervals_of(tenant: str, given: MultiMapping[str], now: int) -> TenantIntervals:
    """Return the intervals that a request asks for. Raises QueryError naming the invalid parameter."""
    asked = intervals_asked(read_parameters(UpcomingParameters, given), now)
    return TenantIntervals(asked.by, asked.begin, asked.end, checked("tenant", parse_tenant, tenant))


def parts(table: ReadableTable, asked: TenantIntervals) -> Iterator[Counter[Kind]]:
    """Yield a table's counts in the intervals, part by part. Between two parts the table may change.

    The parts of all pending schedules, and of each day, are consistent as of the moment when their first part is read.
    Parts do not overlap: a minute is in one day.
    """
    counts = table.counts
    for totals in pieces(counts.each_total((asked.tenant,))):
        yield Counter({Kind(each.topic, each.state, None): n for each, n in totals})
    own = _OwnGroups(counts, asked.tenant)
    for cells in cells_in(counts, asked, own.numbers):
        yield _added_up(own.groups, cells)


class _OwnGroups:
    """The groups of a tenant by number, as of the last call of `numbers`, which precedes each read of counts."""

    def __init__(self, counts: Counts, tenant: str) -> None:
        self._counts = counts
        self._tenant = tenant
        self.groups: dict[int, Group] = {}

    def numbers(self) -> list[int]:
        """Return the numbers, in order."""
        self.groups = self._counts.groups_of(self._tenant)
        return list(self.groups)


def _added_up(groups: Mapping[int, Group], cells: Iterable[tuple[int, int, int]]) -> Counter[Kind]:
    """Add up (group number, first minute of an interval, change) by kind, for these groups."""
    sums = Counter[Kind]()
    for number, begin, change in cells:
        if (group := groups.get(number)) is not None:
            sums[Kind(group.topic, group.state, begin)] += change
    return sums


async def own_counts(tables: Tables, asked: TenantIntervals) -> OwnCounts:
    """Read this worker's running lanes. Lanes that stop meanwhile are not in the answer."""
    found: dict[Lane, Counter[Kind]] = {}
    async with count_time() as time:
        for lane, table in sorted(tables.tables().items(), key=lambda each: each[0]):
            if tables.tables().get(lane) is not table:  # closed while another lane was read
                continue
            found[lane] = Counter()
            for part in parts(table, asked):
                found[lane].update(part)
                if time.is_used_up():
                    return OwnCounts(sorted(tables.tables()), [], is_refused=True)
                if time.slice_is_over():
                    await time.rest()
                    if tables.tables().get(lane) is not table:
                        del found[lane]
                        break
        rows: list[tuple[Lane, Kind, int]] = []
        for lane, sums in found.items():
            for some in pieces(iter(sums.items())):
                rows += [(lane, kind, count) for kind, count in some if count]
                if time.slice_is_over():
                    await time.rest()
    return OwnCounts(sorted(found), rows)


async def document(whole: Whole[OwnCounts], asked: TenantIntervals) -> bytes:
    """Add up the shares of all workers, and return the sum as JSON. Raises QueryError if a worker has too much to
    count."""
    if any(share.is_refused for share in whole.shares.values()):
        raise too_much()
    async with LoopTime(rest=SHORT_REST) as time:
        merged = Merged()
        for _ in chain(merged.add(whole), merged.encode()):
            if time.slice_is_over():
                await time.rest()
        return _encode(
            EncodedCounts(
                by=asked.by,
                due_from=asked.begin * MINUTE_MS,
                due_to=asked.end * MINUTE_MS,
                counts=merged.counts,
                pending=merged.pending,
            )
        )


class Merged:
    """The counts of all lanes together, part by part: first added up, then encoded as JSON in order."""

    def __init__(self) -> None:
        self._sums: Counter[Kind] = Counter()
        self.counts: list[msgspec.Raw] = []
        self.pending: list[msgspec.Raw] = []

    def add(self, whole: Whole[OwnCounts]) -> Iterator[None]:
        """Add up all shares, some counts between two yields."""
        for url, share in whole.shares.items():
            for some in pieces(iter(share.counts)):
                for lane, kind, count in some:
                    if whole.claims.get(lane) == url:
                        self._sums[kind] += count
                yield

    def encode(self) -> Iterator[None]:
        """Encode the sums in order, some between two yields."""
        pending: list[list[tuple[str, State, int]]] = []
        counts: list[list[tuple[int, str, State, int]]] = []
        for some in pieces(iter(self._sums.items())):
            pending.append(sorted((kind.topic, kind.state, n) for kind, n in some if kind.minute is None))
            counts.append(
                sorted((kind.minute, kind.topic, kind.state, n) for kind, n in some if kind.minute is not None)
            )
            yield
        for each in pieces(heapq.merge(*pending)):
            self.pending += [msgspec.Raw(_encode(PendingCount(*count))) for count in each]
            yield
        for rows in pieces(heapq.merge(*counts)):
            self.counts += [
                msgspec.Raw(_encode(UpcomingCount(minute * MINUTE_MS, topic, state, n)))
                for minute, topic, state, n in rows
            ]
            yield


class UpcomingHandlers:
    """One method per operation."""

    def __init__(
        self, lanes: Lanes, cluster: Callable[[web.Request], ClusterAnswers], turns: CountTurns, clock: Clock
    ) -> None:
        self._lanes = lanes
        self._cluster = cluster
        self._turns = turns
        self._clock = clock

    async def upcoming(self, request: web.Request) -> web.Response:
        asked = intervals_of(request.match_info["tenant"], request.query, self._clock.now())
        if is_local(request):
            return share_response(await self._own(asked))
        path = str(URL(request.rel_url.raw_path, encoded=True).with_query(asked.parameters))
        async with self._turns.whole.turn():
            whole = await self._cluster(request).whole(self._own(asked), path, OwnCounts)
            return web.Response(body=await document(whole, asked), content_type="application/json")

    async def _own(self, asked: TenantIntervals) -> OwnCounts:
        tables = await caught_up(self._lanes)
        async with self._turns.own.turn():
            return await own_counts(tables, asked)


_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
