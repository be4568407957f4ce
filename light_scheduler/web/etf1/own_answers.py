"""This worker's share of a search. A search reads all schedules of the worker, so it is limited, and refused beyond the
limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from light_scheduler.model import DEFAULT_TENANT, Entry
from light_scheduler.tables.views import Lane, Mark, Query, QueryError, ReadableTable, scan
from light_scheduler.web.cluster import bounded
from light_scheduler.web.interfaces import Tables
from light_scheduler.web.limits.slices import LoopTime

from .documents import planned
from .search import Row, Search

_encode = msgspec.json.Encoder().encode


class LaneMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Matches in a lane: number of `pending` schedules, number of matches, and the first ones in the search's order."""

    lane: Lane
    pending: int
    found: int
    rows: list[Row]


class OwnSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Matches in all lanes of a worker. `is_refused`: reading or sending them exceeds the limits of one request."""

    lanes: list[Lane]
    matches: list[LaneMatches]
    is_refused: bool = False


async def own_search(lanes: Tables, topics: frozenset[str], search: Search) -> OwnSearch:
    """Search this worker's running lanes of some topics. Lanes that stop meanwhile are not in the answer."""
    readers = await bounded.read_lanes(lanes, topics, lambda lane: _Reader(lane, search))
    if readers is None:
        return OwnSearch(lanes=sorted(bounded.own_lanes(lanes, topics)), matches=[], is_refused=True)
    matches = [reader.matches() for reader in readers]
    return OwnSearch(lanes=[each.lane for each in matches], matches=matches)


def own_lookup(lanes: Tables, topics: frozenset[str], id: str, search: Search) -> OwnSearch:
    """Look up an id in this worker's running lanes of some topics. More than one lane can have it."""
    tables = bounded.own_lanes(lanes, topics)
    matches = [
        LaneMatches(lane=lane, pending=tables[lane].pending, found=1, rows=[_row(entry, lane)])
        for lane, entry in _named(tables, id, search)
    ]
    return OwnSearch(lanes=sorted(tables), matches=matches)


def too_much() -> QueryError:
    """Return the error for a search that finds more than one answer may hold."""
    advice = "search a shorter time with epoch-from and epoch-to, or for fewer with max"
    return bounded.too_much("epoch_to", "schedules", advice)


class _Reader:
    """Reads one lane's table in the order of due times, slice by slice, and keeps the first rows of the search.

    `size` is the number of bytes of these rows.
    """

    def __init__(self, lane: Lane, search: Search) -> None:
        self._lane = lane
        self._search = search
        self._query = Query(tenant=DEFAULT_TENANT, due_from=search.start, due_to=search.end, sort="due")
        self._rows: list[Row] = []
        self._found = self._pending = 0
        self._after: Mark | None = None
        self.size = 0
        self.is_done = False

    def read(self, table: ReadableTable, time: LoopTime, budget: int) -> int:
        part = scan(
            {self._lane: table},
            self._query,
            after=self._after,
            limit=budget,
            budget=budget,
            is_over=time.slice_is_over,
        )
        rows = [_row(entry, self._lane) for _, entry in part.rows if self._search.fits(entry.schedule.id)]
        self._found += len(rows)
        self._rows += rows
        self.size += _size(rows)
        most = self._search.most
        if most is not None and (len(self._rows) > 2 * most or self.size > bounded.MOST_BYTES):
            self._rows = self._search.order.first(self._rows, most)
            self.size = _size(self._rows)
        self._after, self.is_done = part.reached, part.reached is None
        self._pending = table.pending
        return part.spent

    def matches(self) -> LaneMatches:
        rows = self._search.order.first(self._rows, self._search.most)
        return LaneMatches(lane=self._lane, pending=self._pending, found=self._found, rows=rows)


def _size(rows: list[Row]) -> int:
    return sum(len(row.encoded) for row in rows)


def _named(tables: Mapping[Lane, ReadableTable], id: str, search: Search) -> Iterable[tuple[Lane, Entry]]:
    for lane, table in tables.items():
        entry = table.get(DEFAULT_TENANT, id)
        if entry is not None and (search.end is None or entry.progress.wakes_at < search.end):
            yield lane, entry


def _row(entry: Entry, lane: Lane) -> Row:
    document = planned(entry, lane[0])
    return Row(document.id, document.epoch, document.timestamp, _encode(document))
