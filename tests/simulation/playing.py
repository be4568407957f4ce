"""Playing histories, and making them smaller if they fail."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from unittest.mock import patch

from light_scheduler.lanes import cycles as cycles_module
from light_scheduler.lanes.cycle.budget import Budget
from light_scheduler.lanes.growing import handover
from light_scheduler.lanes.lane import Lane
from light_scheduler.tables import counts as counts_module
from light_scheduler.tables import standby as standby_module

from . import loop as simulated
from .history import History, Verdict
from .log import Transaction
from .world import World

Mutation = Callable[[], AbstractContextManager[type[Lane]]]
"""Plants a bug for as long as its context lasts; the lanes are then of this type."""


def unchanged() -> AbstractContextManager[type[Lane]]:
    """Plant nothing."""
    return nullcontext(Lane)


def play(history: History, mutation: Mutation = unchanged, trace: Callable[[str], None] | None = None) -> Verdict:
    """Play a history, with a bug planted or without."""
    return played(history, mutation, trace)[0]


def played(
    history: History, mutation: Mutation = unchanged, trace: Callable[[str], None] | None = None
) -> tuple[Verdict, list[Transaction]]:
    """Do as `play`; return also what was committed."""

    async def main(lane_type: type[Lane]) -> tuple[Verdict, list[Transaction]]:
        world = World(history, lane_type)
        world.trace = trace
        return await world.play(), world.kafka.commits

    most = Budget.most
    logging.disable(logging.CRITICAL)
    try:
        with (
            patch.object(cycles_module, "MAX_BULK", 1),
            patch.multiple(handover, MOST_SEEN=2, MOST_MOVED=1),
            patch.object(counts_module, "FANOUT", 3),
            patch.multiple(standby_module, CHECKPOINT_MS=5_000, POLL_MS=1_000),
            patch.object(cycles_module, "CHECKPOINT_MS", 15_000),
            patch.object(Budget, "most", lambda budget, table: min(history.most, most(budget, table))),
            mutation() as lane_type,
        ):
            return simulated.run(main(lane_type))
    finally:
        logging.disable(logging.NOTSET)


def shrunk(history: History, mutation: Mutation = unchanged) -> History:
    """Leave out of a failing history what it fails without."""
    smaller = next((h for h in _smaller(history) if play(h, mutation).violation is not None), None)
    return history if smaller is None else shrunk(smaller, mutation)


def _smaller(history: History) -> Iterator[History]:
    for number in range(len(history.faults)):
        yield replace(history, faults=history.faults[:number] + history.faults[number + 1 :])
    for number in range(len(history.sends)):
        yield replace(history, sends=history.sends[:number] + history.sends[number + 1 :])
    if history.trouble is not None:
        yield replace(history, trouble=None)
    if history.away is not None:
        yield replace(history, away=None)
    for number in range(len(history.changes)):
        yield replace(history, changes=history.changes[:number] + history.changes[number + 1 :])
    if history.late_markers:
        yield replace(history, late_markers=0.0)
    if history.dropped_markers:
        yield replace(history, dropped_markers=0.0)
    for number in range(len(history.compactions)):
        yield replace(history, compactions=history.compactions[:number] + history.compactions[number + 1 :])
