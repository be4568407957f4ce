"""Terms of an audit: what holds for every schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from light_scheduler.engine import FiringRules

from .bounds import Bounds, Horizon
from .commands_topics import CommandsTopics
from .forwarding import NOWHERE, Forwarding
from .stops import TenantStops


@dataclass(frozen=True)
class Terms:
    """Terms for judging every schedule. If it `continues`, findings include the rest of each for the next audit.

    Unless `replays_all`, schedules that `clearing` clears are not replayed. `stops` is when tenants were stopped.
    """

    rules: FiringRules
    bounds: Bounds
    horizon: Horizon
    topics: CommandsTopics
    continues: bool = False
    replays_all: bool = False
    stops: TenantStops = field(default_factory=TenantStops)
    forwarding: Forwarding = NOWHERE
