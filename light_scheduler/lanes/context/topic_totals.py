"""Totals of a worker per commands topic, including the lanes that it no longer has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from light_scheduler.model import Outcome
from light_scheduler.model.lateness import Lateness


@dataclass
class TopicTotals:
    """Counters of all lanes of a commands topic since the worker started.

    A lane counts here when it commits, even if it is about to leave, so no count ever goes down and nothing is counted
    twice.
    """

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    lateness: Lateness = field(default_factory=Lateness)
    restarts: int = 0
