"""Probes whether a target partition can be written to, with a transaction that writes no record."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

from light_scheduler.model.place import Place

from .coordinator import Coordinator

SLOTS = 16
"""Maximum number of concurrent probes. Each needs a transactional id."""

Probe = Callable[[Place], Awaitable[None]]
"""Returns when a partition has accepted a marker. Raises KafkaError or LaneError."""


class Prober:
    """Probes partitions with transactions that add a partition and are aborted.

    The marker is written like a record: by the leader, acknowledged by all in-sync replicas. It is known to be written
    only when the transactional id can begin its next transaction.
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
            self._free.append(transactional_id)  # after a failure, the id is stuck and not used again
