"""The HTTP handler that explains why a schedule fired, fires or does not fire.

It looks up the pending schedule first and then reads the history, so the history is never older. If the history is
ahead, it looks up the schedule again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, UnsetType

from light_scheduler.engine import FiringRules, shares_under
from light_scheduler.engine.why import Facts, Outage, Standing, Stopped
from light_scheduler.lanes.context.status import LaneStatus, TargetStatus
from light_scheduler.model import Entry, HistoryEvent
from light_scheduler.model.lane_state import LaneState
from light_scheduler.tables.views import MAX_LIMIT, Lane
from light_scheduler.wire import CommandRecord
from light_scheduler.wire.fields import parse_id, parse_tenant

from .access.guard import IDENTITY
from .cluster.answers import ClusterAnswers, Whole, is_local, share_response
from .cluster.caught_up import caught_up
from .forms.parameters import checked, read_parameters
from .forms.problems import MissingPartition, ProblemError
from .forms.text_forms import LOWER_BOUND, described
from .interfaces import Lanes
from .limits.turns import Turns
from .looking_back import MOST_TIME_S, Found, SearchPosition, look_back, opened
from .records.history import DAY_MS, events_of, place_of
from .why_document import why_document
from .worker import Worker

MOST_ROUNDS = 5
"""Maximum number of searches in the history for one answer. Each takes as long as one page of a history."""

RECENT_MS = 10_000
"""If the look-up may have missed an event, the event is at most this old: transactions take time, and the clocks of
workers differ."""

replace = msgspec.structs.replace


class WhyParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of `why`."""

    since: (
        Annotated[
            str,
            described(
                "Look back in the history to this instant: UTC epoch ms, or RFC 3339; default: a day.", LOWER_BOUND
            ),
        ]
        | UnsetType
    ) = UNSET


