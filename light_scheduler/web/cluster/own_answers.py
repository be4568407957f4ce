"""This worker's share of an answer, read from the tables of its own lanes without holding up their loop."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from light_scheduler.tables.views import Lane, Mark, Query, ReadableTable, counted, scan
from light_scheduler.web.forms.documents import ScheduleDetail, detail, summary
from light_scheduler.web.interfaces import Tables
from light_scheduler.web.limits.slices import SEARCH_TIME_S, LoopTime

SLICE_BUDGET = 500
"""Maximum rows read at a time, if a slice is long enough: their payloads are in memory together."""

REQUEST_BUDGET = 20_000
"""Maximum rows read for one request. A filter with few matches gives a short page and a cursor."""

REQUEST_TIME_S = 0.1
"""Processor time for one request. Rows that take long to read give a short page, too."""

PAGE_BYTES = 1 << 20
"""A page ends with the row that makes it this large."""


class OwnPage(msgspec.Struct, frozen=True, kw_only=True):
    """Matching rows of some lanes, in order. `reached` is where reading stopped; None: at the end. `counts` is the
    number of matching schedules in each lane, whatever page is read; it omits lanes that do not know theirs.

    Each row is a `ScheduleSummary` as JSON, encoded here slice by slice. So the worker that merges pages need not
    decode and encode all rows at once.
    """

    lanes: list[Lane]
    rows: list[tuple[Mark, bytes]]
    reached: Mark | None
    counts: list[tuple[Lane, int]] = []  # earlier workers do not send them


class OwnMatches(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules with one id in some lanes: at most one, unless two keys in different partitions have the same
    id."""

    lanes: list[Lane]
    found: list[ScheduleDetail]


async def own_page(lanes: Tables, query: Query) -> OwnPage:
    """Read a page from this worker's running lanes. Lanes that stop meanwhile are not in the page."""
    async with LoopTime(REQUEST_TIME_S) as time:
        return await _page(lanes, query, time)


async def _page(lanes: Tables, query: Query, time: LoopTime) -> OwnPage:
    kept = set(lanes.tables())
    rows: list[tuple[Mark, bytes]] = []
    after, spent, read, size = query.start(), 0, 0, 0
    while True:
        tables = {lane: table for lane, table in lanes.tables().items() if lane in kept}
        kept &= tables.keys()
        limit = query.limit - len(rows)
        part = scan(tables, query, after=after, limit=limit, budget=SLICE_BUDGET, is_over=time.slice_is_over)
        after, spent, read = part.reached, spent + part.spent, read + part.read
        for mark, entry in part.rows:
            row = _encode(summary(entry, mark.topic))
            rows.append((mark, row))
            size += len(row)
            if size >= PAGE_BYTES:
                return _own(tables, query, rows, mark)
        is_over = time.is_used_up() or (read > 2 * len(rows) and time.has_taken(SEARCH_TIME_S))
        if after is None or len(rows) >= query.limit or spent >= REQUEST_BUDGET or is_over:
            return _own(tables, query, rows, after)
        await time.rest()


def _own(
    tables: Mapping[Lane, ReadableTable], query: Query, rows: list[tuple[Mark, bytes]], reached: Mark | None
) -> OwnPage:
    counts = sorted(counted(tables, query).items())
    return OwnPage(lanes=sorted(tables), rows=rows, reached=reached, counts=counts)


_encode = msgspec.json.Encoder().encode


async def own_matches(lanes: Tables, tenant: str, id: str) -> OwnMatches:
    """Look up an id in this worker's running lanes."""
    tables = lanes.tables()
    entries = ((lane, table.get(tenant, id)) for lane, table in tables.items())
    found = [detail(entry, *lane) for lane, entry in entries if entry is not None]
    return OwnMatches(lanes=sorted(tables), found=found)
