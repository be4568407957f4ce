"""Counts the schedules of all tenants by due time, and by tenant, target topic or partition.

It reads the counts of tables, not schedules. A lane names its largest groups and adds up the others, so an answer does
not grow with the number of tenants. While a lane is read, memory holds a number for each of its groups, and counts by
interval only for the named ones.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain
from typing import Any

import msgspec
from aiohttp import web
from msgspec import UNSET
from multidict import MultiMapping
from yarl import URL

from light_scheduler.clock import Clock
from light_scheduler.tables.cell_changes import Group
from light_scheduler.tables.counts import Counts
from light_scheduler.tables.views import Lane, ReadableTable
from light_scheduler.web.cluster.answers import ClusterAnswers, Whole, is_local, share_response
from light_scheduler.web.cluster.caught_up import caught_up
from light_scheduler.web.cluster.known_partitions import KnownPartitions
from light_scheduler.web.cluster.shared_answers import SharedAnswers
from light_scheduler.web.forms.parameters import lane_named, optional, read_parameters
from light_scheduler.web.interfaces import Lanes, Tables
from light_scheduler.web.limits.counts import CountTurns, count_time, too_much
from light_scheduler.web.limits.largest import Largest
from light_scheduler.web.limits.slices import SHORT_REST, LoopTime, pieces
from light_scheduler.wire.fields import parse_topic

from .document import (
    By,
    GroupedBy,
    IntervalCount,
    UpcomingGroup,
    UpcomingGroupsParameters,
)
from .intervals import MINUTE_MS, Intervals, cells_in, intervals_asked

PATH = "/api/v1/upcoming"
FRESH_S = 1.0
"""How long an answer is reused. All dashboards of a worker together cost one count in this time."""

MOST_NAMED = 100
"""Maximum number of groups that a lane names."""

NAMED_PER_GROUP = 4
"""Number of groups that a lane names for each requested one: the largest groups overall need not be the largest in each
lane."""

MOST_COUNTS = 20_000
"""Maximum counts by interval of all named groups of a lane together. Beyond that, it names fewer groups."""

Name = str | None
"""Name of a group; None: all groups that are not named."""


@dataclass(frozen=True)
class Asked:
    """The parameters of a request. `target_topic` and `partition` None: all of them."""

    intervals: Intervals
    group: GroupedBy
    top: int
    target_topic: str | None = None
    partition: Lane | None = None

    @property
    def parameters(self) -> dict[str, str]:
        """The query string for exactly this request."""
        partition = None if self.partition is None else lane_name(self.partition)
        only = {"target_topic": self.target_topic, "partition": partition}
        given = {name: value for name, value in only.items() if value is not None}
        return self.intervals.parameters | {"group": self.group, "top": str(self.top)} | given

    @property
    def most_named(self) -> int:
        """The maximum number of groups that a lane names."""
        return min(NAMED_PER_GROUP * self.top, MOST_NAMED)

    def holds(self, group: Group) -> bool:
        return self.target_topic is None or group.topic == self.target_topic


class Series(msgspec.Struct, frozen=True):
    """A group in a lane: its number of pending schedules, and pairs (first minute of an interval, count)."""

    name: Name
    pending: int
    counts: list[tuple[int, int]]


class OwnSeries(msgspec.Struct, frozen=True):
    """A worker's lanes, and the groups of each. `is_refused`: counting exceeds the limits of one request.

    The groups of a lane are a list of `Series` in MessagePack, so that one lane at a time is encoded and decoded.
    """

    lanes: list[Lane]
    series: list[msgspec.Raw]
    is_refused: bool = False


class EncodedGroups(msgspec.Struct, frozen=True, kw_only=True):
    """An `UpcomingGroupsDocument` whose groups are already encoded as JSON."""

    by: By
    group: GroupedBy
    due_from: int
    due_to: int
    groups: list[msgspec.Raw]
    complete: bool


def asked_of(given: MultiMapping[str], now: int, named: Callable[[str], Lane] = lane_named) -> Asked:
    """Return the parameters of a request; `named` resolves a `PartitionName`. Raises QueryError naming the invalid
    parameter."""
    parameters = read_parameters(UpcomingGroupsParameters, given)
    return Asked(
        intervals_asked(parameters, now),
        parameters.group,
        parameters.top,
        optional("target_topic", parse_topic, parameters.target_topic),
        None if parameters.partition is UNSET else named(parameters.partition),
    )


class LaneGroups:
    """The groups of one lane, added up part by part. Between two parts the table may change."""

    def __init__(self, lane: Lane, counts: Counts, asked: Asked) -> None:
        self._counts = counts
        self._asked = asked
        self._lane = lane_name(lane)
        self._named: dict[str, int] = {}  # the largest first
        self._pending: Counter[Name] = Counter()
        self._due: defaultdict[Name, Counter[int]] = defaultdict(Counter)
        self._known: dict[int, tuple[Name] | None] = {}  # group number -> name under which it counts; None: not at all

    def parts(self) -> Iterator[None]:
        """Add up one part between two yields."""
        totals: Counter[str] = Counter()
        for some in pieces(self._counts.each_total()):
            for group, count in some:
                if self._asked.holds(group):
                    totals[self._name(group)] += count
            yield
        if self._asked.most_named:
            largest: Largest[str] = Largest(self._asked.most_named)
            for rows in pieces(iter(totals.items())):
                largest.add(rows)
                yield
            self._named = dict(largest.found())
        self._pending.update(self._named)
        if rest := totals.total() - self._pending.total():
            self._pending[None] = rest
        for cells in cells_in(self._counts, self._asked.intervals):
            for number, begin, change in cells:
                if (place := self._place(number)) is not None:
                    self._due[place[0]][begin] += change
            yield
        size = 0
        for name in self._named:
            size += len(self._due.get(name, ()))
            if size > MOST_COUNTS:
                self._due[None].update(self._due.pop(name, {}))
                self._pending[None] += self._pending.pop(name)
                yield

    def series(self) -> list[Series]:
        """Return the sums."""
        return [
            Series(name, self._pending[name], [(minute, n) for minute, n in self._due.get(name, {}).items() if n])
            for name in dict.fromkeys((*self._pending, *self._due))
        ]

    def _name(self, group: Group) -> str:
        if self._asked.group == "partition":
            return self._lane
        return group.tenant if self._asked.group == "tenant" else group.topic

    def _place(self, number: int) -> tuple[Name] | None:
        """Return where a group counts. Once found, a group stays known even when its counts are gone."""
        if number not in self._known:
            group = self._counts.group(number)
            if group is None:
                return None
            name = self._name(group)
            self._known[number] = (name if name in self._named else None,) if self._asked.holds(group) else None
        return self._known[number]


def lane_name(lane: Lane) -> str:
    """Return the name of a partition in answers."""
    topic, partition = lane
    return f"{topic}[{partition}]"


async def own_series(tables: Tables, asked: Asked) -> OwnSeries:
    """Read this worker's running lanes. Lanes that stop meanwhile are not in the answer."""
    found: dict[Lane, msgspec.Raw] = {}
    async with count_time() as time:
        for lane, table in sorted(tables.tables().items(), key=lambda each: each[0]):
            if asked.partition is not None and asked.partition != lane:
                found[lane] = _encode_series([])
                continue
            groups = await _read(tables, lane, table, asked, time)
            if time.is_used_up():
                return OwnSeries(sorted(tables.tables()), [], is_refused=True)
            if groups is not None:
                found[lane] = _encode_series(groups.series())
    return OwnSeries(list(found), list(found.values()))


