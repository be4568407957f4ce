"""Step 3: what is sent in a transaction, and when that is committed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

from aiokafka.errors import KafkaError

from light_scheduler.errors import SchedulerError
from light_scheduler.kafka import batches as batches_module
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes.staged_commit import StagedCommit
from light_scheduler.lanes.writes.transaction import Transaction

from .planting import mutant, replaced
from .unused import UNUSED, unused_records_are_skipped


@mutant(3, "What a partition has counted is reported in a transaction before that of the state.")
def _counts_before_their_state() -> Iterator[Any]:
    commit = TransactionalProducer.commit

    async def twice(
        self: TransactionalProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any
    ) -> Any:
        counts = RecordBatches(batches.timestamp)
        for target in [target for target in batches._open if target[0] == "app-commands" and not offsets]:
            counts._open[target] = batches._open.pop(target)
        if counts._open:
            counts.add(next(target for target in batches._open if target[0].endswith("changelog")), *UNUSED)
            await commit(self, counts, group, {})
        return await commit(self, batches, group, offsets, **checks)

    with replaced(TransactionalProducer, "commit", twice), unused_records_are_skipped():
        yield None


@mutant(3, "The answer to one batch of each transaction is not awaited.")
def _one_future_is_skipped() -> Iterator[Any]:
    async def all_but_the_last(producer: Any, sending: Any, batches: Any, written: Any) -> Any:
        topic, partition = sending.target
        if topic != "targets":
            return await send_in_order(producer, sending, batches, written)
        for builder, _ in batches:
            future = await producer.send_batch(builder, topic, partition=partition)
            future.exception()
        return batches_module._Taken(0, 0, None)

    send_in_order = batches_module._send_in_order
    with replaced(batches_module, "_send_in_order", all_but_the_last):
        yield None


@mutant(3, "The state does not say how far commands have been read.")
def _no_position_in_the_state() -> Iterator[Any]:
    def forgotten(self: Transaction, position: int) -> None:
        self.batches.add(self._changelog, b"\x00", b"\x01" + bytes(8))

    with replaced(Transaction, "moved_to", forgotten):
        yield None


@mutant(3, "The input offsets are left out of the transaction.")
def _commit_without_offsets() -> Iterator[Any]:
    commit = TransactionalProducer.commit

    async def without(
        self: TransactionalProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any
    ) -> Any:
        return await commit(self, batches, group, {}, **checks)

    with replaced(TransactionalProducer, "commit", without):
        yield None


@mutant(3, "A commit that failed is taken for done.")
def _failed_commit_is_done() -> Iterator[Any]:
    commit = TransactionalProducer.commit

    async def shrug(
        self: TransactionalProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any
    ) -> Any:
        try:
            return await commit(self, batches, group, offsets, **checks)
        except (KafkaError, SchedulerError):
            return {("app-schedules-changelog", partition): 1 << 40 for partition in range(2)}

    with replaced(TransactionalProducer, "commit", shrug):
        yield None


@mutant(3, "Firings, with their history, are delivered in a transaction before that of the state.")
def _firings_before_their_state() -> Iterator[Any]:
    commit = TransactionalProducer.commit

    async def twice(
        self: TransactionalProducer, batches: RecordBatches, group: str, offsets: Any, **checks: Any
    ) -> Any:
        firings = RecordBatches(batches.timestamp)
        for target in [target for target in batches._open if target[0] in ("targets", "app-history")]:
            firings._open[target] = batches._open.pop(target)
        if firings._open:
            firings.add(next(target for target in batches._open if target[0].endswith("changelog")), *UNUSED)
            await commit(self, firings, group, {})
        return await commit(self, batches, group, offsets, **checks)

    with replaced(TransactionalProducer, "commit", twice), unused_records_are_skipped():
        yield None


@mutant(3, "What was prepared ahead of its time is committed at once.")
def _staged_is_committed_early() -> Iterator[Any]:
    async def at_once(self: StagedCommit, instant: int, staged: Any) -> bool:
        await asyncio.sleep(0)
        return True

    with replaced(StagedCommit, "may_commit", at_once):
        yield None


@mutant(3, "What was prepared ahead of its time is dropped for a command, but not aborted.")
def _dropped_but_not_aborted() -> Iterator[Any]:
    async def kept(self: TransactionalProducer, batches: RecordBatches, may_commit: Any) -> Any:
        async with self._transaction(batches.places):
            ends = await batches.send(self._kafka)
            wanted = await may_commit()
            await self._kafka.commit_transaction()
        return ends if wanted else None

    with replaced(TransactionalProducer, "commit_when", kept):
        yield None
