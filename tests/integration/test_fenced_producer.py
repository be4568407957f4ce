"""What is left of a lane's producer after another one has taken its place."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from support.application import Application

from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.transactional_producer import TransactionalProducer

AT = 1_767_225_600_000


def batches(topic: str) -> RecordBatches:
    found = RecordBatches(AT)
    for partition in (0, 1):
        found.add((topic, partition), b"k", b"x")
    return found


async def fenced(application: Application, *, in_transaction: bool) -> None:
    """Have a producer take the place of another one, before or within a transaction of that."""
    clients = KafkaClients(application.bootstrap_servers, 10_000)
    old, new = TransactionalProducer(clients, "app-lane-0"), TransactionalProducer(clients, "app-lane-0")
    await old.fence()
    await old.commit(batches(application.target), "app", {})

    async def fenced_meanwhile() -> bool:
        await new.fence()
        return True

    if not in_transaction:
        await new.fence()
    with pytest.raises(KafkaError):
        await old.commit_when(batches(application.target), fenced_meanwhile)
    await old.discard()
    await new.commit(batches(application.target), "app", {})
    await new.discard()


@pytest.mark.parametrize("in_transaction", [False, True])
async def test_a_fenced_producer_fails_and_logs_no_exception_that_was_never_retrieved(
    application: Application, in_transaction: bool
) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    await fenced(application, in_transaction=in_transaction)
    gc.collect()
    await asyncio.sleep(0)
    assert told == []
