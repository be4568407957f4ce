"""Writing the markers that a changelog lacks, on a real broker that lets transactions hang."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from aiokafka import TopicPartition
from support.application import Application
from support.waiting import eventually

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.model.place import Place
from light_scheduler.tables.changelog import nothing_counts, reading

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120), pytest.mark.soak]

AT = 1_767_225_600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """A broker that takes records of transactions that do not name their partition: it gets no marker then."""
    with EmbeddedBroker(properties={"transaction.partition.verification.enable": "false"}) as broker:
        yield broker


@pytest.fixture
async def clients(broker: EmbeddedBroker) -> AsyncIterator[KafkaClients]:
    clients = KafkaClients(broker.bootstrap_servers, 60_000)
    yield clients
    await clients.close()


@pytest.fixture
async def changelog(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    application = await Application.create(broker.bootstrap_servers, tmp_path_factory.mktemp("application"))
    yield application.target, 1
    application.close()


class Forgotten:
    """A producer in whose transactions the coordinator writes no marker to the changelog, only to another partition."""

    def __init__(self, clients: KafkaClients, changelog: Place) -> None:
        self.transactional_id = f"id-{uuid.uuid4().hex}"
        self._changelog = changelog
        self._producer = TransactionalProducer(clients, self.transactional_id)

    async def write(self, value: bytes, *, commits: bool) -> None:
        """Write a record to the changelog and another one elsewhere; everything else is as Kafka's."""
        kafka, batches, (topic, partition) = self._producer._kafka, RecordBatches(AT), self._changelog
        begin = kafka.begin_transaction

        async def begin_without_changelog() -> None:
            await begin()
            kafka._txn_manager.txn_partitions.add(TopicPartition(*self._changelog))

        async def decide() -> bool:
            return commits

        await self._producer.fence()
        kafka.begin_transaction = begin_without_changelog
        batches.add(self._changelog, None, value)
        batches.add((topic, partition + 1), None, value)
        await self._producer.commit_when(batches, decide)
        await self._producer.abandon()


async def ends(clients: KafkaClients, place: Place) -> tuple[int, int]:
    """Return where what is committed ends, and where the log does."""
    tp = TopicPartition(*place)
    async with reading(clients) as reader:
        return (await reader.end_offsets([tp]))[tp], await reader.log_end(tp)


@pytest.mark.parametrize("commits", [True, False])
async def test_fencing_writes_the_marker_that_a_changelog_lacks(
    clients: KafkaClients, changelog: Place, commits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    producer = Forgotten(clients, changelog)
    await producer.write(b"x", commits=commits)
    assert await ends(clients, changelog) == (0, 1), "readers stand still before it"

    with caplog.at_level(logging.WARNING):
        assert await clients.fence(producer.transactional_id, changelog)

    await eventually(lambda: is_decided(clients, changelog))
    assert await nothing_counts(clients, TopicPartition(*changelog), 0, 2) is not commits
    kind = "commit" if commits else "abort"
    assert f"{changelog[0]}-1 lacks the marker of a {kind} under {producer.transactional_id}" in caplog.text


async def is_decided(clients: KafkaClients, changelog: Place) -> bool:
    return await ends(clients, changelog) == (2, 2)


async def test_a_changelog_that_lacks_nothing_is_left_as_it_is(clients: KafkaClients, changelog: Place) -> None:
    producer = TransactionalProducer(clients, f"id-{uuid.uuid4().hex}")
    await producer.fence()
    batches = RecordBatches(AT)
    batches.add(changelog, None, b"x")
    await producer.commit(batches, "group", {})
    for _ in range(2):
        assert await clients.fence(producer.transactional_id, changelog)
    assert await clients.fence(f"id-{uuid.uuid4().hex}", changelog), "and so is that of an id without transactions"
    await eventually(lambda: is_decided(clients, changelog))
    await producer.abandon()


async def test_what_another_id_has_open_stays_open(clients: KafkaClients, changelog: Place) -> None:
    other, own = Forgotten(clients, changelog), TransactionalProducer(clients, f"id-{uuid.uuid4().hex}")
    await other.write(b"x", commits=True)
    await own.fence()
    batches = RecordBatches(AT)
    batches.add(changelog, None, b"y")
    await own.commit(batches, "group", {})
    assert await clients.fence(own.transactional_id, changelog)
    assert await ends(clients, changelog) == (0, 3)
    assert await clients.fence(other.transactional_id, changelog)
    await eventually(lambda: everything_is_decided(clients, changelog))
    await own.abandon()


async def everything_is_decided(clients: KafkaClients, changelog: Place) -> bool:
    return await ends(clients, changelog) == (4, 4)


async def test_a_marker_that_could_not_be_written_is_written_later(clients: KafkaClients, changelog: Place) -> None:
    """The coordinator has forgotten by then how the transaction ended."""
    producer = Forgotten(clients, changelog)
    await producer.write(b"x", commits=True)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await clients.fence(producer.transactional_id, (changelog[0], 99))
    assert await ends(clients, changelog) == (0, 1)
    assert await clients.fence(producer.transactional_id, changelog)
    await eventually(lambda: is_decided(clients, changelog))
    assert not await nothing_counts(clients, TopicPartition(*changelog), 0, 2)
