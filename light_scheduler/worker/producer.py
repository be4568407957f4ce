"""The transactional producer of a lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiokafka import TopicPartition

from light_scheduler.errors import CycleTimeout, LaneError

from .batches import RecordBatches
from .clients import LaneClients

FENCE_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 2.0

log = logging.getLogger(__name__)


class LaneProducer:
    """One transactional id, one transaction at a time."""

    def __init__(self, clients: LaneClients, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self._in_transaction = False
        self._tracked: set[str] = set()
        self._deadline_s = 0.8 * clients.transaction_timeout_ms / 1_000
        self._kafka = clients.producer(transactional_id)

    async def fence(self) -> None:
        """Become the owner of the transactional id: older owners' transactions are aborted, their next calls fail."""
        try:
            async with asyncio.timeout(FENCE_TIMEOUT_S):
                await self._kafka.start()
        except TimeoutError as error:
            raise LaneError(f"no answer to InitProducerId for {self.transactional_id}") from error

    async def commit(
        self, batches: RecordBatches, group: str, offsets: dict[TopicPartition, int]
    ) -> dict[tuple[str, int], int]:
        """Send batches and input offsets as one transaction; return the end offsets that `RecordBatches.send` returns.

        Raises CycleTimeout when it does not finish at 80 % of the transaction time-out: the broker may abort it from
        then on, and idempotent batches would be tried for ever.
        """
        async with self._transaction(batches.topics):
            ends = await batches.send(self._kafka)  # 3. every send future
            if offsets:
                await self._kafka.send_offsets_to_transaction(offsets, group)  # 3. then the input offsets
            await self._kafka.commit_transaction()  # 3. then the commit
        return ends

    async def commit_when(
        self, batches: RecordBatches, may_commit: Callable[[], Awaitable[bool]]
    ) -> dict[tuple[str, int], int] | None:
        """Send batches, then wait for `may_commit`; abort, and return None, if it returns False. Raises as `commit`."""
        async with self._transaction(batches.topics):
            ends = await batches.send(self._kafka)
            if not await may_commit():
                await self._kafka.abort_transaction()
                return None
            await self._kafka.commit_transaction()
        return ends

    @asynccontextmanager
    async def _transaction(self, topics: set[str]) -> AsyncIterator[None]:
        """Begin a transaction; the body ends it, in time."""
        try:
            async with asyncio.timeout(self._deadline_s):
                await self._track(topics)
                await self._kafka.begin_transaction()
                self._in_transaction = True
                yield
                self._in_transaction = False
        except TimeoutError as error:
            raise CycleTimeout(
                f"a transaction of {self.transactional_id} took over {self._deadline_s:.1f} s"
            ) from error

    async def discard(self) -> None:
        """Abort an open transaction if that still works, and let go of the producer, whatever state it is in.

        What is left open holds back readers of its partitions until the next `fence` or the transaction time-out.
        """
        if self._in_transaction:
            await self._try(self._kafka.abort_transaction())
        if not await self._try(self._kafka.stop()):
            await self._try(self._kafka.client.close())

    async def _track(self, topics: set[str]) -> None:
        """Have the client follow the leaders of these topics.

        Until it is told of one topic it follows all there are; then it forgets those that it was never told of.
        """
        new = topics - self._tracked
        if new:
            await asyncio.gather(*(self._kafka.client.add_topic(topic) for topic in new))
            self._tracked |= new

    async def _try(self, step: Awaitable[None]) -> bool:
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await step
        except Exception as error:  # noqa: BLE001 - it is being let go of: nothing of it can matter any more
            log.debug("while letting go of producer %s: %r", self.transactional_id, error)
            return False
        return True
