"""The transactional producer of lanes, delays, relays and files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.structs import OffsetAndMetadata

from light_scheduler.errors import CycleTimeout, LaneError, TransactionStuck
from light_scheduler.model.place import Place

from .batches import RecordBatches
from .clients import LaneClients
from .continuity import Continuity
from .refusals import TargetsStalledError

FENCE_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 2.0
PATIENCE_S = 2.0
"""How long partitions of users' topics, and those that commands are forwarded to, may take to answer before they count
as unavailable."""
ADDED_POLL_S = 0.005
MOST_TRACKED = 20_000
"""Maximum number of topics whose leaders a client tracks, about 800 bytes each. Senders of commands choose the names.

A lane rarely uses this many topics in turn. For each added topic, the client requests the metadata of all of them.
"""

Check = Callable[[], Coroutine[Any, Any, None]]
"""Raises an error if a transaction may not be committed."""

log = logging.getLogger(__name__)


class TransactionalProducer:
    """Runs transactions of one transactional id, one at a time. Checks `continuity`, if set, before each commit."""

    def __init__(self, clients: LaneClients, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.continuity: Continuity | None = None
        self._in_transaction = self._must_commit = False
        self._rests = asyncio.Event()
        self._rests.set()
        self._tracked: dict[str, None] = {}  # the most recently used topic is last
        self._deadline_s = 0.8 * clients.transaction_timeout_ms / 1_000
        self._kafka = clients.producer(transactional_id)

    @property
    def is_committing(self) -> bool:
        """Whether a commit was requested but not answered, so that it may be committed."""
        return not self._rests.is_set()

    async def rests(self) -> None:
        """Wait until a running commit is answered or given up. By then, its owner has processed the answer."""
        await self._rests.wait()

    async def fence(self) -> None:
        """Become the owner of the transactional id. This aborts older owners' transactions; their next calls fail."""
        try:
            async with asyncio.timeout(FENCE_TIMEOUT_S):
                await self._kafka.start()
        except TimeoutError as error:
            raise LaneError(f"no answer to InitProducerId for {self.transactional_id}") from error

    async def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic known to the client. Raises KafkaError."""
        return len(await self._kafka.partitions_for(topic))

    async def commit(
        self,
        batches: RecordBatches,
        group: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        patience_s: float = PATIENCE_S,
        checks: Iterable[Check] = (),
        last_checks: Iterable[Check] = (),
    ) -> dict[tuple[str, int], int]:
        """Send batches and input offsets as one transaction. Return the end offsets from `RecordBatches.send`.

        Raises CycleTimeout if it does not finish within 80 % of the transaction timeout: the broker may abort it soon
        after, and idempotent batches would be retried forever. Raises TargetsStalledError if users' partitions do not
        answer for `patience_s`, TransactionStuck if the cause is a stuck transactional id, and Overtaken as
        `continuity`. `checks` run during sending, `last_checks` when all is sent; if one raises, nothing is committed.
        """
        async with self._transaction(batches.places):
            async with _beside(checks) as checked:
                ends = await self._send(batches, patience_s)  # 3. every send future
                await checked()
            for check in last_checks:
                await check()
            if offsets:
                await self._kafka.send_offsets_to_transaction(offsets, group)  # 3. then the input offsets
            await self._commit()  # 3. then the commit
        return ends

    async def commit_when(
        self, batches: RecordBatches, may_commit: Callable[[], Awaitable[bool]]
    ) -> dict[tuple[str, int], int] | None:
        """Send batches, then await `may_commit`. If it returns False, abort and return None. Raises as `commit`."""
        async with self._transaction(batches.places):
            ends = await self._send(batches, PATIENCE_S)
            if not await may_commit():
                await self._kafka.abort_transaction()
                if self.continuity is not None:
                    self.continuity.aborted()
                return None
            await self._commit()
        return ends

    async def settle(self, places: Iterable[Place], *, commits: bool) -> None:
        """End transactions that this id may have left open in partitions, with a transaction that only writes markers.

        Brokers of Kafka 4.3 do not write a transaction's marker to a partition without a leader (KAFKA-20734). Readers
        would be blocked there, and the next transaction would decide for both.

        Raises TopicAuthorizationFailedError if a topic may not be written to; then nothing has changed, and the
        producer can still be used. After any other error, discard the producer: CycleTimeout if it takes longer than
        `PATIENCE_S`, or the producer's error.
        """
        wanted = {TopicPartition(*place) for place in places}
        try:
            async with self._transaction(wanted, PATIENCE_S):
                self._must_commit = commits
                await self._add(wanted)
                await (self._kafka.commit_transaction() if commits else self._kafka.abort_transaction())
                self._must_commit = False
        except TopicAuthorizationFailedError:  # the coordinator has added none of the topics
            await self._kafka.abort_transaction()
            self._in_transaction = self._must_commit = False
            raise

    async def _commit(self) -> None:
        """Commit. Nothing may be awaited between the answer and its processing by the owner.

        `rests` relies on that. Also, a deadline that expired in between would report a committed transaction as failed.
        """
        self._rests.clear()
        await self._kafka.commit_transaction()
        self._rests.set()

    async def _add(self, places: set[TopicPartition]) -> None:
        """Add partitions to the transaction at the coordinator. Raises the producer's error."""
        manager = self._kafka._txn_manager
        failed = manager.wait_for_transaction_end()
        for place in places:
            manager.maybe_add_partition_to_txn(place)
        while not places <= manager.txn_partitions:
            if failed.done():
                await failed
            await asyncio.sleep(ADDED_POLL_S)

    async def discard(self) -> None:
        """Abort an open transaction if possible, and close the producer, whatever its state.

        An open transaction blocks readers of its partitions until the next `fence` or the transaction timeout. A
        `settle` that should commit is committed: an abort would undo an earlier commit. A transaction that the
        coordinator does not know yet is not aborted: the abort would hide how the previous one ended.
        """
        if self._in_transaction and self._must_commit:
            await self._try(self._kafka.commit_transaction())
        elif self._in_transaction and self._kafka._txn_manager.txn_partitions:
            await self._try(self._kafka.abort_transaction())
        await self.abandon()

    async def abandon(self) -> None:
        """Close the producer without an abort, which the next `fence` does. It sends nothing more."""
        self._rests.set()
        await self._try(self._kafka.cut_off())

    async def _send(self, batches: RecordBatches, patience_s: float) -> dict[tuple[str, int], int]:
        try:
            ends = await batches.send(self._kafka, patience_s, self._is_blocked, self._kafka.is_throttled)
        except TargetsStalledError as error:
            if self._is_blocked():
                reason = f"the last transaction of {self.transactional_id} has not ended, so it begins none: {error}"
                raise TransactionStuck(reason) from error
            raise
        if self.continuity is not None:
            await self.continuity.check(batches)
        return ends

    def _is_blocked(self) -> bool:
        """Return whether the coordinator has not accepted the transaction's partitions yet."""
        return bool(self._kafka._txn_manager.partitions_to_add())

    @asynccontextmanager
    async def _transaction(self, places: Collection[Place], deadline_s: float | None = None) -> AsyncIterator[None]:
        """Begin a transaction, which the body must end before the deadline. Raises CycleTimeout."""
        deadline_s = deadline_s or self._deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                await self._track(places)
                await self._kafka.begin_transaction()
                self._in_transaction = True
                yield
                self._in_transaction = False
        except TimeoutError as error:
            raise CycleTimeout(f"a transaction of {self.transactional_id} took over {deadline_s:.1f} s") from error

    async def _track(self, places: Collection[Place]) -> None:
        """Make the client track the leaders of these places.

        Until it is given a topic, a client tracks all topics. With more than `MOST_TRACKED`, it keeps the half that was
        used last. If a topic has more partitions than the client knows, its metadata are requested again.
        """
        topics, client = {topic for topic, _ in places}, self._kafka.client
        new = topics - self._tracked.keys()
        for topic in topics:
            self._tracked.pop(topic, None)
        if len(self._tracked) + len(topics) > MOST_TRACKED:
            self._tracked = dict.fromkeys([*self._tracked][-(MOST_TRACKED // 2) :])
            await client.set_topics({*self._tracked, *topics})
        elif new:
            await asyncio.gather(*(client.add_topic(topic) for topic in new))
        self._tracked |= dict.fromkeys(topics)
        known = {topic: client.cluster.partitions_for_topic(topic) for topic in topics}
        if any(known[topic] and partition not in known[topic] for topic, partition in places):
            await client.force_metadata_update()

    async def _try(self, step: Awaitable[None]) -> bool:
        try:
            async with asyncio.timeout(STOP_TIMEOUT_S):
                await step
        except Exception as error:  # noqa: BLE001 - the producer is being discarded, so errors do not matter
            log.debug("while letting go of producer %s: %r", self.transactional_id, error)
            return False
        return True


@asynccontextmanager
async def _beside(checks: Iterable[Check]) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Run checks in the background. Yields a function that waits for them and raises their errors."""
    tasks = [asyncio.create_task(check()) for check in checks]

    async def checked() -> None:
        for task in tasks:
            await task

    try:
        yield checked
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
