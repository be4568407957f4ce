"""The tenants' rules in a worker: follows the topic, and notifies the lanes of changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from mode import Service

from light_scheduler.clock import Clock
from light_scheduler.connection import Address
from light_scheduler.kafka.compacted import CompactedTopic
from light_scheduler.kafka.retrying import repeat
from light_scheduler.model.tenant_rules import TenantBook
from light_scheduler.model.topics import TopicNames

from .store import TenantStore

log = logging.getLogger(__name__)


class TenantService(Service):
    """Runs on the lanes' event loop. Calls the functions in `changed` after each change of the book."""

    def __init__(self, connection: Address, names: TopicNames, clock: Clock, **options: Any) -> None:
        super().__init__(**options)
        self.store = TenantStore(CompactedTopic(connection, names.tenants, names.history), clock)
        self.changed: list[Callable[[], None]] = []
        self._loaded = asyncio.Event()
        self._notified = self.book
        self._following: asyncio.Future[Any] | None = None

    @property
    def book(self) -> TenantBook:
        """The rules of all tenants."""
        return self.store.book

    async def loaded(self) -> None:
        """Wait until the rules were read once. If Kafka is down later, the last known rules apply."""
        await self._loaded.wait()

    async def on_start(self) -> None:
        follow = partial(self.store.follow, self._notify)
        self._following = self.add_future(repeat(follow, "following the tenants", self, log))

    async def on_stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])

    def _notify(self) -> None:
        self._loaded.set()
        if self._notified is not self.book:
            self._notified = self.book
            for listener in self.changed:
                listener()
