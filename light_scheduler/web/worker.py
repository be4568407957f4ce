"""The worker that the handlers belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from light_scheduler.clock import Clock
from light_scheduler.doctor.check import Check
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.processes import Process
from light_scheduler.settings import Settings
from light_scheduler.tenants import TenantStore

from .interfaces import Access, Delays, Lanes, Peers
from .kafka_topics import KafkaTopics

Examine = Callable[[Mapping[str, Any]], Iterable[Check]]
"""Returns the results of `doctor`'s checks, running each check on demand, given this worker's `/info`. Blocks."""


@dataclass(frozen=True)
class Worker:
    """The handlers' view of their worker. `process` is None if it is the only one of its node. `exchange` is None if
    its lanes lend only to lanes that share a log with them."""

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
