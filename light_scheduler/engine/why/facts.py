"""Facts about a schedule besides its history. Instants are UTC epoch ms, durations ms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from light_scheduler.engine.firing_rules import FiringRules
from light_scheduler.model import Entry
from light_scheduler.model.tenant_rules import Tenant


class Outage(msgspec.Struct, frozen=True):
    """An unavailable target topic. Without `partitions`, the whole topic is unavailable."""

    topic: str
    partitions: list[int]
    since: int
    reason: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A pending schedule, from the worker that owns its partition. Workers send it to each other.

    `entry` has no payload and headers. `clock_skew` is how far the worker's clock is ahead of the broker's.
    """

    entry: Entry
    topic: str
    partition: int
    outage: Outage | None
    clock_skew: int | None


class Stopped(msgspec.Struct, frozen=True):
    """A partition whose schedules are currently unknown, and the reason."""

    topic: str
    partition: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Facts:
    """All facts at the time of the request.

    The history was searched back to `searched_from`. `rate` is the lowest applicable cap of firings per second. `rules`
    are the workers' settings.
    """

    now: int
    searched_from: int
    standing: Standing | None = None
    stopped: Sequence[Stopped] = ()
    tenant: Tenant | None = None
    rate: float | None = None
    rules: FiringRules = field(default_factory=FiringRules)
