"""What requests may take of a worker at a time. A tenant may have half of it, and less while others ask (`shares`)."""

from __future__ import annotations

from typing import NamedTuple

from .command_channel import MOST_WAITING
from .large_bodies import LargeBodies
from .sliced_turns import SlicedTurns
from .turns import Turns

LISTS = 16
"""Lists of the whole cluster that this worker puts together at a time."""

LISTS_WAITING = 32
"""Lists that wait for one of those to end."""

WORK_WAITING = 64
"""Reads of this worker's own tables, previews and dry runs that wait for their turn, or between two slices."""

SEARCHES = 4
SEARCHES_WAITING = 16
"""Searches in topics, such as for the history of an id, at a time; and those that wait for one of them to end."""

BATCHES = 8
BATCHES_WAITING = 16
"""Batches that are carried out at a time; and those that wait for one of them to end."""

BODIES_WAITING = MOST_WAITING
"""Large bodies that wait to be read: there is one at a time. As many wait as commands do for their answers; what they
take of memory is bounded by `bodies.MOST_BYTES`."""

REDRIVES_WAITING = 16
"""Dead letters that wait to be sent again: there is one at a time."""

BODIES_PATIENCE_S = 5.0
PATIENCE_S = 2.0
WORK_PATIENCE_S = 1.7
"""How long they wait, in all. Other workers wait for `cluster_answers.TOTAL_TIMEOUT_S`, for reading too, which others'
slices in between make longer."""


class RequestTurns(NamedTuple):
    """`lists` of the whole cluster and `work` on this worker's own tables are two queues: were a list to keep its turn
    at the tables while it waits for other workers, they could wait for each other."""

    lists: Turns
    work: SlicedTurns
    searches: Turns
    batches: Turns
    redrives: Turns
    bodies: LargeBodies


def request_turns() -> RequestTurns:
    """Return a worker's queues."""
    return RequestTurns(
        Turns("lists", at_work=LISTS, waiting=LISTS_WAITING, patience_s=PATIENCE_S),
        SlicedTurns("lists, previews and dry runs", waiting=WORK_WAITING, patience_s=WORK_PATIENCE_S),
        Turns("searches", at_work=SEARCHES, waiting=SEARCHES_WAITING, patience_s=PATIENCE_S),
        Turns("batches", at_work=BATCHES, waiting=BATCHES_WAITING, patience_s=PATIENCE_S),
        Turns("redrives", at_work=1, waiting=REDRIVES_WAITING, patience_s=PATIENCE_S),
        LargeBodies(Turns("large bodies", at_work=1, waiting=BODIES_WAITING, patience_s=BODIES_PATIENCE_S)),
    )
