"""aiokafka's producer without spurious asyncio errors in the log, and with a stop that sends nothing more.

"Future exception was never retrieved": if a producer is fenced or fails otherwise, all its futures get the error. The
sender awaits the futures of its batches. Those of the transaction's end and of unsent batches are never awaited.
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
    """Retrieves the errors of futures that may never be awaited, even if they fail after the sender has given up."""

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
            batch.future.add_done_callback(retrieve)  # the sender awaits a shield of it
            return batch

        def fatal_error(error: Exception) -> None:
            fail(error)
            retrieve(manager.wait_for_transaction_end())  # a new future, if the transaction had ended

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
        """Return whether the leader of a partition throttles this producer."""
        leader = self.client.cluster.leader_for_partition(TopicPartition(*place))
        return is_throttled(self.client._conns.get((leader, ConnectionGroup.DEFAULT)))

    async def cut_off(self) -> None:
        """Stop immediately: send nothing more, and close all connections.

        `stop` would first send waiting records. A stuck transactional id could then get free and open a transaction.
        """
        self._closed = True
        client, sending = self.client, self._sender.sender_task
        if sending is not None:
            sending.cancel()
        client._get_conn, client.force_metadata_update = _refuse, _no_metadata  # pending requests must not retry
        await client.close()
        async with client._get_conn_lock:  # a connection that was being opened now exists
            await client.close()
        if (update := client._md_update_fut) is not None and not update.done():
            update.set_result(False)
        if sending is not None:
            await asyncio.wait([sending])


async def _refuse(*_: Any, **__: Any) -> NoReturn:
    """End any task that needs a connection, silently, as if it had been cancelled."""
    raise asyncio.CancelledError


def _no_metadata() -> Future[bool]:
    """Return a finished metadata update without sending a request."""
    update: Future[bool] = asyncio.get_running_loop().create_future()
    update.set_result(False)
    return update


def retrieve(future: Future[Any]) -> None:
    """Retrieve the error of a finished future that may never be awaited."""
    if future.done() and not future.cancelled():
        future.exception()
