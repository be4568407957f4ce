"""The tenants' rules in a worker: follows the topic, and tells the lanes of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiokafka.errors import KafkaError
from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.errors import SchedulerError
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.model.tenant_rules import TenantBook

from .store import TenantStore

RETRY_S = 1.0

log = logging.getLogger(__name__)


class TenantService(Service):
    """Runs beside the lanes, on the same event loop. `changed` are called after each change of the book."""

    def __init__(self, connection: Address, topic: str, clock: Clock, **options: Any) -> None:
        super().__init__(**options)
        self.store = TenantStore(CompactedTopic(connection, topic), clock)
        self.changed: list[Callable[[], None]] = []
        self._loaded = asyncio.Event()
        self._told = self.book
        self._following: asyncio.Future[Any] | None = None

    @property
    def book(self) -> TenantBook:
        """The rules of all tenants."""
        return self.store.book

    async def loaded(self) -> None:
        """Return when the rules have been read once. While Kafka is away after that, the last ones hold."""
        await self._loaded.wait()

    async def on_start(self) -> None:
        self._following = self.add_future(self._follow())

    async def on_stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    async def _follow(self) -> None:
        while not self.should_stop:
            try:
                await self.store.follow(self._tell)
            except (SchedulerError, KafkaError, OSError) as error:
                log.warning("following the tenants: %r; trying again", error)
                await self.sleep(RETRY_S)

    def _tell(self) -> None:
        self._loaded.set()
        if self._told is not self.book:
            self._told = self.book
            for listener in self.changed:
                listener()