class OwnStanding(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's share: the schedules with one id in its running lanes, and why its other lanes do not run."""

    lanes: list[Lane]
    standing: list[Standing]
    stopped: list[Stopped]


class WhyHandlers:
    """One method per operation."""

    def __init__(self, worker: Worker, cluster: Callable[[web.Request], ClusterAnswers], searches: Turns) -> None:
        self._worker = worker
        self._cluster = cluster
        self._searches = searches

    async def why_schedule(self, request: web.Request) -> web.Response:
        tenant = checked("tenant", parse_tenant, request.match_info["tenant"])
        id = checked("id", parse_id, request.match_info["id"])
        if is_local(request):
            return share_response(await own_standing(self._worker.lanes, tenant, id))
        since = read_parameters(WhyParameters, request.query).since
        place = place_of(since, UNSET, self._worker.clock.now() - DAY_MS)
        pending = await self._pending(request, tenant, id)
        history = await self._history(tenant, id, place)
        if history.events and history.events[-1].at >= pending.at - RECENT_MS:
            earlier, pending = pending, await self._pending(request, tenant, id)
            if earlier.standing is not None and pending.standing is None:  # by now the history has its end
                history = await self._history(tenant, id, place)
        book, settings = self._worker.tenants.book, self._worker.settings
        rates = shares_under(settings.shares, book)
        facts = Facts(
            now=pending.at,
            searched_from=history.searched_from,
            standing=pending.standing,
            stopped=pending.stopped,
            tenant=book.get(tenant),
            rate=min((rate for rate in (rates.rate, rates.rate_of(tenant)) if rate is not None), default=None),
            rules=FiringRules(settings.lookback_minutes, settings.missed, settings.delivery_retries),
        )
        document = why_document(tenant, id, history.events, facts, complete=history.complete)
        return web.Response(body=msgspec.json.encode(document), content_type="application/json")

    async def _pending(self, request: web.Request, tenant: str, id: str) -> _Pending:
        """Look up an id in all workers."""
        own = own_standing(self._worker.lanes, tenant, id)
        whole, missing = await self._cluster(request).known(own, request.rel_url.raw_path, OwnStanding)
        stopped = _stopped(whole, missing, with_reasons=request[IDENTITY].tenants is None)
        return _Pending(_latest(whole), stopped, self._worker.clock.now())

    async def _history(self, tenant: str, id: str, place: SearchPosition) -> _FoundHistory:
        """Read the history of an id, in at most `MOST_ROUNDS` searches. After the first, it stops when a search gets no
        turn."""
        select = events_of(tenant, id)
        found = await self._round(place, MAX_LIMIT, select)
        matches = found.matches
        for _ in range(MOST_ROUNDS - 1):
            if found.next is None or len(matches) == MAX_LIMIT:
                break
            try:
                found = await self._round(found.next, MAX_LIMIT - len(matches), select)
            except ProblemError as error:
                if error.problem.status != HTTPStatus.TOO_MANY_REQUESTS:
                    raise
                break
            matches = [*matches, *found.matches]
        events = [match.value for match in reversed(matches)]
        return _FoundHistory(events, found.searched_from, complete=found.next is None)

    async def _round(
        self, place: SearchPosition, limit: int, select: Callable[[CommandRecord], HistoryEvent | None]
    ) -> Found[HistoryEvent]:
        """Search once. Raises ProblemError; 429 if too many other searches are waiting."""
        topic = self._worker.settings.topics.history
        async with self._searches.turn(), opened(self._worker.kafka.logs, topic) as log:
            now = self._worker.clock.now()
            return await look_back(log, place, now=now, limit=limit, select=select, most_s=MOST_TIME_S)


@dataclass(frozen=True)
class _Pending:
    """The pending schedule of an id, and the partitions that did not answer, at an instant (UTC epoch ms)."""

    standing: Standing | None
    stopped: list[Stopped]
    at: int


@dataclass(frozen=True)
class _FoundHistory:
    """The events of an id in order, as far back as the history was read."""

    events: list[HistoryEvent]
    searched_from: int
    complete: bool


async def own_standing(lanes: Lanes, tenant: str, id: str) -> OwnStanding:
    """Look up an id in this worker's lanes."""
    tables = (await caught_up(lanes)).tables()
    status = {(each.topic, each.partition): each for each in lanes.status()}
    entries = ((lane, table.get(tenant, id)) for lane, table in tables.items())
    return OwnStanding(
        lanes=sorted(tables),
        standing=[
            standing_of(entry, lane, lanes.targets(), status.get(lane)) for lane, entry in entries if entry is not None
        ],
        stopped=[
            Stopped(topic, partition, f"{each.state}: {each.reason}" if each.reason else each.state)
            for (topic, partition), each in status.items()
            if each.state != LaneState.RUNNING
        ],
    )


def standing_of(entry: Entry, lane: Lane, targets: Sequence[TargetStatus], status: LaneStatus | None) -> Standing:
    """Return a pending schedule, and the obstacles to its firing that its worker knows of."""
    topic = entry.schedule.target.topic
    outages = (
        Outage(each.topic, each.partitions, each.unavailable_since, each.reason)
        for each in targets
        if each.topic == topic
    )
    return Standing(
        entry=replace(entry, schedule=replace(entry.schedule, payload=None, headers=[])),
        topic=lane[0],
        partition=lane[1],
        outage=next(outages, None),
        clock_skew=None if status is None else status.clock_skew,
    )


def _latest(whole: Whole[OwnStanding]) -> Standing | None:
    """Return the schedule; if several have the id, the one accepted last."""
    found = (
        each
        for url, share in whole.shares.items()
        for each in share.standing
        if whole.claims.get((each.topic, each.partition)) == url
    )
    return max(found, key=lambda each: (each.entry.schedule.accepted_at, each.entry.schedule.version), default=None)


def _stopped(whole: Whole[OwnStanding], missing: Sequence[MissingPartition], *, with_reasons: bool) -> list[Stopped]:
    """Return the partitions that no share covers, with the state that their own worker reports, if it does.

    The reason can name topics of other tenants, so it is only given to identities that see all tenants.
    """
    all_known = (each for share in whole.shares.values() for each in share.stopped)
    known = {
        (each.topic, each.partition): each if with_reasons else replace(each, reason=each.reason.partition(":")[0])
        for each in all_known
    }
    return [
        known.get((each.topic, each.partition), Stopped(each.topic, each.partition, each.reason)) for each in missing
    ]
