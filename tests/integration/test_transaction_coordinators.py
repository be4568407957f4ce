"""What workers ask of transaction coordinators without a producer, on a real broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from functools import partial

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from support.application import Application
from support.waiting import eventually

from light_scheduler.errors import Overtaken
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.kafka.continuity import Continuity
from light_scheduler.kafka.coordinator import KnownLog
from light_scheduler.kafka.fencing import Fencing, ids_of
from light_scheduler.kafka.target_probe import Prober
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.tables.changelog import is_untouched

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

AT = 1_767_225_600_000
WAIT_S = 60.0
TOO_LONG_MS = 60_000
"""A transaction time-out that no test waits for."""


@pytest.fixture
async def clients(application: Application) -> AsyncIterator[KafkaClients]:
    clients = KafkaClients(application.bootstrap_servers, TOO_LONG_MS)
    yield clients
    await clients.close()


@pytest.fixture
def transactional_id() -> str:
    return f"id-{uuid.uuid4().hex}"


def batches(topic: str, value: bytes, *partitions: int) -> RecordBatches:
    found = RecordBatches(AT)
    for partition in partitions:
        found.add((topic, partition), None, value)
    return found


class Reading:
    """A consumer of all partitions of a topic from the beginning."""

    def __init__(self, application: Application, *, committed: bool) -> None:
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=application.bootstrap_servers,
            isolation_level="read_committed" if committed else "read_uncommitted",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
        )
        self.places = [TopicPartition(application.target, partition) for partition in range(4)]

    async def __aenter__(self) -> Reading:
        await self._consumer.start()
        self._consumer.assign(self.places)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._consumer.stop()

    async def ends(self) -> list[int]:
        """Return where partitions end: the last stable offset if only what is committed is read."""
        ends = await self._consumer.end_offsets(self.places)
        return [ends[place] for place in self.places]

    async def values(self, positions: list[int]) -> list[tuple[int, bytes]]:
        """Return the (partition, value) of all records before these positions."""
        found: list[tuple[int, bytes]] = []
        async with asyncio.timeout(WAIT_S):
            while [await self._consumer.position(place) for place in self.places] < positions:
                for place, records in (await self._consumer.getmany(timeout_ms=50)).items():
                    found += [(place.partition, record.value) for record in records]
        return sorted(found)


async def with_markers(everything: Reading, committed: Reading) -> list[int]:
    """Return where partitions end once all markers are there: they are written after the answer to a commit."""

    async def agreed() -> list[int] | None:
        ends = await everything.ends()
        return ends if ends == await committed.ends() else None

    return await eventually(agreed, within=WAIT_S)


async def test_fencing_an_id_aborts_its_open_transaction_and_its_owner_fails(
    application: Application, clients: KafkaClients, transactional_id: str
) -> None:
    producer = TransactionalProducer(clients, transactional_id)
    await producer.fence()
    await producer.commit(batches(application.target, b"committed", 0), "g", {})

    async def fenced_meanwhile() -> bool:
        async with Reading(application, committed=True) as committed:
            assert (await committed.ends())[1] == 0, "it is open"
        assert await clients.fence(transactional_id, KnownLog((application.target, 0))) is True
        return True

    with pytest.raises(KafkaError):
        await producer.commit_when(batches(application.target, b"open", 0, 1), fenced_meanwhile)
    async with Reading(application, committed=False) as everything, Reading(application, committed=True) as committed:
        assert await committed.values(await with_markers(everything, committed)) == [(0, b"committed")]
    await producer.abandon()


async def test_of_two_owners_under_two_ids_the_one_that_comes_second_gives_way(
    application: Application, clients: KafkaClients, transactional_id: str
) -> None:
    log = TopicPartition(application.target, 0)
    owners = [TransactionalProducer(clients, each) for each in ids_of(transactional_id)[:2]]
    for owner in owners:
        await owner.fence()
        owner.continuity = Continuity(log, 0, partial(is_untouched, clients, log))
    first, second = owners

    async def the_second_is_refused_meanwhile() -> bool:
        with pytest.raises(Overtaken, match="expected the next record at offset 0, found 1"):
            await second.commit(batches(application.target, b"undecided before it", 0), "g", {})
        await second.discard()
        return True

    ends = await first.commit_when(batches(application.target, b"first", 0), the_second_is_refused_meanwhile)
    assert ends == {(application.target, 0): 1}
    second = TransactionalProducer(clients, ids_of(transactional_id)[1])
    await second.fence()
    second.continuity = Continuity(log, 0, partial(is_untouched, clients, log))
    with pytest.raises(Overtaken):
        await second.commit(batches(application.target, b"committed before it", 0), "g", {})
    await second.discard()
    # What the second left behind is markers and aborted records, which change nothing.
    await first.commit(batches(application.target, b"and again", 0), "g", {})
    await first.discard()
    async with Reading(application, committed=False) as everything, Reading(application, committed=True) as committed:
        seen = await committed.values(await with_markers(everything, committed))
    assert seen == [(0, b"and again"), (0, b"first")]


async def test_an_owner_that_is_alone_need_not_look_what_lies_between_its_transactions(
    application: Application, clients: KafkaClients, transactional_id: str
) -> None:
    async def nobody_asks(_start: int, _end: int) -> bool:
        pytest.fail("it goes on where it was left")

    async def drop() -> bool:
        return False

    producer = TransactionalProducer(clients, transactional_id)
    await producer.fence()
    producer.continuity = Continuity((application.target, 1), 0, nobody_asks)
    for number in range(5):
        await producer.commit(batches(application.target, b"%d" % number, 1, 2), "g", {})
        await producer.commit_when(batches(application.target, b"dropped", 1, 3), drop)
    await producer.discard()


async def test_an_id_that_was_fenced_can_be_worked_under_at_once(
    application: Application, clients: KafkaClients, transactional_id: str
) -> None:
    assert await clients.fence(transactional_id, KnownLog((application.target, 0))) is True
    chosen = await Fencing(
        transactional_id, partial(clients.fence, changelog=KnownLog((application.target, 0)))
    ).take_over()
    assert chosen == ids_of(transactional_id)[0]
    producer = TransactionalProducer(clients, chosen)
    await producer.fence()
    await producer.commit(batches(application.target, b"x", 2), "g", {})
    await producer.discard()
    async with Reading(application, committed=False) as everything, Reading(application, committed=True) as committed:
        assert await committed.values(await with_markers(everything, committed)) == [(2, b"x")]


async def test_a_probe_returns_for_a_partition_that_is_well_and_leaves_nothing_to_read(
    application: Application, clients: KafkaClients
) -> None:
    probe = Prober("app", clients.coordinator)
    async with Reading(application, committed=False) as everything:
        begin = await everything.ends()
        async with asyncio.timeout(WAIT_S):
            for _ in range(3):
                await probe((application.target, 1))
        ends = await everything.ends()
        assert [end - start for start, end in zip(begin, ends, strict=True)] == [0, 3, 0, 0], "a marker each"
        assert await everything.values(ends) == []


async def test_a_probe_fails_for_a_partition_that_is_not_there(
    application: Application, clients: KafkaClients, transactional_id: str
) -> None:
    with pytest.raises(KafkaError):
        await clients.coordinator.mark(transactional_id, (application.target, 99))


@pytest.mark.parametrize("commits", [True, False])
async def test_settling_writes_markers_alone_and_the_producer_goes_on(
    application: Application, clients: KafkaClients, transactional_id: str, commits: bool
) -> None:
    producer = TransactionalProducer(clients, transactional_id)
    try:
        await producer.fence()
        await producer.commit(batches(application.target, b"before", 0, 1), "g", {})
        async with (
            Reading(application, committed=False) as everything,
            Reading(application, committed=True) as committed,
        ):
            begin = await with_markers(everything, committed)
            await producer.settle({(application.target, 0), (application.target, 3)}, commits=commits)
            await producer.commit(batches(application.target, b"after", 0), "g", {})
            ends = await with_markers(everything, committed)
            assert [end - start for start, end in zip(begin, ends, strict=True)] == [3, 0, 0, 1]
            assert await committed.values(ends) == [(0, b"after"), (0, b"before"), (1, b"before")]
    finally:
        await producer.discard()