async def _read(tables: Tables, lane: Lane, table: ReadableTable, asked: Asked, time: LoopTime) -> LaneGroups | None:
    """Return the groups of a lane. None if it was closed before they were read, or the time is used up."""
    if tables.tables().get(lane) is not table:
        return None
    groups = LaneGroups(lane, table.counts, asked)
    for _ in groups.parts():
        if time.is_used_up():
            return None
        if time.slice_is_over():
            await time.rest()
            if tables.tables().get(lane) is not table:
                return None
    return groups


async def document(whole: Whole[OwnSeries], asked: Asked) -> bytes:
    """Add up the shares of all workers, name the groups with the most due schedules, and return them as JSON. Raises
    QueryError if a worker has too much to count."""
    if any(share.is_refused for share in whole.shares.values()):
        raise too_much()
    async with LoopTime(rest=SHORT_REST) as time:
        merged = Merged()
        encoded: list[msgspec.Raw] = []
        for _ in chain(merged.add(whole), merged.together(asked.top, encoded)):
            if time.slice_is_over():
                await time.rest()
        return _encode(
            EncodedGroups(
                by=asked.intervals.by,
                group=asked.group,
                due_from=asked.intervals.begin * MINUTE_MS,
                due_to=asked.intervals.end * MINUTE_MS,
                groups=encoded,
                complete=merged.is_complete or not asked.top,
            )
        )


