"""The overview of the cluster, from counts of tables and figures of lanes, without reading schedules."""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from aiohttp import web

from light_scheduler.clock import Clock
from light_scheduler.model import State
from light_scheduler.tables.cell_changes import Group
from light_scheduler.tables.views import Lane, ReadableTable

from .access.guard import IDENTITY
from .cluster.answers import ClusterAnswers, Whole, is_local, share_response
from .cluster.caught_up import caught_up
from .cluster.shared_answers import SharedAnswers
from .cluster.tenants_asked import TenantParameters, Tenants, questions
from .forms.parameters import read_parameters
from .forms.problems import MissingPartition
from .interfaces import Lanes, Tables
from .last_hour import SLOT_MS, LastHour, Slot, together
from .limits.largest import Largest
from .limits.slices import SHORT_REST, LoopTime, pieces
from .overview_document import HourSample, OverviewDocument, TenantPending, TopicPending

PATH = "/api/v1/overview"
FRESH_S = 1.0
"""How long an answer is reused. All viewers of a worker's overview together cost one answer in this time."""

MOST_GROUPS = 1_000
"""Number of groups of schedules (see `tables.counts`) of a lane that are sent to other workers: the largest ones."""

MOST_NAMED = 100
"""Number of tenants, and of target topics, that an overview names."""


class LaneCounts(msgspec.Struct, frozen=True):
    """A lane's schedules by state, and its largest groups. `complete`: these are all groups."""

    states: dict[State, int]
    groups: list[tuple[Group, int]]
    complete: bool


class LaneFigures(msgspec.Struct, frozen=True):
    """Figures of a lane; see `LaneStatus`."""

    lag: int | None
    dead_letters: int
    oldest_due: int | None


class OwnOverview(msgspec.Struct, frozen=True):
    """A worker's part of an overview. `figures` and `hour` are None if the request is for some tenants only."""

    lanes: list[Lane]
    counts: list[LaneCounts]
    figures: list[LaneFigures] | None
    hour: list[Slot] | None


async def lane_counts(groups: Iterator[tuple[Group, int]], time: LoopTime) -> LaneCounts:
    """Return the counts of a lane, given those of its groups."""
    states: Counter[State] = Counter()
    largest: Largest[Group] = Largest(MOST_GROUPS)
    size = 0
    for rows in pieces(groups):
        size += len(rows)
        for group, count in rows:
            states[group.state] += count
        largest.add(rows)
        if time.slice_is_over():
            await time.rest()
    found = largest.found()
    return LaneCounts(states, found, len(found) == size)


class Overview:
    """Builds overviews, each at most once a second."""

    def __init__(
        self, lanes: Lanes, hour: LastHour, cluster: Callable[[web.Request], ClusterAnswers], clock: Clock
    ) -> None:
        self._lanes = lanes
        self._hour = hour
        self._cluster = cluster
        self._now = clock.now
        self._answers = SharedAnswers[Tenants, bytes]()
        self._counting = asyncio.Lock()

    async def answer(self, request: web.Request) -> bytes:
        """Return the overview for the identity that asks, as JSON."""
        tenants = request[IDENTITY].tenants
        return await self._answers.answer(tenants, FRESH_S, lambda: self._asked(self._cluster(request), tenants))

    async def own(self, tenants: Tenants) -> OwnOverview:
        """Return this worker's share."""
        tables = await caught_up(self._lanes)
        async with self._counting:  # one at a time: the lanes have most of the loop's time
            return await own_overview(tables, self._lanes, self._hour.slots(self._now()), tenants)

    async def _asked(self, cluster: ClusterAnswers, tenants: Tenants) -> bytes:
        asked = [cluster.known(self.own(part), path, OwnOverview) for part, path in questions(PATH, tenants)]
        return _encode(document(await asyncio.gather(*asked), self._now()))


async def own_overview(tables: Tables, lanes: Lanes, hour: list[Slot], tenants: Tenants) -> OwnOverview:
    """Return the share of the running lanes. `hour` is this worker's activity, including that of lanes it no longer
    has."""
    counted: dict[Lane, tuple[ReadableTable, LaneCounts]] = {}
    async with LoopTime(rest=SHORT_REST) as time:
        for lane, table in tables.tables().items():
            counted[lane] = table, await lane_counts(table.counts.each_total(tenants), time)
    tables_left = tables.tables()
    running = [lane for lane, (table, _) in counted.items() if tables_left.get(lane) is table]
    counts = [counted[lane][1] for lane in running]
    if tenants is not None:
        return OwnOverview(running, counts, None, None)
    status = {(lane.topic, lane.partition): lane for lane in lanes.status()}
    figures = [LaneFigures(status[lane].lag, status[lane].dead_letters, status[lane].oldest_due) for lane in running]
    return OwnOverview(running, counts, figures, hour)


def document(answers: Sequence[tuple[Whole[OwnOverview], list[MissingPartition]]], now: int) -> OverviewDocument:
    """Add up the shares of all workers. Each answer covers its own tenants."""
    shares = [
        (share, at)
        for whole, _ in answers
        for url, share in whole.shares.items()
        for at, lane in enumerate(share.lanes)
        if whole.claims.get(lane) == url
    ]
    missing = {(each.topic, each.partition): each for _, absent in answers for each in absent}
    counts = [share.counts[at] for share, at in shares]
    figures = [share.figures[at] for share, at in shares if share.figures is not None]
    hours = [share.hour for whole, _ in answers for share in whole.shares.values() if share.hour is not None]
    states: Counter[str] = Counter()
    tenants: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    for each in counts:
        states.update(each.states)
        for group, count in each.groups:
            tenants[group.tenant] += count
            targets[group.topic] += count
    lags = [each.lag for each in figures if each.lag is not None]
    return OverviewDocument(
        time=now,
        pending=sum(states.values()),
        states=dict(sorted(states.items())),
        tenants=[TenantPending(*each) for each in _largest(tenants)],
        targets=[TopicPending(*each) for each in _largest(targets)],
        complete=all(each.complete for each in counts),
        next_due=min((each.oldest_due for each in figures if each.oldest_due is not None), default=None),
        backlog=sum(lags) if lags else None,
        dead_letters=sum(each.dead_letters for each in figures) if hours else None,
        hour=[_sample(slot) for slot in together(hours)] if hours else None,
        missing=[missing[lane] for lane in sorted(missing)],
    )


def _largest(counts: Counter[str]) -> list[tuple[str, int]]:
    return heapq.nsmallest(MOST_NAMED, counts.items(), key=lambda each: (-each[1], each[0]))


def _sample(slot: Slot) -> HourSample:
    seconds = SLOT_MS / 1_000
    return HourSample(
        at=slot.at,
        accepted=round(slot.accepted / seconds, 2),
        fired=round(slot.fired / seconds, 2),
        p50=slot.late(0.5),
        p90=slot.late(0.9),
        p99=slot.late(0.99),
        backlog=slot.backlog,
    )


class OverviewHandlers:
    """One method per operation."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview

    async def overview(self, request: web.Request) -> web.Response:
        if not is_local(request):
            return web.Response(body=await self._overview.answer(request), content_type="application/json")
        tenants = read_parameters(TenantParameters, request.query).tenants()
        return share_response(await self._overview.own(tenants))


_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
