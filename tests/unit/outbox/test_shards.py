"""Relays on a model of Kafka: shards that a relay loses and gets back, and shards that cannot be sent."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import InvalidTimestampError, KafkaError, MessageSizeTooLargeError, TopicAuthorizationFailedError
from aiokafka.structs import OffsetAndMetadata
from sqlalchemy import MetaData, create_engine, event, func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool, StaticPool
from support.waiting import eventually

from light_scheduler.client.marks import Mark
from light_scheduler.clock import SettableClock
from light_scheduler.connection import Connection
from light_scheduler.errors import BrokerError, ConfigurationError
from light_scheduler.kafka.refusals import RecordsRefusedError
from light_scheduler.model.topic_configuration import TopicConfiguration
from light_scheduler.outbox import (
    BlockingOutboxRelay,
    Outbox,
    OutboxInDoubt,
    OutboxRelay,
    RelayOptions,
    shard,
    topic_limit,
)
from light_scheduler.outbox import relay as relay_module
from light_scheduler.outbox.failing_shards import FailingShards
from light_scheduler.outbox.ledger import Ledger
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
        self.fences: Counter[str] = Counter()
        self.refused: list[bytes] = []
        self.is_of_topic = False
        self.cause: type[KafkaError] = MessageSizeTooLargeError
        self.largest: int | None = 50_000
        """The largest batch that the topic takes; None: nobody may look it up."""
        self.look_ups = 0
        self.on_look_up: Callable[[], None] = lambda: None

    def producer(self, _clients: object, transactional_id: str) -> Producer:
        return Producer(self, transactional_id)

    def read_mark(self, _connection: object, group: str, _topic: str) -> Mark | None:
        return self.marks.get(group)

    def configuration(self, _connection: object, topic: str, *, timeout: float) -> TopicConfiguration:
        self.look_ups += 1
        self.on_look_up()
        if self.largest is None:
            raise BrokerError(f"no right to topic {topic}")
        return TopicConfiguration(max_message_bytes=self.largest)


class Producer:
    def __init__(self, kafka: Kafka, transactional_id: str) -> None:
        self.kafka, self.transactional_id = kafka, transactional_id

    async def fence(self) -> None:
        self.kafka.owners[self.transactional_id] = self
        self.kafka.fences[self.transactional_id] += 1

    async def partitions_of(self, _topic: str) -> int:
        return 3

    async def commit(self, batches: Batches, group: str, mark: dict[TopicPartition, OffsetAndMetadata]) -> None:
        if self.kafka.owners[self.transactional_id] is not self:
            raise BrokerError("fenced")
        if any(value in self.kafka.refused for value in batches.values):
            cause = TopicAuthorizationFailedError if self.kafka.is_of_topic else self.kafka.cause
            raise RecordsRefusedError("commands", cause(), [])
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

    def __init__(self, folder: Path) -> None:
        self.engine = create_engine(f"sqlite:///{folder}/shop.db", poolclass=NullPool)
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
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    kafka = Kafka()
    monkeypatch.setattr(shard, "TransactionalProducer", kafka.producer)
    monkeypatch.setattr(shard, "RecordBatches", Batches)
    monkeypatch.setattr(shard, "read_mark", kafka.read_mark)
    monkeypatch.setattr(topic_limit, "topic_configuration", kafka.configuration)
    return kafka


class KilledError(BaseException):
    """Ends a relay."""


def kill_at(step: Step) -> Callable[[Step], None]:
    def on_step(done: Step) -> None:
        if done is step:
            raise KilledError

    return on_step


@pytest.mark.parametrize("step", [Step.CLAIMED, Step.SENT], ids=lambda step: step.name)
async def test_a_relay_that_gets_a_shard_back_sends_what_another_claimed_meanwhile(
    kafka: Kafka, shop: Shop, step: Step
) -> None:
    frozen, killed = await shop.relay(), await shop.relay(on_step=kill_at(step))
    shop.book(b"first")
    assert await frozen._round() == 1
    shop.book(b"second")
    with pytest.raises(KilledError):
        await killed._round()
    assert await frozen._round() == (step is Step.CLAIMED)
    assert kafka.sent == [b"first", b"second"]
    assert shop.rows == 0


IN_DOUBT = 0
"""A shard that cannot be sent."""


@pytest.fixture
def doubtful(shop: Shop) -> Shop:
    """A shop with a row of one shard that may have been sent or not."""
    shop.book(b"doubtful", IN_DOUBT)
    with shop.engine.begin() as connection:
        connection.execute(shop.outbox.tables.commands.update().values(batch=1))
    return shop


async def test_a_failing_shard_is_logged_once_and_left_alone_for_a_while_though_others_send(
    kafka: Kafka, doubtful: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relay_module, "FIRST_PAUSE_S", 3_600.0)
    relay = await doubtful.relay()
    for number in range(5):
        doubtful.book(b"%d" % number)
        assert await relay._round() == 1
    (told,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert told.startswith("shard 0 of the outbox is not sent")
    assert "may have been sent or not" in told
    assert kafka.fences == {_id_of(IN_DOUBT): 1, _id_of(1): 1}


async def test_a_relay_looks_for_bookings_of_other_shards_while_a_shard_fails(
    kafka: Kafka, doubtful: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "FIRST_PAUSE_S", 3_600.0)
    relay = OutboxRelay(doubtful.engine, options=RelayOptions(poll=0.01))
    running = asyncio.create_task(relay.run())
    await eventually(lambda: kafka.fences == {_id_of(IN_DOUBT): 1}, what="a shard that fails")
    doubtful.book(b"later")
    await eventually(lambda: kafka.sent == [b"later"], what="a booking of another shard")
    relay.stop()
    await running


async def test_a_failing_shard_is_tried_again_before_bookings_are_looked_for(
    kafka: Kafka, doubtful: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relay_module, "FIRST_PAUSE_S", 0.01)
    relay = OutboxRelay(doubtful.engine, options=RelayOptions(poll=3_600, lease=3_600))
    with caplog.at_level(logging.INFO):
        running = asyncio.create_task(relay.run())
        await eventually(lambda: kafka.fences[_id_of(IN_DOUBT)] > 2, what="a shard that is tried again")
        with doubtful.engine.begin() as connection:
            connection.execute(doubtful.outbox.tables.commands.update().values(batch=None))
        await eventually(lambda: kafka.sent == [b"doubtful"], what="a row that was set right")
        await eventually(lambda: "shard 0 of the outbox is sent again" in caplog.text, what="its end in the log")
    relay.stop()
    await running
    assert caplog.text.count("is not sent") == 1


async def test_draining_sends_other_shards_and_then_raises_what_one_failed_with(kafka: Kafka, doubtful: Shop) -> None:
    for number in range(1, 8):
        doubtful.book(b"%d" % number, shard=number)
    kafka.refused = [b"7"]
    relay = OutboxRelay(doubtful.engine, options=RelayOptions(lease=3_600))
    with pytest.raises(OutboxInDoubt):
        await relay.drain()
    assert sorted(kafka.sent) == [b"%d" % number for number in range(1, 7)]
    assert (relay.sent, relay.refused, relay.refused_rows) == (6, 1, 1)


async def test_refused_rows_that_cannot_be_counted_do_not_hide_what_a_shard_failed_with(
    kafka: Kafka, doubtful: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Ledger, "count_refused", uncountable)
    relay = OutboxRelay(doubtful.engine, options=RelayOptions(lease=3_600))
    with pytest.raises(OutboxInDoubt):
        await relay.drain()
    assert relay.refused_rows is None
    assert "refused rows of the outbox cannot be counted" in caplog.text


async def test_a_drain_whose_refused_rows_cannot_be_counted_fails_after_it_has_sent_the_rest(
    kafka: Kafka, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ledger, "count_refused", uncountable)
    shop.book(b"booked")
    relay = OutboxRelay(shop.engine, options=RelayOptions(lease=3_600))
    with pytest.raises(OperationalError, match="gone"):
        await relay.drain()
    assert (kafka.sent, relay.sent, relay.refused_rows) == ([b"booked"], 1, None)


def test_refused_rows_are_counted_by_an_index_that_has_no_other_rows(shop: Shop) -> None:
    with shop.engine.begin() as connection:
        counted: list[str] = []
        event.listen(connection, "before_cursor_execute", lambda *given: counted.append(given[2]))
        assert Ledger(shop.outbox.tables, "relay", 5_000).count_refused(connection) == 0
        [statement] = counted
        plan = [row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]
        assert plan == ["SCAN light_scheduler_outbox USING INDEX light_scheduler_outbox_refused"]
        [index] = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE name = 'light_scheduler_outbox_refused'"
        ).scalars()
        assert index.endswith("WHERE refused IS NOT NULL")


def uncountable(*_: object) -> int:
    raise OperationalError("SELECT", None, Exception("gone"))


def test_pauses_of_a_shard_grow_until_it_works() -> None:
    now = 0.0
    failing = FailingShards(0.5, 30.0, lambda: now)
    pauses = []
    for _ in range(8):
        failing.failed(1, BrokerError("away"))
        assert not failing.may_try(1)
        pauses.append(failing.wait_s([1]))
        now += pauses[-1]
        assert failing.may_try(1)
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30]
    failing.worked(1)
    failing.failed(1, BrokerError("away"))
    assert failing.wait_s([1]) == 0.5


def test_only_a_failing_shard_waits_until_nothing_of_it_is_left() -> None:
    failing = FailingShards(0.5, 30.0)
    failing.failed(1, BrokerError("away"))
    failing.keep({1, 2})
    assert [failing.may_try(tried) for tried in (1, 2)] == [False, True]
    assert failing.wait_s([2, 3]) == math.inf
    failing.raise_first([2, 3])
    with pytest.raises(BrokerError, match="away"):
        failing.raise_first([1, 2])
    failing.keep({2})
    assert failing.may_try(1)
    failing.raise_first([1, 2])


def test_a_failure_of_a_shard_is_logged_when_its_text_changes(caplog: pytest.LogCaptureFixture) -> None:
    failing = FailingShards(0.5, 30.0)
    for failed, text in [(1, "away"), (2, "away"), (1, "away"), (1, "stuck"), (2, "away"), (1, "away")]:
        failing.failed(failed, BrokerError(text))
    told = [(record.args[0], str(record.args[2])) for record in caplog.records if isinstance(record.args, tuple)]
    assert told == [(1, "away"), (2, "away"), (1, "stuck"), (1, "away")]


def _id_of(shard: int) -> str:
    return f"light-scheduler-outbox-light_scheduler_outbox-{shard}"


@pytest.mark.parametrize("refused", [[b"large"], [b"before"], [b"after"], [b"large", b"after"], [b"before", b"large"]])
async def test_a_drain_sets_what_kafka_refuses_aside_and_sends_the_rest(
    kafka: Kafka, shop: Shop, refused: list[bytes]
) -> None:
    kafka.refused = refused
    booked = [b"before", b"large", b"after"]
    for payload in booked:
        shop.book(payload)
    sent = [payload for payload in booked if payload not in refused]
    relay = OutboxRelay(shop.engine, options=RelayOptions(lease=3_600))
    assert (await relay.drain(), relay.refused) == (len(sent), len(refused))
    assert kafka.sent == sent
    assert shop.rows == len(refused)
    again = OutboxRelay(shop.engine, options=RelayOptions(lease=3_600))
    assert (await again.drain(), again.refused, again.refused_rows) == (0, 0, len(refused))


@pytest.mark.parametrize(("largest", "takes"), [(50_000, "at most 50,000"), (None, "less")])
async def test_the_reason_of_a_command_that_is_too_large_has_its_size_and_the_limit(
    kafka: Kafka, shop: Shop, largest: int | None, takes: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.largest, kafka.refused = largest, [large := b"l" * 60_000]
    with shop.engine.begin() as connection:
        for id, payload in (("before", b"before"), ("large", large)):
            shop.outbox.schedule(connection, id, payload, topic="mails", after="1h", key=KEYS[1])
    assert await OutboxRelay(shop.engine, options=RelayOptions(lease=3_600)).drain() == 1
    commands = shop.outbox.tables.commands
    with shop.engine.connect() as connection:
        (reason,) = connection.scalars(select(commands.c.refused))
    is_too_large = (
        rf"its record has 60,\d{{3}} bytes, and topic light-scheduler-commands takes {takes} \(max\.message\.bytes\)\. "
        "Raise that, and set the column refused to null, or delete the row .* then just delete the row$"
    )
    assert re.match(is_too_large, reason)
    batch, row = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert batch.startswith("shard 1 of the outbox: topic light-scheduler-commands refused a batch of 2 commands (Mess")
    assert row == f"shard 1 of the outbox: row 2, default/large, is set aside: {reason}"


@pytest.mark.parametrize("largest", [50_000, None])
async def test_a_drain_looks_the_limit_of_the_topic_up_once(kafka: Kafka, shop: Shop, largest: int | None) -> None:
    kafka.largest, kafka.refused = largest, [b"first", b"second", b"third"]
    for number, payload in enumerate(kafka.refused):
        shop.book(payload, shard=number // 2)
    relay = OutboxRelay(shop.engine, options=RelayOptions(lease=3_600))
    assert (await relay.drain(), relay.refused, kafka.look_ups) == (0, 3, 1)


async def test_a_limit_is_looked_up_again_after_a_minute(kafka: Kafka) -> None:
    clock = SettableClock(1_000_000)
    limit = topic_limit.TopicLimit(Connection("127.0.0.1:9"), "commands", lambda: clock.now() / 1_000)
    found = []
    for largest in (1, 2, 3, None, 5):
        kafka.largest = largest
        found.append(await limit.largest())
        clock.advance(40_000)
    assert found == [1, 1, 3, 3, 5]


@pytest.mark.parametrize(
    ("step", "gets_it_back"),
    [(Step.FENCED, False), *product([Step.CLAIMED, Step.SENT, Step.SETTLED], [False, True])],
)
async def test_a_relay_that_has_lost_its_shard_does_not_set_a_row_aside_that_another_may_have_sent(
    kafka: Kafka, shop: Shop, step: Step, gets_it_back: bool
) -> None:
    """It would be sent again when somebody sets `refused` to null."""
    frozen, killed = await shop.relay(), await shop.relay(on_step=kill_at(step))
    kafka.refused = [b"large"]
    shop.book(b"large")

    def take_over() -> None:
        kafka.refused = []  # the topic's limit was raised
        with pytest.raises(KilledError):
            asyncio.run(killed._round())
        if gets_it_back:
            with shop.engine.begin() as connection:
                assert frozen._ledger.attend(connection)

    kafka.on_look_up = take_over
    assert await frozen._round() == 0
    assert frozen.refused == 0
    assert await OutboxRelay(shop.engine, options=RelayOptions(lease=OVER_AT_ONCE_S)).drain() == (
        step in (Step.FENCED, Step.CLAIMED)
    )
    assert (kafka.sent, shop.rows) == ([b"large"], 0)


async def test_the_reason_of_another_refusal_names_the_error_and_what_to_do(kafka: Kafka, shop: Shop) -> None:
    kafka.refused, kafka.cause = [b"old"], InvalidTimestampError
    shop.book(b"old")
    assert await OutboxRelay(shop.engine, options=RelayOptions(lease=3_600)).drain() == 0
    commands = shop.outbox.tables.commands
    with shop.engine.connect() as connection:
        (reason,) = connection.scalars(select(commands.c.refused))
    assert reason.startswith("topic light-scheduler-commands refuses it: InvalidTimestampError(). Correct it and set")


def test_a_blocking_relay_says_how_many_commands_its_drains_have_set_aside(kafka: Kafka, shop: Shop) -> None:
    relay = BlockingOutboxRelay(shop.engine, options=RelayOptions(lease=3_600))
    for number, payload in enumerate([b"first", b"second"], 1):
        kafka.refused = [payload]
        shop.book(payload)
        shop.book(b"another")
        assert relay.drain() == 1
        assert (relay.sent, relay.refused, relay.refused_rows) == (number, number, number)


async def test_a_topic_that_takes_nothing_is_no_fault_of_a_command(kafka: Kafka, shop: Shop) -> None:
    kafka.refused, kafka.is_of_topic = [b"first"], True
    shop.book(b"first")
    with pytest.raises(BrokerError, match="refused commands of the outbox"):
        await OutboxRelay(shop.engine, options=RelayOptions(lease=3_600)).drain()
    kafka.refused = []
    assert await OutboxRelay(shop.engine, options=RelayOptions(lease=3_600)).drain() == 1


async def test_an_outbox_in_a_schema_is_found_there(kafka: Kafka, tmp_path: Path) -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False})
    outbox = Outbox(metadata := MetaData(schema="shop"))
    with engine.begin() as connection:
        connection.exec_driver_sql(f"ATTACH DATABASE '{tmp_path}/shop.db' AS shop")
    metadata.create_all(engine)
    with engine.begin() as connection:
        outbox.schedule(connection, "a", b"mail", topic="mails", after="1h")
    with pytest.raises(ConfigurationError, match="name the schema"):
        await OutboxRelay(engine).drain()
    assert await OutboxRelay(engine, options=RelayOptions(schema="shop")).drain() == 1
    assert list(kafka.owners) == [f"light-scheduler-outbox-shop.light_scheduler_outbox-{shard_of(b'a')}"]
