"""A compacted topic that is followed while it is deleted and made again."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError
from support.reading import read_all
from support.slow_broker import hanging
from support.waiting import eventually

from light_scheduler.connection import Connection
from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.errors import BrokerError, ChangeUnconfirmed, InvalidCommand
from light_scheduler.kafka import compacted, connection
from light_scheduler.kafka.compacted import Change, CompactedTopic, LogEnds
from light_scheduler.kafka.quiet_producer import QuietProducer
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration


async def test_what_is_written_to_a_topic_that_was_made_again_is_read_back_and_the_rest_is_forgotten(
    kafka: Kafka,
) -> None:
    async with followed_topic(kafka, "settings-made-again") as (topic, admin):
        await topic.write_all((b"%d" % number, b"before") for number in range(20))
        assert len(topic.entries) == 20
        await made_again(kafka, admin, "settings-made-again")

        async def is_written() -> bool:
            try:
                await topic.write(b"a", b"after")
            except BrokerError:
                return False
            return True

        await eventually(is_written, within=60)
        assert topic.entries == {b"a": b"after"}


async def test_who_catches_up_with_a_topic_that_was_made_again_knows_nothing_of_the_one_before(kafka: Kafka) -> None:
    async with followed_topic(kafka, "settings-caught-up") as (topic, admin):
        await topic.write_all((b"%d" % number, b"before") for number in range(20))
        await topic.catch_up()
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as other:
            await other.send_and_wait("settings-caught-up", b"before", key=b"z")
            await made_again(kafka, admin, "settings-caught-up")
            await other.send_and_wait("settings-caught-up", b"after", key=b"a")

            await topic.catch_up()

        assert topic.entries == {b"a": b"after"}


async def test_of_changes_that_are_made_at_the_same_time_none_is_lost(kafka: Kafka) -> None:
    async with (
        followed_topic(kafka, "settings-changed") as (one, _),
        followed_topic(kafka, "settings-changed") as (other, _),
        followed_topic(kafka, "settings-changed") as (third, _),
    ):

        async def add(topic: CompactedTopic, name: bytes) -> None:
            await topic.change(lambda: Change([(b"names", topic.entries.get(b"names", b"") + name)]))

        await asyncio.gather(add(one, b"a"), add(other, b"b"), add(third, b"c"))
        await add(one, b"d")
        await one.write(b"another", b"1")
        await other.catch_up()
        assert sorted(other.entries[b"names"]) == sorted(b"abcd")
        assert other.entries[b"another"] == b"1"


@pytest.mark.parametrize("is_carried_out", [True, False])
async def test_a_change_whose_commit_fails_is_looked_up_and_made_again_only_if_it_is_not_stored(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, is_carried_out: bool
) -> None:
    name = f"settings-looked-up-{is_carried_out}".lower()
    commit = QuietProducer.commit_transaction
    failed: list[QuietProducer] = []

    async def fail_once(self: QuietProducer) -> None:
        if failed:
            await commit(self)
            return
        failed.append(self)
        await (commit(self) if is_carried_out else self.abort_transaction())
        raise KafkaError("UNKNOWN_SERVER_ERROR")

    monkeypatch.setattr(QuietProducer, "commit_transaction", fail_once)
    async with followed_topic(kafka, name) as (topic, _):
        await topic.change(lambda: Change([(b"names", topic.entries.get(b"names", b"") + b"a")]))
        assert failed
        assert topic.entries == {b"names": b"a"}
        await topic.change(lambda: Change([(b"names", topic.entries.get(b"names", b"") + b"b")]))
        assert topic.entries == {b"names": b"ab"}
    assert [record.value for record in await read_all(kafka.bootstrap_servers, name)] == [b"a", b"ab"]


@pytest.mark.soak
async def test_a_change_whose_commit_fails_again_ends_with_the_reason_and_is_not_stored(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: QuietProducer) -> None:
        await self.abort_transaction()
        raise KafkaError("the coordinator is upset")

    async with followed_topic(kafka, "settings-failing") as (topic, _):
        with monkeypatch.context() as failing:
            failing.setattr(QuietProducer, "commit_transaction", fail)
            with pytest.raises(BrokerError, match="the coordinator is upset") as raised:
                await topic.change(lambda: Change([(b"a", b"1")]))
        assert not isinstance(raised.value, ChangeUnconfirmed)
        await topic.change(lambda: Change([(b"b", b"2")]))
        assert topic.entries == {b"b": b"2"}


async def test_a_change_and_what_the_history_tells_of_it_are_written_together_or_not_at_all(kafka: Kafka) -> None:
    history = "changes-history"
    async with followed_topic(kafka, "settings-told", history) as (topic, admin):
        with pytest.raises(BrokerError, match="changes-history does not exist or cannot be looked up"):
            await topic.change(lambda: Change([(b"a", b"1")], (b"/", b"first")))
        assert topic.entries == {}
        await admin.create_topics([NewTopic(history, 2, 1, topic_configs={"max.message.bytes": "200"})])
        large = b"x" * 1_000
        with pytest.raises(InvalidCommand, match="too large"):
            await topic.change(lambda: Change([(b"a", b"1")], (b"/", large)))
        await topic.catch_up()
        assert topic.entries == {}
        await topic.change(lambda: Change([(b"a", b"1")], (b"/", b"first")))
        await topic.change(lambda: Change([(b"a", None)], (b"/", b"second")))
        assert topic.entries == {}
        told = await read_all(kafka.bootstrap_servers, history)
        assert [(record.partition, record.key, record.value) for record in told] == [
            (0, b"/", b"first"),
            (0, b"/", b"second"),
        ]


@pytest.mark.soak
async def test_a_change_ends_in_time_though_the_broker_hangs_meanwhile_and_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deadline_s, close_s = 3.0, 0.5
    with EmbeddedBroker() as broker:
        async with followed_topic(broker, "settings", "told") as (topic, admin):
            await admin.create_topics([NewTopic("told", 1, 1)])

            class Hanging:
                """Entries that stop the broker when all but the last one are written."""

                def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
                    yield b"a", b"1"
                    broker.send_signal(signal.SIGSTOP)
                    yield b"b", b"1"

            began = time.monotonic()
            try:
                with monkeypatch.context() as hurried:
                    hurried.setattr(compacted, "WRITE_TIMEOUT_S", deadline_s)
                    hurried.setattr(connection, "_CLOSE_TIMEOUT_S", close_s)
                    with pytest.raises(BrokerError, match="changing settings: the broker did not answer in time"):
                        await topic.change(lambda: Change(Hanging(), (b"/", b"first")))
                assert time.monotonic() - began < deadline_s + 10 * close_s
            finally:
                broker.send_signal(signal.SIGCONT)

            async def is_made() -> bool:
                with suppress(BrokerError):
                    await topic.change(lambda: Change([(b"c", b"2")], (b"/", b"second")))
                return bool(topic.entries)

            await eventually(is_made, within=60, what="a change")
            assert topic.entries == {b"c": b"2"}
            (told,) = await read_all(broker.bootstrap_servers, "told")
            assert told.value == b"second"


async def test_who_catches_up_does_not_wait_for_the_next_record(kafka: Kafka) -> None:
    async with followed_topic(kafka, "settings-at-rest") as (topic, _):
        await topic.write(b"a", b"1")
        await topic.catch_up()
        took = []
        for _ in range(10):
            await asyncio.sleep(0.01)  # the consumer's question for more records is on its way
            began = time.monotonic()
            await topic.catch_up()
            took.append(time.monotonic() - began)
        assert min(took) < 0.1


@pytest.mark.soak
@pytest.mark.every_case
async def test_where_a_topic_ends_is_learned_although_a_broker_hangs(kafka: Kafka) -> None:
    async with followed_topic(kafka, "settings-asked-for") as (topic, _), hanging() as silent:
        await topic.write(b"a", b"1")
        connection = Connection(f"{silent},{kafka.bootstrap_servers}")
        for _ in range(4):  # either may be asked first
            async with asyncio.timeout(30), LogEnds(connection, TopicPartition("settings-asked-for", 0)) as ends:
                assert await ends.now() == 1


@asynccontextmanager
async def followed_topic(
    kafka: Kafka, name: str, history: str | None = None
) -> AsyncIterator[tuple[CompactedTopic, AIOKafkaAdminClient]]:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    await admin.create_topics([NewTopic(name, 1, 1, topic_configs={"cleanup.policy": "compact"})])
    topic = CompactedTopic(kafka.bootstrap_servers, name, history)
    following = asyncio.create_task(topic.follow(lambda: None))
    try:
        await eventually(lambda: topic.is_loaded)
        yield topic, admin
    finally:
        following.cancel()
        await asyncio.wait([following])
        await admin.close()


async def made_again(kafka: Kafka, admin: AIOKafkaAdminClient, name: str) -> None:
    """Delete a topic and make it again; return when the broker has the new log, and no longer the old one."""
    await admin.delete_topics([name])

    async def is_made_again() -> bool:
        return (await admin.create_topics([NewTopic(name, 1, 1)])).topic_errors[0][1] in (0, 36)

    await eventually(is_made_again)
    async with LogEnds(Connection(kafka.bootstrap_servers), TopicPartition(name, 0)) as ends:

        async def is_empty() -> bool:
            with suppress(KafkaError):
                return await ends.now() == 0
            return False

        await eventually(is_empty)
