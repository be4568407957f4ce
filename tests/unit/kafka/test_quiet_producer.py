"""A producer that fails says so to whoever sends, and logs nothing besides."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import ProducerFenced
from aiokafka.structs import BrokerMetadata
from support.slow_broker import hanging
from support.waiting import eventually

from light_scheduler.kafka.quiet_producer import QuietProducer

WAIT_S = 60.0


async def fail(kind: type[AIOKafkaProducer], *, aborting: bool, is_given_up: bool = False) -> list[dict[str, Any]]:
    """Have a producer's transaction fail as a fenced one does; return what asyncio tells of it.

    With offsets in it; `is_given_up`: after whoever sent it waits no more.
    """
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    producer = kind(bootstrap_servers="127.0.0.1:1", transactional_id="t")
    producer._txn_manager.set_pid_and_epoch(1, 0)
    await producer.begin_transaction()
    builder = producer.create_batch()
    builder.append(key=None, value=b"x", timestamp=None)
    sent = await producer._message_accumulator.add_batch(builder, TopicPartition("topic", 0), 1)
    offsets = asyncio.create_task(producer.send_offsets_to_transaction({TopicPartition("topic", 0): 1}, "group"))
    await asyncio.sleep(0)  # it waits for the broker
    if is_given_up:
        offsets.cancel()
        sent.cancel()
        await producer.stop()
    if aborting:
        producer._txn_manager.aborting_transaction()
    # What the sender does when the broker says that another producer has taken over.
    producer._txn_manager.fatal_error(ProducerFenced())
    producer._message_accumulator.fail_all(ProducerFenced())
    with pytest.raises(asyncio.CancelledError if is_given_up else ProducerFenced):
        await sent
    await asyncio.gather(offsets, return_exceptions=True)
    if not is_given_up:
        await producer.stop()
    del producer, builder, sent, offsets
    await asyncio.sleep(0)  # callbacks that are due let go of what they hold
    gc.collect()
    await asyncio.sleep(0)
    return told


@pytest.mark.parametrize("is_given_up", [False, True])
@pytest.mark.parametrize("aborting", [False, True])
async def test_a_fenced_producer_logs_no_exception_that_was_never_retrieved(aborting: bool, is_given_up: bool) -> None:
    assert await fail(QuietProducer, aborting=aborting, is_given_up=is_given_up) == []


async def test_without_it_there_are_some() -> None:
    told = await fail(AIOKafkaProducer, aborting=False)
    assert {context["message"] for context in told} == {"Future exception was never retrieved"}


async def test_a_producer_that_is_cut_off_gives_up_whatever_it_waits_for_and_leaves_nothing_running() -> None:
    before = asyncio.all_tasks()
    async with hanging() as address:
        host, _, port = address.rpartition(":")
        producer = QuietProducer(bootstrap_servers=address, transactional_id="t", request_timeout_ms=200)
        producer.client.cluster._brokers = {1: BrokerMetadata(1, host, int(port), None)}
        producer._txn_manager.set_pid_and_epoch(1, 0)
        producer._sender._sender_task = asyncio.create_task(producer._sender._sender_routine())
        await producer.begin_transaction()
        builder = producer.create_batch()
        builder.append(key=None, value=b"x", timestamp=None)
        producer._txn_manager.maybe_add_partition_to_txn(TopicPartition("topic", 0))
        await producer._message_accumulator.add_batch(builder, TopicPartition("topic", 0), 1)
        await eventually(producer.client._get_conn_lock.locked, what="it connects to its coordinator")
        async with asyncio.timeout(WAIT_S):
            await producer.cut_off()
        await eventually(lambda: asyncio.all_tasks() <= before, within=WAIT_S, what="everything ends")
