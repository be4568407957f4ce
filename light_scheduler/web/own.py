"""This worker's share of an answer: from the tables of its own lanes, without holding up the loop that runs them."""

from __future__ import annotations

import asyncio

import msgspec

from light_scheduler.tables.views import Lane, Mark, Query, scan

from .cluster import Lanes
from .documents import ScheduleDetail, ScheduleSummary, detail, summary

SLICE_BUDGET = 500
"""Rows read at one go; the event loop is free between two slices. A few ms at most."""

REQUEST_BUDGET = 20_000
"""Rows read for one request: a filter that matches little gives a short page and its cursor."""


class OwnPage(msgspec.Struct, frozen=True, kw_only=True):
    """Matching rows of some lanes, in order. `reached` is where reading stopped; None: at the end."""

    lanes: list[Lane]
    rows: list[tuple[Mark, ScheduleSummary]]
    reached: Mark | None


class OwnMatches(msgspec.Struct, frozen=True, kw_only=True):
    """The schedules of one id in some lanes: one at most, unless two keys in two partitions were given the same id."""

    lanes: list[Lane]
    found: list[ScheduleDetail]


async def own_page(lanes: Lanes, query: Query) -> OwnPage:
    """Read a page from this worker's running lanes; one that stops meanwhile is not among the page's lanes."""
    kept = set(lanes.tables())
    rows: list[tuple[Mark, ScheduleSummary]] = []
    after, spent = query.start(), 0
    while True:
        tables = {lane: table for lane, table in lanes.tables().items() if lane in kept}
        kept &= tables.keys()
        part = scan(tables, query, after=after, limit=query.limit - len(rows), budget=SLICE_BUDGET)
        rows.extend((mark, summary(entry, mark.topic)) for mark, entry in part.rows)
        after, spent = part.reached, spent + part.spent
        if after is None or len(rows) >= query.limit or spent >= REQUEST_BUDGET:
            return OwnPage(lanes=sorted(kept), rows=rows, reached=after)
        await asyncio.sleep(0)


async def own_matches(lanes: Lanes, tenant: str, id: str) -> OwnMatches:
    """Look an id up in this worker's running lanes."""
    tables = lanes.tables()
    entries = ((topic, table.get(tenant, id)) for (topic, _), table in tables.items())
    return OwnMatches(
        lanes=sorted(tables), found=[detail(entry, topic) for topic, entry in entries if entry is not None]
    )
