"""A hand-driven responder, which stands in for the workers of an application."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from light_scheduler.model import Command, ControlCommand, Outcome, Result, TopicNames
from light_scheduler.testing import Kafka
from light_scheduler.wire import dialect_named, encode_result, result_headers

from .placing import is_known_everywhere
from .waiting import eventually

PARTITIONS = 3


async def with_topics(kafka: Kafka) -> TopicNames:
    """The names of an application that nobody else has, with its topics, which every broker knows."""
    names = TopicNames(f"client-{uuid.uuid4().hex[:8]}")
    topics = names.commands, names.results, names.history
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
        for topic in topics:
            await eventually(partial(is_known_everywhere, admin._client, topic), what=f"every broker to know {topic}")
    finally:
        await admin.close()
    return names


def answer_to(command: Command) -> Result | None:
    """What the responder says: the id decides."""
    outcome, reason, field = Outcome.SCHEDULED, None, None
    if command.id.startswith("silent"):
        return None
    if command.id.startswith("refused"):
        outcome, reason, field = Outcome.REJECTED, "too large", "schedule-target-topic"
    elif command.id.startswith("conflict"):
        outcome, reason = Outcome.CONFLICT, "exists"
    elif isinstance(command, ControlCommand):
        outcome = Outcome.CANCELLED
    return Result(
        command.name, command.tenant, command.id, outcome, 1, None, reason, field, command.partition, command.offset
    )


@asynccontextmanager
async def responder(kafka: Kafka, names: TopicNames) -> AsyncIterator[list[Command]]:
    """Answers every command transactionally, as a worker does; yields the commands it has seen."""
    seen: list[Command] = []
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers)
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=names.app_id)
    await consumer.start()
    await producer.start()

    async def respond() -> None:
        places = [TopicPartition(names.commands, partition) for partition in range(PARTITIONS)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        while True:
            batches = await consumer.getmany(timeout_ms=200)
            commands = [dialect_named("native").decode(record) for batch in batches.values() for record in batch]
            if not commands:
                continue
            seen.extend(commands)
            async with producer.transaction():
                for command in commands:
                    result = answer_to(command)
                    if result is not None and command.reply_to is not None:
                        await producer.send(
                            command.reply_to.topic,
                            encode_result(result),
                            command.key,
                            partition=command.reply_to.partition,
                            headers=result_headers(command.reply_to.correlation_id),
                        )

    task = asyncio.create_task(respond())
    try:
        yield seen
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await producer.stop()
        await consumer.stop()
