"""What a lane remembers from one cycle to the next, besides its state. It begins anew with each lane."""

from __future__ import annotations

from dataclasses import dataclass, field

from light_scheduler.engine import CommandRates, RateDemand

from .overdue_totals import OverdueTotals
from .probe import LaneProbe
from .queue_ends import QueueEnds


@dataclass(frozen=True)
class LaneMemory:
    """The memory of one lane."""

    command_rates: CommandRates = field(default_factory=CommandRates)
    """Rates of the rate-limited commands that this lane has executed."""

    demand: RateDemand = field(default_factory=RateDemand)
    """The rate tokens that this lane needs, and the lanes that it asks for them."""

    queue_ends: QueueEnds = field(default_factory=QueueEnds)
    """Delayed commands that the growth of the topic waits for."""

    overdue_totals: OverdueTotals = field(default_factory=OverdueTotals)
    """How long totals of bulk commands have waited for reports here."""

    probe: LaneProbe = field(default_factory=LaneProbe)
    """The probes of the partition."""
