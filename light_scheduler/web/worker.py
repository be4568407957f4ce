"""The worker that the handlers run in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from light_scheduler.clock import Clock
from light_scheduler.doctor.check import Check
from light_scheduler.lanes.rate_exchange import RateExchange
from light_scheduler.processes import Process
from light_scheduler.settings import Settings
from light_scheduler.tenants import TenantStore

from .cluster import Access, Delays, Lanes, Peers
from .kafka_topics import KafkaTopics

Examine = Callable[[Mapping[str, Any]], Iterable[Check]]
"""Gives what the checks of `doctor` find, each when it is asked for, given what this worker says of itself at `/info`.
Blocks."""


@dataclass(frozen=True)
class Worker:
    """All that the handlers know of the worker they run in. `process` is None if it is the only one of its node,
    `exchange` if its lanes lend to none that they share no log with."""

    lanes: Lanes
    delays: Delays
    peers: Peers
    kafka: KafkaTopics
    settings: Settings
    clock: Clock
    access: Access
    tenants: TenantStore
    examine: Examine
    process: Process | None = None
    exchange: RateExchange | None = None

    @property
    def topics(self) -> frozenset[str]:
        """The commands topics."""
        return frozenset(source.name for source in self.settings.inputs)
