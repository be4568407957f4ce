"""Writing the markers that a changelog lacks, on a real broker that lets transactions hang."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest
from support.application import Application
from support.waiting import eventually

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.errors import LaneError, Overtaken
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.continuity import Continuity
from light_scheduler.kafka.coordinator import Coordinator, KnownLog
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.model.place import Place
from light_scheduler.tables.changelog import is_untouched, nothing_counts, reading

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
    """A producer whose transactions get no marker in the changelog, only in another partition, while it `forgets`."""

    def __init__(self, clients: KafkaClients, changelog: Place) -> None:
        self.transactional_id = f"id-{uuid.uuid4().hex}"
        self.forgets = True
        self._changelog = changelog
        self._producer = TransactionalProducer(clients, self.transactional_id)
        self._producer.continuity = Continuity(changelog, 0, partial(is_untouched, clients, TopicPartition(*changelog)))

    async def __aenter__(self) -> Forgotten:
        await self._producer.fence()
        kafka = self._producer._kafka
        begin = kafka.begin_transaction

        async def begin_without_changelog() -> None:
            await begin()
            if self.forgets:  # the coordinator does not learn of it, and aiokafka thinks that it has
                kafka._txn_manager.txn_partitions.add(TopicPartition(*self._changelog))

        kafka.begin_transaction = begin_without_changelog
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.abandon()

    async def write(self, value: bytes, *, commits: bool, reaches_changelog: bool = True) -> None:
        """Write a record to the changelog, if it is reached, and another one elsewhere."""
        batches, (topic, partition) = RecordBatches(AT), self._changelog

        async def decide() -> bool:
            return commits

        if reaches_changelog:
            batches.add(self._changelog, None, value)
        batches.add((topic, partition + 1), None, value)
        await self._producer.commit_when(batches, decide)


async def forgotten(clients: KafkaClients, changelog: Place, *, commits: bool = True) -> str:
    """Leave a transaction without a marker in the changelog; return the id of its producer, which is gone."""
    async with Forgotten(clients, changelog) as producer:
        await producer.write(b"x", commits=commits)
    return producer.transactional_id


async def ends(clients: KafkaClients, place: Place) -> tuple[int, int]:
    """Return where what is committed ends, and where the log does."""
    tp = TopicPartition(*place)
    async with reading(clients) as reader:
        return (await reader.end_offsets([tp]))[tp], await reader.log_end(tp)


@pytest.mark.parametrize("commits", [True, False])
async def test_fencing_writes_the_marker_that_a_changelog_lacks(
    clients: KafkaClients, changelog: Place, commits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    transactional_id = await forgotten(clients, changelog, commits=commits)
    assert await ends(clients, changelog) == (0, 1), "readers stand still before it"

    with caplog.at_level(logging.WARNING):
        assert await clients.fence(transactional_id, KnownLog(changelog))

    await eventually(lambda: is_decided(clients, changelog))
    assert await nothing_counts(clients, TopicPartition(*changelog), 0, 2) is not commits
    kind = "committed" if commits else "aborted"
    assert f"{changelog[0]}-1 lacks the marker of a transaction of {transactional_id} that was {kind}" in (caplog.text)


async def is_decided(clients: KafkaClients, changelog: Place, offsets: int = 2) -> bool:
    """Return whether a changelog of so many records and markers can be read to its end."""
    return await ends(clients, changelog) == (offsets, offsets)


async def test_a_changelog_that_lacks_nothing_is_left_as_it_is(clients: KafkaClients, changelog: Place) -> None:
    producer = TransactionalProducer(clients, f"id-{uuid.uuid4().hex}")
    await producer.fence()
    batches = RecordBatches(AT)
    batches.add(changelog, None, b"x")
    await producer.commit(batches, "group", {})
    for _ in range(2):
        assert await clients.fence(producer.transactional_id, KnownLog(changelog))
    assert await clients.fence(f"id-{uuid.uuid4().hex}", KnownLog(changelog)), (
        "and so is that of an id without transactions"
    )
    await eventually(lambda: is_decided(clients, changelog))
    await producer.abandon()


async def test_what_another_id_has_open_stays_open(clients: KafkaClients, changelog: Place) -> None:
    other, own = await forgotten(clients, changelog), TransactionalProducer(clients, f"id-{uuid.uuid4().hex}")
    await own.fence()
    batches = RecordBatches(AT)
    batches.add(changelog, None, b"y")
    await own.commit(batches, "group", {})
    assert await clients.fence(own.transactional_id, KnownLog(changelog))
    assert await ends(clients, changelog) == (0, 3)
    assert await clients.fence(other, KnownLog(changelog))
    await eventually(lambda: is_decided(clients, changelog, 4))
    await own.abandon()


async def test_an_id_is_not_fenced_before_it_is_known_what_its_changelog_lacks(
    clients: KafkaClients, changelog: Place
) -> None:
    """A worker that ended meanwhile would take its knowledge with it."""
    transactional_id = await forgotten(clients, changelog)
    another = KafkaClients(clients.connection, clients.transaction_timeout_ms)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await another.fence(transactional_id, KnownLog((changelog[0], 99)))
    await another.close()
    await counts_in_the_end(clients, transactional_id, changelog)


@pytest.mark.parametrize("request_type", [AddPartitionsToTxnRequest, EndTxnRequest])
async def test_a_marker_whose_writing_was_interrupted_is_written_by_the_next_try(
    clients: KafkaClients, changelog: Place, request_type: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactional_id, send = await forgotten(clients, changelog), Coordinator._send

    async def fail(self: Coordinator, transactional_id: str, request: object) -> Any:
        if isinstance(request, request_type):
            raise KafkaConnectionError
        return await send(self, transactional_id, request)

    with monkeypatch.context() as patch:
        patch.setattr(Coordinator, "_send", fail)
        with pytest.raises(KafkaConnectionError):
            await clients.fence(transactional_id, KnownLog(changelog))
    assert await ends(clients, changelog) == (0, 1)
    await counts_in_the_end(clients, transactional_id, changelog)


async def test_what_an_id_left_elsewhere_is_ended_after_what_its_changelog_lacks(
    clients: KafkaClients, changelog: Place
) -> None:
    """From then on its coordinator tells how that has ended."""
    transactional_id = await forgotten(clients, changelog)
    await clients.end(transactional_id, (changelog[0], 3), commits=False, changelog=KnownLog(changelog))
    await counts_in_the_end(clients, transactional_id, changelog)


async def test_a_producer_that_goes_on_commits_both_transactions_together(
    clients: KafkaClients, changelog: Place
) -> None:
    async with Forgotten(clients, changelog) as producer:
        await producer.write(b"x", commits=True)
        producer.forgets = False
        await producer.write(b"y", commits=True)
        await eventually(lambda: is_decided(clients, changelog, 3))


async def test_a_producer_does_not_go_on_after_an_abort_without_a_marker(
    clients: KafkaClients, changelog: Place
) -> None:
    """It would commit what was aborted."""
    async with Forgotten(clients, changelog) as producer:
        await producer.write(b"x", commits=False)
        producer.forgets = False
        with pytest.raises(Overtaken):
            await producer.write(b"y", commits=True)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_what_is_known_to_be_committed_is_not_aborted_with_a_transaction_that_did_not_reach_the_changelog(
    clients: KafkaClients, changelog: Place, elsewhere: bool
) -> None:
    async with Forgotten(clients, changelog) as producer:
        await producer.write(b"x", commits=True)
        await producer.write(b"y", commits=False, reaches_changelog=False)
    if elsewhere:
        place = changelog[0], 3
        await clients.end(producer.transactional_id, place, commits=False, changelog=KnownLog(changelog, 1))
    else:
        assert await clients.fence(producer.transactional_id, KnownLog(changelog, 1))
    await counts_in_the_end(clients, producer.transactional_id, changelog)


async def test_no_marker_is_written_that_would_decide_wrongly_for_one_of_two_transactions(
    clients: KafkaClients, changelog: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async with Forgotten(clients, changelog) as producer:
        await producer.write(b"x", commits=True)
        await producer.write(b"y", commits=False)
    with pytest.raises(LaneError, match="a commit that ends at offset 1 and of an abort that follows, up to 2"):
        await clients.fence(producer.transactional_id, KnownLog(changelog, 1))
    assert await ends(clients, changelog) == (0, 2)
    assert [record.levelname for record in caplog.records if "so none is written" in record.message] == ["ERROR"]


async def test_an_end_that_is_known_of_a_changelog_that_was_made_anew_says_nothing(
    clients: KafkaClients, changelog: Place
) -> None:
    transactional_id = await forgotten(clients, changelog, commits=False)
    assert await clients.fence(transactional_id, KnownLog(changelog, 1_000))
    await eventually(lambda: is_decided(clients, changelog))
    assert await nothing_counts(clients, TopicPartition(*changelog), 0, 2)


async def test_a_marker_that_is_lost_again_is_an_error(
    clients: KafkaClients, changelog: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    transactional_id = await forgotten(clients, changelog)

    async def lose(*_: Any, **__: Any) -> None:
        """Take it, and write nothing."""

    with monkeypatch.context() as patch:
        patch.setattr(Coordinator, "_end_as", lose)
        with pytest.raises(LaneError, match=r"loses the marker of .* again and again"):
            await clients.fence(transactional_id, KnownLog(changelog))
    await counts_in_the_end(clients, transactional_id, changelog)


async def test_an_id_is_fenced_where_there_is_no_changelog(clients: KafkaClients, changelog: Place) -> None:
    """Its lane says so itself."""
    transactional_id = await forgotten(clients, changelog)
    async with asyncio.timeout(5):
        assert await clients.fence(transactional_id, KnownLog(("nowhere", 0)))


async def counts_in_the_end(clients: KafkaClients, transactional_id: str, changelog: Place) -> None:
    assert await clients.fence(transactional_id, KnownLog(changelog))
    await eventually(lambda: is_decided(clients, changelog))
    assert not await nothing_counts(clients, TopicPartition(*changelog), 0, 2)
