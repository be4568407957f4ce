"""This worker's share of a search: all its schedules are read for it, so it has a bound, beyond which it is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from light_scheduler.model import DEFAULT_TENANT, Entry
from light_scheduler.tables.views import Lane, Mark, Query, QueryError, ReadableTable, scan
from light_scheduler.web.cluster import Tables
from light_scheduler.web.own import REQUEST_BUDGET, REQUEST_TIME_S, SLICE_BUDGET
from light_scheduler.web.slices import LoopTime

from .documents import planned
from .search import Row, Search

MOST_BYTES = 32 << 20
"""Of the rows that a worker keeps for one answer, in JSON."""

_encode = msgspec.json.Encoder().encode


class LaneMatches(msgspec.Struct, frozen=True, kw_only=True):
    """Matches of a lane: its `pending` schedules, how many match, and the first matches in the search's order."""

    lane: Lane
    pending: int
    found: int
    rows: list[Row]


class OwnSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Matches of all lanes of a worker. `is_refused`: there is more to read or to send than one request may."""

    lanes: list[Lane]
    matches: list[LaneMatches]
    is_refused: bool = False


async def own_search(lanes: Tables, topics: frozenset[str], search: Search) -> OwnSearch:
    """Search this worker's running lanes of some topics; one that stops meanwhile is not among the answer's lanes."""
    matches: list[LaneMatches] = []
    async with LoopTime(REQUEST_TIME_S) as time:
        spent = size = 0
        for lane in own_lanes(lanes, topics):
            reader = _Reader(lane, search)
            while (table := lanes.tables().get(lane)) is not None:
                spent += reader.read(table, time)
                is_spent = spent >= REQUEST_BUDGET or time.is_used_up()
                if size + reader.size > MOST_BYTES or (is_spent and not reader.is_done):
                    return OwnSearch(lanes=sorted(own_lanes(lanes, topics)), matches=[], is_refused=True)
                if time.slice_is_over():
                    await time.rest()
                if reader.is_done:
                    matches.append(reader.matches(table.pending))
                    break
            size += reader.size
    return OwnSearch(lanes=[each.lane for each in matches], matches=matches)


def own_lookup(lanes: Tables, topics: frozenset[str], id: str, search: Search) -> OwnSearch:
    """Look an id up in this worker's running lanes of some topics: more than one may have it."""
    tables = own_lanes(lanes, topics)
    matches = [
        LaneMatches(lane=lane, pending=tables[lane].pending, found=1, rows=[_row(entry, lane)])
        for lane, entry in _named(tables, id, search)
    ]
    return OwnSearch(lanes=sorted(tables), matches=matches)


def own_lanes(lanes: Tables, topics: frozenset[str]) -> Mapping[Lane, ReadableTable]:
    """Return the tables of this worker's running lanes of some topics."""
    return {lane: table for lane, table in lanes.tables().items() if lane[0] in topics}


def too_much() -> QueryError:
    """Return the refusal of a search that finds more than one answer may take."""
    return QueryError(
        "epoch_to",
        f"more than a worker reads for one answer ({REQUEST_BUDGET} schedules, {REQUEST_TIME_S} s) or sends "
        f"({MOST_BYTES >> 20} MiB): search a shorter time with epoch-from and epoch-to, or for fewer with max",
    )


class _Reader:
    """Reads one lane's table in the order of due times, slice by slice, and keeps the first rows of the search.

    `size` is what these have in bytes.
    """

    def __init__(self, lane: Lane, search: Search) -> None:
        self._lane = lane
        self._search = search
        self._query = Query(tenant=DEFAULT_TENANT, due_from=search.start, due_to=search.end, sort="due")
        self._rows: list[Row] = []
        self._found = 0
        self._after: Mark | None = None
        self.size = 0
        self.is_done = False

    def read(self, table: ReadableTable, time: LoopTime) -> int:
        """Read a slice, and return what it took of the budget."""
        part = scan(
            {self._lane: table},
            self._query,
            after=self._after,
            limit=SLICE_BUDGET,
            budget=SLICE_BUDGET,
            is_over=time.slice_is_over,
        )
        rows = [_row(entry, self._lane) for _, entry in part.rows if self._search.fits(entry.schedule.id)]
        self._found += len(rows)
        self._rows += rows
        self.size += _size(rows)
        most = self._search.most
        if most is not None and (len(self._rows) > 2 * most or self.size > MOST_BYTES):
            self._rows = self._search.order.first(self._rows, most)
            self.size = _size(self._rows)
        self._after, self.is_done = part.reached, part.reached is None
        return part.spent

    def matches(self, pending: int) -> LaneMatches:
        rows = self._search.order.first(self._rows, self._search.most)
        return LaneMatches(lane=self._lane, pending=pending, found=self._found, rows=rows)


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
