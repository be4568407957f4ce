"""Reads everything that an answer needs from this worker's lanes, slice by slice, within the limits of one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from light_scheduler.tables.views import Lane, QueryError, ReadableTable
from light_scheduler.web.interfaces import Tables
from light_scheduler.web.limits.slices import LoopTime

from .own_answers import REQUEST_BUDGET, REQUEST_TIME_S, SLICE_BUDGET

MOST_BYTES = 32 << 20
"""Bytes of JSON rows that a worker keeps for one answer."""


class Reader(Protocol):
    """Reads one lane's table and keeps some of its rows. `size` is their bytes."""

    @property
    def size(self) -> int: ...

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to read."""
        ...

    def read(self, table: ReadableTable, time: LoopTime, budget: int) -> int:
        """Read a slice: at most `budget`, or one row. Return how much of the budget it used."""
        ...


R = TypeVar("R", bound=Reader)


async def read_lanes(lanes: Tables, topics: frozenset[str], reader_of: Callable[[Lane], R]) -> list[R] | None:
    """Return the finished reader of each running lane of some topics. None: reading or keeping the rows exceeds the
    limits of one request. Skips lanes that stop meanwhile."""
    done: list[R] = []
    spent = size = 0
    is_spent = False
    async with LoopTime(REQUEST_TIME_S) as time:
        for lane in sorted(own_lanes(lanes, topics)):
            reader = reader_of(lane)
            while (table := lanes.tables().get(lane)) is not None:
                taken = reader.read(table, time, max(1, min(SLICE_BUDGET, REQUEST_BUDGET - spent)))
                is_beyond = is_spent and taken > 0
                spent += taken
                is_spent = spent >= REQUEST_BUDGET or time.is_used_up()
                if is_beyond or size + reader.size > MOST_BYTES or (is_spent and not reader.is_done):
                    return None
                if time.slice_is_over():
                    await time.rest()
                if reader.is_done:
                    done.append(reader)
                    break
            size += reader.size
    return done


def own_lanes(lanes: Tables, topics: frozenset[str]) -> Mapping[Lane, ReadableTable]:
    """Return the tables of this worker's running lanes of some topics."""
    return {lane: table for lane, table in lanes.tables().items() if lane[0] in topics}


def too_much(parameter: str, rows: str, advice: str) -> QueryError:
    """Return the error for a request that needs more rows than one answer may hold."""
    return QueryError(
        parameter,
        f"more than a worker reads for one answer ({REQUEST_BUDGET} {rows}, {REQUEST_TIME_S} s) or sends "
        f"({MOST_BYTES >> 20} MiB): {advice}",
    )
