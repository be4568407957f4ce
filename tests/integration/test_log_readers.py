"""A reader of logs that is kept from one request to the next, over whatever happens to the topic meanwhile."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from functools import partial

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.structs import TopicPartition
from support.placing import delete_topic
from support.waiting import eventually

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.log_reader import LogReader
from light_scheduler.kafka.log_readers import LogReaders
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration


@pytest.fixture
def topic() -> str:
    """A name of its own: a topic that is deleted may still be there when the next test makes one."""
    return f"looked-back-at-{uuid.uuid4().hex}"


@pytest.fixture
async def admin(kafka: Kafka, topic: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    await admin.create_topics([NewTopic(topic, 2, 1)])
    yield admin
    await admin.delete_topics([topic])
    await admin.close()


@pytest.fixture
async def readers(kafka: Kafka) -> AsyncIterator[LogReaders]:
    readers = LogReaders(kafka.bootstrap_servers, 1)
    yield readers
    await readers.close()


async def knows(producer: AIOKafkaProducer, topic: str, partition: int) -> bool:
    """Return whether a producer can write to a partition: brokers hear of a new one one after the other."""
    await producer.client.force_metadata_update()
    return partition in await producer.partitions_for(topic)


async def write(kafka: Kafka, topic: str, values: list[bytes], partition: int = 0, *, commit: bool = True) -> None:
    """Write values in one transaction."""
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id="writer") as producer:
        await eventually(partial(knows, producer, topic, partition), what=f"partition {partition}")
        await producer.begin_transaction()
        for value in values:
            await producer.send_and_wait(topic, value, partition=partition)
        await (producer.commit_transaction() if commit else producer.abort_transaction())


async def all_of(readers: LogReaders, topic: str) -> list[bytes | None]:
    """Return the values of all that is committed, and check that each record was there once."""
    places: list[tuple[int, int]] = []
    values: list[bytes | None] = []
    async with readers.open(topic) as log:
        async for records in log.read(await log.extents(0)):
            places += [(each.partition, each.offset) for each in records]
            values += [each.value for each in records]
    assert len(places) == len(set(places))
    return sorted(values, key=bytes.__repr__)


async def is_found(readers: LogReaders, topic: str, expected: list[bytes]) -> bool:
    """Tell whether just that is in the topic: markers of a transaction come after its commit was answered, and a topic
    may not be there for a moment."""
    try:
        return await all_of(readers, topic) == expected
    except BrokerError:
        return False


async def test_a_kept_reader_sees_what_is_committed_and_nothing_else(
    kafka: Kafka, admin: AIOKafkaAdminClient, readers: LogReaders, topic: str
) -> None:
    kept: set[LogReader] = set()
    expected: list[bytes] = []
    for number in range(5):
        await write(kafka, topic, [b"lost"], number % 2, commit=False)
        await write(kafka, topic, values := [b"%d-%03d" % (number, each) for each in range(50)], number % 2)
        expected += values
        await eventually(partial(is_found, readers, topic, expected))
        kept |= readers._kept.keys()
    assert len(kept) == 1


async def test_a_kept_reader_sees_a_topic_that_was_made_again_or_cut_or_has_more_partitions(
    kafka: Kafka, admin: AIOKafkaAdminClient, readers: LogReaders, topic: str
) -> None:
    values = [b"%03d" % number for number in range(20)]
    await write(kafka, topic, values)
    await eventually(lambda: is_found(readers, topic, values))

    await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=15)})
    assert await all_of(readers, topic) == values[15:]

    await admin.create_partitions({topic: NewPartitions(total_count=3)})
    await write(kafka, topic, [b"in the third"], 2)
    await eventually(lambda: is_found(readers, topic, [*values[15:], b"in the third"]))

    # Once it is not listed any more: else the next record may still be written to it.
    await asyncio.to_thread(delete_topic, kafka.bootstrap_servers, topic)
    await admin.create_topics([NewTopic(topic, 2, 1)])
    await write(kafka, topic, [b"after"])
    await eventually(lambda: is_found(readers, topic, [b"after"]), within=30)


async def test_what_is_deleted_before_it_was_read_is_passed_over(
    kafka: Kafka, admin: AIOKafkaAdminClient, readers: LogReaders, topic: str
) -> None:
    await write(kafka, topic, [b"cut"])
    await write(kafka, topic, [b"there"], 1)
    await eventually(lambda: is_found(readers, topic, [b"cut", b"there"]))
    async with readers.open(topic) as log:
        spans = await log.extents(0)
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=-1)})
        assert [each.value async for records in log.read(spans) for each in records] == [b"there"]
