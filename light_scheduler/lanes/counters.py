"""Counters of a lane since this worker took over its partition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from light_scheduler.model import EventType, Outcome
from light_scheduler.model.lateness import Lateness

from .context.topic_totals import TopicTotals
from .cycle.cycle import Cycle


@dataclass
class LaneCounters:
    """Counters for `/info` and `/metrics`. `topic` has the sums over all lanes that the worker has or had."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    events: Counter[EventType] = field(default_factory=Counter)
    lateness: Lateness = field(default_factory=Lateness)
    transactions: int = 0
    restarts: int = 0
    staged: int = 0
    unstaged: int = 0
    lost_results: int = 0
    throttled: int = 0
    over_quota: int = 0
    delayed: int = 0
    waiting: int = 0
    forwarded: int = 0
    unsent: int = 0
    dropped: int = 0
    relayed: int = 0
    moved: int = 0
    adopted: int = 0
    unreported: int = 0
    topic: TopicTotals = field(default_factory=TopicTotals)

    def committed(self, cycle: Cycle, lost_results: int, throttled: int, visible_at: int) -> None:
        """Count a cycle whose records became visible at an instant (UTC epoch ms)."""
        self.transactions += 1
        self.lost_results += lost_results
        self.throttled += throttled
        self.over_quota += cycle.transaction.over_quota
        self.delayed += cycle.transaction.delayed
        self.waiting = cycle.delaying.waiting
        self.forwarded += cycle.forwarded
        self.unsent = cycle.waiting.waiting
        self.dropped += len(cycle.stranded.dropped)
        relayed, moved, adopted = cycle.moves
        self.relayed += relayed
        self.moved += moved
        self.adopted += adopted
        self.unreported += len(cycle.transaction.unreported)
        self.outcomes.update(cycle.outcomes)
        self.events.update(cycle.events)
        self.topic.outcomes.update(cycle.outcomes)
        for dues in cycle.firings.values():
            for due, firings in dues.items():
                late = max(0, visible_at - due)
                self.lateness.observe(late, firings)
                self.topic.lateness.observe(late, firings)

    def restarted(self) -> None:
        """Count a restart of the lane after a failure."""
        self.restarts += 1
        self.topic.restarts += 1
