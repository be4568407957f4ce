"""The worker that the handlers run in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from light_scheduler.clock import Clock
from light_scheduler.kafka.atomic_writer import NewRecord
from light_scheduler.model.place import Place
from light_scheduler.processes import Process
from light_scheduler.settings import Settings
from light_scheduler.tenants import TenantStore

from .cluster import Access, Delays, Lanes, Peers
from .command_channel import Commands
from .looking_back import OpenLog

WriteTogether = Callable[[Sequence[NewRecord]], Awaitable[list[tuple[Place, int]]]]
"""Writes records in one transaction; raises BrokerError, InvalidCommand."""


@dataclass(frozen=True)
class Worker:
    """All that the handlers know of the worker they run in. `process` is None if it is the only one of its node."""

    lanes: Lanes
    delays: Delays
    commands: Commands
    peers: Peers
    settings: Settings
    clock: Clock
    access: Access
    tenants: TenantStore
    logs: OpenLog
    write_together: WriteTogether
    process: Process | None = None

    @property
    def topics(self) -> frozenset[str]:
        """The commands topics."""
        return frozenset(source.name for source in self.settings.inputs)
