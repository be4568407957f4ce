"""Terms of an audit: what holds for every schedule."""

from __future__ import annotations

from dataclasses import dataclass, field

from light_scheduler.engine import FiringRules

from .forwarding import NOWHERE, Forwarding
from .stops import TenantStops
from .verdict import Bounds, Horizon


@dataclass(frozen=True)
class Terms:
    """Terms for judging every schedule. If it `continues`, findings include the rest of each for the next audit.

    Unless `replays_all`, schedules that `clearing` clears are not replayed. `stops` is when tenants were stopped.
    """

    rules: FiringRules
    bounds: Bounds
    horizon: Horizon
    commands_topic: str
    whole_since: int
    continues: bool = False
    replays_all: bool = False
    stops: TenantStops = field(default_factory=TenantStops)
    forwarding: Forwarding = NOWHERE