class Merged:
    """The groups of all lanes together, part by part."""

    def __init__(self) -> None:
        self._pending: Counter[Name] = Counter()
        self._due: dict[Name, Counter[int]] = {}

    @property
    def is_complete(self) -> bool:
        """Whether every lane has named all of its groups."""
        return None not in self._due

    def add(self, whole: Whole[OwnSeries]) -> Iterator[None]:
        """Add up all shares, one group of a lane between two yields."""
        for url, share in whole.shares.items():
            for lane, series in zip(share.lanes, share.series, strict=True):
                for each in decode_series(series) if whole.claims.get(lane) == url else ():
                    self._pending[each.name] += each.pending
                    self._due.setdefault(each.name, Counter()).update(dict(each.counts))
                    yield

    def together(self, top: int, encoded: list[msgspec.Raw]) -> Iterator[None]:
        """Encode the groups with the most due schedules, and all others as one, one group between two yields."""
        ranks: list[tuple[int, int, str]] = []
        for names in pieces(iter([name for name in self._due if name is not None])):
            new = ((-self._due[name].total(), -self._pending[name], name) for name in names)
            ranks = nsmallest(top, chain(ranks, new))
            yield
        for _, _, name in ranks:
            encoded.append(_encode_group(name, self._pending.pop(name), self._due.pop(name)))
            yield
        if self._due:
            others: Counter[int] = Counter()
            for due in self._due.values():
                others.update(due)
                yield
            encoded.append(_encode_group(None, self._pending.total(), others))


def _encode_group(name: Name, pending: int, due: Counter[int]) -> msgspec.Raw:
    counts = [IntervalCount(minute * MINUTE_MS, count) for minute, count in sorted(due.items())]
    return msgspec.Raw(_encode(UpcomingGroup(name=name, due=due.total(), pending=pending, counts=counts)))


def _encode_series(series: list[Series]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(series))


class UpcomingGroupsHandlers:
    """One method per operation."""

    def __init__(
        self,
        lanes: Lanes,
        partitions: KnownPartitions,
        cluster: Callable[[web.Request], ClusterAnswers],
        turns: CountTurns,
        clock: Clock,
    ) -> None:
        self._lanes = lanes
        self._partitions = partitions
        self._cluster = cluster
        self._turns = turns
        self._clock = clock
        self._answers = SharedAnswers[Asked, bytes]()

    async def upcoming_groups(self, request: web.Request) -> web.Response:
        asked = asked_of(request.query, self._clock.now(), await self._partitions.asked_by(request))
        if is_local(request):
            return share_response(await self._own(asked))
        body = await self._answers.answer(asked, FRESH_S, lambda: self._asked(self._cluster(request), asked))
        return web.Response(body=body, content_type="application/json")

    async def _asked(self, cluster: ClusterAnswers, asked: Asked) -> bytes:
        path = str(URL(PATH).with_query(asked.parameters))
        async with self._turns.whole.turn():
            whole = await cluster.whole(self._own(asked), path, OwnSeries, asked.partition)
            return await document(whole, asked)

    async def _own(self, asked: Asked) -> OwnSeries:
        tables = await caught_up(self._lanes)
        async with self._turns.own.turn():
            return await own_series(tables, asked)


_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode
decode_series = msgspec.msgpack.Decoder(list[Series]).decode
