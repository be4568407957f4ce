"""What counts of schedules ahead may take of a worker: a count reads each group and each cell of the counts of tables,
of which a range can have millions."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.tables.views import QueryError

from .sliced_turns import SlicedTurns
from .slices import SHORT_REST, LoopTime
from .turns import Turns

REQUEST_TIME_S = 0.5
"""Processor time for a worker's share of a count. With rests it is done in 2 s, unless others keep the loop busy."""

WHOLE_COUNTS = 4
"""Counts of the whole cluster that a worker puts together at a time: it has the shares of all workers meanwhile."""

WHOLE_COUNTS_WAITING = 16
"""Counts that wait for one of those to end."""

OWN_COUNTS_WAITING = 32
"""Counts of this worker's own tables that wait for their turn, or between two slices."""

WHOLE_PATIENCE_S = 1.0
OWN_PATIENCE_S = 0.7
"""How long they wait, each of them, in all. A worker that asks for a share waits for
`cluster_answers.TOTAL_TIMEOUT_S`, for reading too, which others' slices in between make longer."""


class CountTurns(NamedTuple):
    """Two queues: were a count to keep its turn at the tables while it waits for other workers, they could wait for
    each other."""

    whole: Turns
    own: SlicedTurns


def count_turns() -> CountTurns:
    """Return a worker's queues."""
    return CountTurns(
        Turns("counts", at_work=WHOLE_COUNTS, waiting=WHOLE_COUNTS_WAITING, patience_s=WHOLE_PATIENCE_S),
        SlicedTurns("counts", waiting=OWN_COUNTS_WAITING, patience_s=OWN_PATIENCE_S),
    )


def count_time() -> LoopTime:
    """Return the time of the lanes' loop that one share may take."""
    return LoopTime(REQUEST_TIME_S, SHORT_REST)


def too_much() -> QueryError:
    """Return the refusal of a count that takes a worker longer."""
    return QueryError(
        "due_to",
        f"more is due until then than a worker counts for one answer ({REQUEST_TIME_S} s): ask for a shorter range "
        "with due_from and due_to",
    )
