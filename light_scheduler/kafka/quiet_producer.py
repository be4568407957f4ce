"""aiokafka's producer, without the errors that asyncio would log as well, and with a stop that sends nothing more.

"Future exception was never retrieved": a producer that is fenced, or fails otherwise, tells so in all of its futures.
Who sends awaits those of its batches and takes the error from there; the end of the transaction, and what waits to be
sent, say the same once more to nobody.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from typing import Any, NoReturn

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.client import ConnectionGroup

from light_scheduler.model.place import Place

from .throttling import is_throttled


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

    def is_throttled(self, place: Place) -> bool:
        """Return whether the leader of a partition has told this producer to wait."""
        leader = self.client.cluster.leader_for_partition(TopicPartition(*place))
        return is_throttled(self.client._conns.get((leader, ConnectionGroup.DEFAULT)))

    async def cut_off(self) -> None:
        """End at once: nothing more is sent, and every connection is closed.

        `stop` sends what waits before it ends: a transactional id that is stuck could get free, and have an open
        transaction from then on.
        """
        self._closed = True
        client, sending = self.client, self._sender.sender_task
        if sending is not None:
            sending.cancel()
        client._get_conn, client.force_metadata_update = _refuse, _no_metadata  # else what is under way tries again
        await client.close()
        async with client._get_conn_lock:  # a connection that was being made is there by now
            await client.close()
        if (update := client._md_update_fut) is not None and not update.done():
            update.set_result(False)
        if sending is not None:
            await asyncio.wait([sending])


async def _refuse(*_: Any, **__: Any) -> NoReturn:
    """Have whatever wants a connection end as if it had been cancelled: in silence."""
    raise asyncio.CancelledError


def _no_metadata() -> Future[bool]:
    """Return an update that has been: nobody makes one any more."""
    update: Future[bool] = asyncio.get_running_loop().create_future()
    update.set_result(False)
    return update


def retrieve(future: Future[Any]) -> None:
    """Read an error that nobody may await any more."""
    if future.done() and not future.cancelled():
        future.exception()
