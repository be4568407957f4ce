"""Probing whether a target partition can be written to, with a transaction that writes no record."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

from light_scheduler.model.place import Place

from .coordinator import Coordinator

SLOTS = 16
"""Probes at a time; each has a transactional id."""

Probe = Callable[[Place], Awaitable[None]]
"""Returns when a partition has taken a marker; raises KafkaError or LaneError."""


class Prober:
    """Probes partitions by transactions that add a partition and are aborted.

    The marker of that is written as records are: by the leader, acknowledged by all in-sync replicas. It is when the
    transactional id begins its next transaction, not before, that it has been.
    """

    def __init__(self, prefix: str, coordinator: Coordinator) -> None:
        self._prefix = f"{prefix}-probe"
        self._free: list[str] = []
        self._slots = asyncio.Semaphore(SLOTS)
        self._coordinator = coordinator

    async def __call__(self, place: Place) -> None:
        async with self._slots:
            transactional_id = self._free.pop() if self._free else f"{self._prefix}-{uuid.uuid4().hex[:8]}"
            await self._coordinator.mark(transactional_id, place)
            self._free.append(transactional_id)  # one that failed is stuck: it is not used again
