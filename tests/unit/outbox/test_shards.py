"""Relays on a model of Kafka: shards that a relay loses and gets back, and shards that cannot be sent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import OffsetAndMetadata
from sqlalchemy import MetaData, create_engine, func, select
from sqlalchemy.pool import StaticPool

from light_scheduler.client.marks import Mark
from light_scheduler.errors import BrokerError
from light_scheduler.outbox import Outbox, OutboxRelay, RelayOptions, shard
from light_scheduler.outbox.shard import Step
from light_scheduler.outbox.tables import shard_of

OVER_AT_ONCE_S = -0.001
"""A lease that any other relay may take over."""
KEYS = {shard_of(b"%d" % number): str(number) for number in range(100)}
"""A key of each shard."""


class Kafka:
    """The commands topic, as payloads, with the marks of shards, and who may write under each transactional id."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.marks: dict[str, Mark] = {}
        self.owners: dict[str, object] = {}

    def producer(self, _clients: object, transactional_id: str) -> Producer:
        return Producer(self, transactional_id)

    def read_mark(self, _connection: object, group: str, _topic: str) -> Mark | None:
        return self.marks.get(group)


class Producer:
    def __init__(self, kafka: Kafka, transactional_id: str) -> None:
        self.kafka, self.transactional_id = kafka, transactional_id

    async def fence(self) -> None:
        self.kafka.owners[self.transactional_id] = self

    async def partitions_of(self, _topic: str) -> int:
        return 3

    async def commit(self, batches: Batches, group: str, mark: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self.kafka.owners[self.transactional_id] is not self:
            raise BrokerError("fenced")
        ((offset, identity),) = mark.values()
        self.kafka.sent += batches.values
        self.kafka.marks[group] = Mark(offset, identity.removesuffix("\0"))

    async def discard(self) -> None:
        """Let go."""


class Batches:
    def __init__(self, timestamp: int, limit_of: object = None) -> None:
        self.timestamp = timestamp
        self.values: list[bytes] = []

    def add(self, _place: tuple[str, int], _key: bytes, value: bytes, _headers: object) -> None:
        self.values.append(value)


class Shop:
    """A database with an outbox."""

    def __init__(self) -> None:
        self.engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
        self.outbox = Outbox(metadata := MetaData())
        metadata.create_all(self.engine)

    def book(self, payload: bytes, shard: int = 1) -> None:
        with self.engine.begin() as connection:
            self.outbox.schedule(connection, payload.decode(), payload, topic="mails", after="1h", key=KEYS[shard])

    async def relay(self, on_step: Callable[[Step], None] = lambda _: None) -> OutboxRelay:
        relay = OutboxRelay(self.engine, options=RelayOptions(lease=OVER_AT_ONCE_S), on_step=on_step)
        await relay._prepare()
        return relay

    @property
    def rows(self) -> int:
        with self.engine.connect() as connection:
            return connection.scalar(select(func.count()).select_from(self.outbox.tables.commands)) or 0


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    kafka = Kafka()
    monkeypatch.setattr(shard, "TransactionalProducer", kafka.producer)
    monkeypatch.setattr(shard, "RecordBatches", Batches)
    monkeypatch.setattr(shard, "read_mark", kafka.read_mark)
    return kafka


class KilledError(BaseException):
    """Ends a relay."""


def kill_at(step: Step) -> Callable[[Step], None]:
    def on_step(done: Step) -> None:
        if done is step:
            raise KilledError

    return on_step


@pytest.mark.parametrize("step", [Step.CLAIMED, Step.SENT], ids=lambda step: step.name)
async def test_a_relay_that_gets_a_shard_back_sends_what_another_claimed_meanwhile(kafka: Kafka, step: Step) -> None:
    shop = Shop()
    frozen, killed = await shop.relay(), await shop.relay(on_step=kill_at(step))
    shop.book(b"first")
    assert await frozen._round() == 1
    shop.book(b"second")
    with pytest.raises(KilledError):
        await killed._round()
    assert await frozen._round() == (step is Step.CLAIMED)
    assert kafka.sent == [b"first", b"second"]
    assert shop.rows == 0
