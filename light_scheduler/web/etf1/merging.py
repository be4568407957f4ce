"""Merges the shares of all workers into one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from light_scheduler.web.cluster.answers import Whole
from light_scheduler.web.cluster.bounded import MOST_BYTES

from .own_answers import OwnSearch, too_much
from .search import Row, Search


class Merged(NamedTuple):
    """How many schedules are pending, how many match, and the first matches in the order of the search."""

    pending: int
    found: int
    rows: list[Row]


def merged(whole: Whole[OwnSearch], search: Search) -> Merged:
    """Return the matches of all lanes. Raises QueryError if a worker could not read everything, or the answer is too
    large."""
    if any(share.is_refused for share in whole.shares.values()):
        raise too_much()
    matches = [
        each for url, share in whole.shares.items() for each in share.matches if whole.claims.get(each.lane) == url
    ]
    rows = search.order.first([row for each in matches for row in each.rows], search.most)
    if sum(len(row.encoded) for row in rows) > MOST_BYTES:
        raise too_much()
    return Merged(sum(each.pending for each in matches), sum(each.found for each in matches), rows)


def search_result(scheduler: str, found: int, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a `SearchResult` whose schedules are JSON already."""
    return {"found": found, "schedules": with_name(scheduler, rows)}


def with_name(scheduler: str, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a list of `Found` whose schedules are JSON already."""
    return [{"scheduler": scheduler, "schedule": msgspec.Raw(row.encoded)} for row in rows]
