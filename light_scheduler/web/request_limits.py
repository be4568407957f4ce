"""How many requests a worker handles at a time. A tenant may have half of them, and less while others ask
(`shares`)."""

from __future__ import annotations

from typing import NamedTuple

from .commands.channel import MOST_WAITING
from .commands.large_bodies import LargeBodies
from .limits.sliced_turns import SlicedTurns
from .limits.turns import Turns

LISTS = 16
"""Number of lists of the whole cluster that this worker merges at a time."""

LISTS_WAITING = 32
"""Number of lists that wait for one of those to end."""

WORK_WAITING = 64
"""Number of reads of this worker's own tables, previews and dry runs that wait for their turn or between two slices."""

SEARCHES = 4
SEARCHES_WAITING = 16
"""Number of searches in topics at a time, such as for the history of an id; and number of waiting ones."""

BATCHES = 8
BATCHES_WAITING = 16
"""Number of batches at a time; and number of waiting ones."""

BODIES_WAITING = MOST_WAITING
"""Number of large bodies that wait to be decoded, one at a time: as many as commands that wait for answers.
`bodies.MOST_BYTES` bounds their memory."""

REDRIVES_WAITING = 16
"""Number of dead letters that wait to be sent again, one at a time."""

BODIES_PATIENCE_S = 5.0
PATIENCE_S = 2.0
WORK_PATIENCE_S = 1.7
"""How long a request waits for its turn, in total. It must leave time for reading, which slices of others prolong,
within the `cluster_answers.TOTAL_TIMEOUT_S` that other workers wait."""


class RequestTurns(NamedTuple):
    """`lists` of the whole cluster and `work` on this worker's own tables are two queues. With only one, lists that
    wait for each other's workers could deadlock."""

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
