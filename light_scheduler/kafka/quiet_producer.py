"""aiokafka's producer, without errors that asyncio logs besides: "Future exception was never retrieved".

A producer that is fenced, or fails otherwise, tells so in all of its futures. Who sends awaits those of its batches and
takes the error from there; the end of the transaction, and what waits to be sent, say the same once more to nobody.
"""

from __future__ import annotations

from asyncio import Future
from typing import Any

from aiokafka import AIOKafkaProducer


class QuietProducer(AIOKafkaProducer):  # type: ignore[misc]  # aiokafka is not typed
    """Reads the futures that nobody may await, whenever they fail: also after whoever sent has given up."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        manager, accumulator = self._txn_manager, self._message_accumulator
        add_offsets, fail = manager.add_offsets_to_txn, manager.fatal_error
        append, fail_all = accumulator._append_batch, accumulator.fail_all

        def add_offsets_to_txn(offsets: Any, group: str) -> Future[None]:
            added: Future[None] = add_offsets(offsets, group)
            added.add_done_callback(retrieve)
            return added

        def append_batch(builder: Any, place: Any) -> Any:
            batch = append(builder, place)
            batch.future.add_done_callback(retrieve)  # whoever sends awaits a shield of it
            return batch

        def fatal_error(error: Exception) -> None:
            fail(error)
            retrieve(manager.wait_for_transaction_end())  # one of its own, if the transaction had ended

        def fail_all_batches(error: Exception) -> None:
            queued = [batch for batches in accumulator._batches.values() for batch in batches]
            fail_all(error)
            for batch in queued:
                retrieve(batch._drain_waiter)

        manager.add_offsets_to_txn, manager.fatal_error = add_offsets_to_txn, fatal_error
        accumulator._append_batch, accumulator.fail_all = append_batch, fail_all_batches

    async def begin_transaction(self) -> None:
        await super().begin_transaction()
        self._txn_manager.wait_for_transaction_end().add_done_callback(retrieve)


def retrieve(future: Future[Any]) -> None:
    """Read an error that nobody may await any more."""
    if future.done() and not future.cancelled():
        future.exception()
