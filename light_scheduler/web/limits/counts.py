"""Limits on counts of upcoming schedules: a count reads every group and cell of the tables' counts, and a range can
have millions."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.tables.views import QueryError

from .sliced_turns import SlicedTurns
from .slices import SHORT_REST, LoopTime
from .turns import Turns

REQUEST_TIME_S = 0.5
"""Processor time of a worker's share of a count. With pauses it takes 2 s, unless other work keeps the loop busy."""

WHOLE_COUNTS = 4
"""Number of counts over the whole cluster that a worker merges at a time. Each holds the shares of all workers."""

WHOLE_COUNTS_WAITING = 16
"""Number of counts that wait for one of those to end."""

OWN_COUNTS_WAITING = 32
"""Number of counts over this worker's own tables that wait for their turn or between two slices."""

WHOLE_PATIENCE_S = 1.0
OWN_PATIENCE_S = 0.7
"""How long a count waits in each queue, in total. It must leave time for reading, which slices of other counts prolong,
within the `cluster_answers.TOTAL_TIMEOUT_S` that a worker waits for a share."""


class CountTurns(NamedTuple):
    """Two queues. With only one, counts that wait for each other's workers could deadlock."""

    whole: Turns
    own: SlicedTurns


def count_turns() -> CountTurns:
    """Return a worker's queues."""
    return CountTurns(
        Turns("counts", at_work=WHOLE_COUNTS, waiting=WHOLE_COUNTS_WAITING, patience_s=WHOLE_PATIENCE_S),
        SlicedTurns("counts", waiting=OWN_COUNTS_WAITING, patience_s=OWN_PATIENCE_S),
    )


def count_time() -> LoopTime:
    """Return the budget of the lanes' loop for one share."""
    return LoopTime(REQUEST_TIME_S, SHORT_REST)


def too_much() -> QueryError:
    """Return the error for a count that takes longer than a worker allows."""
    return QueryError(
        "due_to",
        f"more is due until then than a worker counts for one answer ({REQUEST_TIME_S} s): ask for a shorter range "
        "with due_from and due_to",
    )
