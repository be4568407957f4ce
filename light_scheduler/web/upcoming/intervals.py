"""Minutes, hours or days ahead: the ones that a request asks for, and a table's counts in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from light_scheduler.model import LATEST_INSTANT
from light_scheduler.tables.counts import Counts
from light_scheduler.tables.views import QueryError
from light_scheduler.web.forms.parameters import optional
from light_scheduler.web.limits.slices import pieces
from light_scheduler.wire.instants import format_instant, parse_instant, parse_lower_bound

from .document import By, IntervalParameters

MINUTE_MS = 60_000
A_DAY = 1_440
MINUTES: Mapping[By, int] = {"minute": 1, "hour": 60, "day": A_DAY}
MOST: Mapping[By, int] = {"minute": A_DAY, "hour": 744, "day": 3_660}
"""Maximum number of minutes, hours or days in one answer: a day, a month, ten years."""

USUAL: Mapping[By, int] = {"minute": 60, "hour": 24, "day": 30}


@dataclass(frozen=True)
class Intervals:
    """Whole minutes, hours or days of a request. `begin` and `end` are minutes since 1970."""

    by: By
    begin: int
    end: int

    @property
    def parameters(self) -> dict[str, str]:
        """The query string for exactly these intervals. If they end after the last instant that can be written, it uses
        that instant.

        Instants are RFC 3339: a number below 100,000,000,000 would be taken for seconds, and refused.
        """
        due_from, due_to = self.begin * MINUTE_MS, min(self.end * MINUTE_MS, LATEST_INSTANT)
        return {"by": self.by, "due_from": format_instant(due_from), "due_to": format_instant(due_to)}


def intervals_asked(parameters: IntervalParameters, now: int) -> Intervals:
    """Return the intervals that a request asks for. Raises QueryError naming the invalid parameter."""
    by = parameters.by
    length = MINUTES[by]
    due_from = optional("due_from", parse_lower_bound, parameters.due_from)
    due_to = optional("due_to", parse_instant, parameters.due_to)
    begin = (now if due_from is None else due_from) // MINUTE_MS // length * length
    end = begin + USUAL[by] * length if due_to is None else -(-due_to // (MINUTE_MS * length)) * length
    end = min(end, (LATEST_INSTANT + 1) // MINUTE_MS)
    if end < begin:
        raise QueryError("due_to", "is before due_from")
    if (end - begin) // length > MOST[by] + 1:  # one that begins within an interval touches one more
        raise QueryError("due_to", f"is more than {MOST[by]} {by}s after due_from: ask for a shorter range")
    return Intervals(by, begin, end)


def cells_in(
    counts: Counts, asked: Intervals, groups: Callable[[], Sequence[int] | None] = lambda: None
) -> Iterator[list[tuple[int, int, int]]]:
    """Yield (group number, first minute of an interval, change) from a table, some at a time. Between two yields the
    table may change: each day is exact as of the moment when its first part is read.

    At these moments, `groups` is called for the sorted numbers of the wanted groups; None: all. The result may contain
    cells of other groups.
    """
    if asked.by == "day":
        yield from _within(asked, counts.rows_by_day(groups()), A_DAY)
        return
    for day in sorted(counts.days(groups())):
        if asked.begin // A_DAY <= day < -(-asked.end // A_DAY):
            yield from _within(asked, counts.rows_by_minute(day, groups()), 1)


def _within(asked: Intervals, rows: Iterator[dict[int, int]], unit: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the cells in the intervals, one row or a piece of it at a time. `unit` is the minutes per cell. There can
    be millions of cells, so this loop calls no functions."""
    begin, end, length = asked.begin, asked.end, MINUTES[asked.by]
    for row in rows:
        for cells in pieces(iter(row.items())):
            yield [
                (cell >> 32, minute // length * length, change)
                for cell, change in cells
                if begin <= (minute := (cell & 0xFFFFFFFF) * unit) < end
            ]
