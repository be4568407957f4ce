"""SchedulerClient against a real broker; a hand-driven responder stands in for the workers."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.structs import ConsumerRecord
from support.responder import PARTITIONS, responder, with_topics
from support.waiting import eventually

from light_scheduler.client import NotDelivered, SchedulerClient, ScheduleRequest, Unanswered
from light_scheduler.client.channel import Channel, ChannelTopics, MakeCommand
from light_scheduler.client.commands import schedule_command
from light_scheduler.client.errors import CommandRefused, ResultTimeout
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.errors import BrokerError, ClientError, InvalidCommand
from light_scheduler.kafka import connection
from light_scheduler.model import After, EventType, HistoryEvent, Once, Outcome, ScheduleCommand, TopicNames
from light_scheduler.testing import Kafka
from light_scheduler.wire import dialect_named, encode_history, history_key, partition_for

pytestmark = pytest.mark.integration
AT = 4_102_444_800_000


async def records_of(kafka: Kafka, topic: str, count: int) -> list[ConsumerRecord]:
    """The first records of a topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed")
    await consumer.start()
    try:
        places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        async with asyncio.timeout(60):
            return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()


async def test_scheduling_returns_the_schedulers_result(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names) as seen:
        result = await client.schedule(
            "a", b"\x00\xff", topic="t", at=AT, headers={"trace": b"\xff"}, labels={"k": "v"}
        )
    assert (result.outcome, result.tenant, result.id) == (Outcome.SCHEDULED, "default", "a")
    (command,) = seen
    assert isinstance(command, ScheduleCommand)
    assert (command.timing, command.payload, command.key, command.target.key) == (Once(AT), b"\x00\xff", b"a", b"a")
    assert (command.headers, command.labels) == ([("trace", b"\xff")], {"k": "v"})
    assert (result.partition, result.offset) == (command.partition, command.offset)


async def test_cancelling_returns_the_schedulers_result(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names):
        result = await client.cancel("a", key="customer")
    assert (result.command, result.outcome) == ("cancel", Outcome.CANCELLED)


async def test_many_calls_at_once_each_get_their_own_answer(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names):
        results = await asyncio.gather(*(client.schedule(f"id-{n}", topic="t", after="1h") for n in range(50)))
    assert [result.id for result in results] == [f"id-{n}" for n in range(50)]


async def test_two_clients_of_one_application_do_not_take_each_others_answers(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names), SchedulerClient(kafka.bootstrap_servers, app_id=names.app_id) as other:
        results = await asyncio.gather(client.schedule("one", topic="t"), other.schedule("other", topic="t"))
    assert [result.id for result in results] == ["one", "other"]


async def test_a_channel_that_rests_reads_nothing_until_it_asks_again(kafka: Kafka, names: TopicNames) -> None:
    def make(id: str) -> MakeCommand:
        return lambda reply_to: schedule_command("default", {"id": id, "topic": "t"}, reply_to=reply_to)

    topics = ChannelTopics(names.commands, names.results)
    channel = Channel({"bootstrap_servers": kafka.bootstrap_servers}, topics)
    async with responder(kafka, names), channel:
        idle = asyncio.all_tasks()
        await channel.rest()
        assert (await channel.ask(make("a"), 20)).id == "a"
        waiting = asyncio.create_task(channel.ask(make("silent"), 60))
        assert (await channel.ask(make("b"), 20)).id == "b"
        await channel.rest()
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait([waiting])
        await channel.rest()
        assert "light-scheduler results" not in {task.get_name() for task in asyncio.all_tasks() - idle}
        answers = await asyncio.gather(*(channel.ask(make(f"c-{number}"), 20) for number in range(5)))
        assert [answer.id for answer in answers] == [f"c-{number}" for number in range(5)]


@pytest.mark.parametrize("id", ["refused-1", "conflict-1"])
async def test_a_refusal_is_raised_with_its_result(
    kafka: Kafka, names: TopicNames, client: SchedulerClient, id: str
) -> None:
    async with responder(kafka, names):
        with pytest.raises(CommandRefused) as caught:
            await client.schedule(id, topic="t", at=AT)
        result = await client.schedule(id, topic="t", at=AT, raise_on_refusal=False)
    assert caught.value.result.id == id
    assert result.outcome == caught.value.result.outcome


async def test_without_an_answer_the_time_out_names_the_id_and_later_calls_still_work(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names):
        await client.schedule("a", topic="t")  # opens what answers are read with
        with pytest.raises(ResultTimeout, match="default/silent-1"):
            await client.schedule("silent-1", topic="t", timeout=5)
        assert (await client.schedule("b", topic="t")).outcome is Outcome.SCHEDULED


async def test_without_waiting_the_receipt_names_the_record_in_the_partition_of_the_key(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    receipt = await client.schedule("a", topic="t", key="köy", target_key=None, wait=False)
    (record,) = await records_of(kafka, names.commands, 1)
    assert (receipt.id, receipt.partition, receipt.offset) == ("a", record.partition, record.offset)
    assert record.partition == partition_for("köy".encode(), PARTITIONS)
    command = dialect_named("native").decode(record)
    assert isinstance(command, ScheduleCommand)
    assert (command.key, command.target.key, command.reply_to) == ("köy".encode(), None, None)


async def test_an_id_that_is_not_given_is_made_and_told(client: SchedulerClient) -> None:
    first = await client.schedule(topic="t", wait=False)
    second = await client.schedule(topic="t", wait=False)
    assert uuid.UUID(first.id).version == 7
    assert first.id != second.id


async def test_send_later_takes_key_value_topic_and_time(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    for when in (datetime(2100, 1, 1, tzinfo=UTC), AT, timedelta(minutes=15)):
        await client.send_later(b"\xff", b"v", "t", when)
    commands = [dialect_named("native").decode(record) for record in await records_of(kafka, names.commands, 3)]
    assert [command.timing for command in commands if isinstance(command, ScheduleCommand)] == [
        Once(AT),
        Once(AT),
        After(900_000),
    ]
    assert {command.key for command in commands} == {b"\xff"}
    assert len({command.id for command in commands}) == 3


async def test_many_requests_are_sent_in_batches_and_told_in_order(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    payload = bytes(2_000)
    requests: list[ScheduleRequest] = [
        {"id": f"id-{n}", "payload": payload, "topic": "t", "at": AT} for n in range(1_000)
    ]
    receipts = await client.schedule_many(requests)
    assert [receipt.id for receipt in receipts] == [f"id-{n}" for n in range(1_000)]
    records = {(record.partition, record.offset): record for record in await records_of(kafka, names.commands, 1_000)}
    for receipt in receipts:
        record = records[receipt.partition, receipt.offset]
        assert record.key == receipt.id.encode()
        assert record.partition == partition_for(record.key, PARTITIONS)


async def test_many_requests_can_wait_for_their_results_also_refused_ones(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    requests: list[ScheduleRequest] = [{"id": id, "topic": "t"} for id in ("a", "refused-1", "b")]
    async with responder(kafka, names):
        results = await client.schedule_many(requests, wait=True)
    assert [(result.id, result.outcome) for result in results] == [
        ("a", "scheduled"),
        ("refused-1", "rejected"),
        ("b", "scheduled"),
    ]


async def test_what_is_not_answered_in_time_is_marked_among_the_results(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    requests: list[ScheduleRequest] = [{"id": id, "topic": "t"} for id in ("a", "silent-1", "b")]
    async with responder(kafka, names):
        await client.schedule("opened", topic="t")  # what answers are read with
        first, missing, last = await client.schedule_many(requests, wait=True, timeout=10)
    assert (first.outcome, last.outcome) == (Outcome.SCHEDULED, Outcome.SCHEDULED)
    assert isinstance(missing, Unanswered)
    assert (missing.id, missing.outcome) == ("silent-1", None)
    assert missing.partition == partition_for(b"silent-1", PARTITIONS)


async def test_a_client_has_all_its_answers_in_one_partition(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names):
        await client.schedule_many(({"id": f"id-{n}", "topic": "t"} for n in range(20)), wait=True)
    answers = await records_of(kafka, names.results, 20)
    assert len({partition_for(record.key, PARTITIONS) for record in answers}) == PARTITIONS
    assert len({record.partition for record in answers}) == 1


async def test_a_payload_that_no_record_can_hold_is_refused_here(client: SchedulerClient) -> None:
    with pytest.raises(InvalidCommand, match="payload"):
        await client.schedule("a", bytes(3_000_000), topic="t", wait=False)
    with pytest.raises(InvalidCommand, match="payload"):
        await client.schedule_many([{"id": "a", "payload": bytes(3_000_000), "topic": "t"}])


async def test_following_the_history_sees_committed_events_from_now_on_or_from_the_beginning(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    def event(id: str, kind: EventType = EventType.FIRED) -> tuple[bytes, bytes]:
        record = HistoryEvent(kind, "acme", id, 1, AT, AT, 1, 1, "t", None, 0)
        return encode_history(record), history_key("acme", id)

    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=names.app_id)
    await producer.start()
    try:
        async with producer.transaction():
            await producer.send_and_wait(names.history, *event("order-1"))
            await producer.send_and_wait(names.history, *event("other-1"))
            await producer.send_and_wait(names.history, *event("order-2", EventType.SCHEDULED))
        await producer.begin_transaction()
        await producer.send_and_wait(names.history, *event("order-aborted"))
        await producer.abort_transaction()
    finally:
        await producer.stop()
    seen = set()
    events = client.watch(id_prefix="order-", from_beginning=True)
    async with asyncio.timeout(60):
        seen.add((await anext(events)).id)
        seen.add((await anext(events)).id)
    await events.aclose()
    assert seen == {"order-1", "order-2"}
    events = client.watch(tenant="acme", events={EventType.FIRED}, from_beginning=True)
    async with asyncio.timeout(60):
        assert {(await anext(events)).id for _ in range(2)} == {"order-1", "other-1"}
    await events.aclose()


async def test_closing_ends_those_who_wait(kafka: Kafka, names: TopicNames, client: SchedulerClient) -> None:
    async with asyncio.timeout(60):
        waiting = asyncio.create_task(client.schedule("silent", topic="t", timeout=60))
        await records_of(kafka, names.commands, 1)
        await client.close()
        with pytest.raises(BrokerError, match="the client was closed"):
            await waiting


async def test_a_call_that_is_given_up_leaves_the_client_usable(
    kafka: Kafka, names: TopicNames, client: SchedulerClient
) -> None:
    async with responder(kafka, names):
        given_up = asyncio.create_task(client.schedule("silent", topic="t"))
        await records_of(kafka, names.commands, 1)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await client.schedule("b", topic="t")).id == "b"


@pytest.mark.soak
async def test_when_the_broker_dies_calls_end_in_time_and_closing_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "_CLOSE_TIMEOUT_S", 1.0)
    with EmbeddedBroker() as broker:
        names = await with_topics(broker)
        client = SchedulerClient(broker.bootstrap_servers, app_id=names.app_id)
        client._channel._close_timeout = 1.0
        await client.start()
        waiting = asyncio.create_task(client.schedule("silent", topic="t", timeout=15))
        await records_of(broker, names.commands, 1)
        # Acknowledgements come in order: when this one is there, so is the one of the command that waits.
        await client.schedule("silent too", topic="t", wait=False)
        os.kill(broker.pid, signal.SIGKILL)
        with pytest.raises(BrokerError, match="default/lost: the broker did not answer in time"):
            await client.schedule("lost", topic="t", wait=False, timeout=1)
        with pytest.raises(ResultTimeout, match="default/silent"):
            await waiting
        with pytest.raises(NotDelivered) as caught:
            await client.close()
        assert caught.value.commands == [("default", "lost")]


async def test_a_client_that_is_not_open_says_so(kafka: Kafka) -> None:
    with pytest.raises(ClientError, match="async with"):
        await SchedulerClient(kafka.bootstrap_servers).schedule("a", topic="t")


async def test_a_missing_commands_topic_is_named(kafka: Kafka) -> None:
    async with SchedulerClient(kafka.bootstrap_servers, app_id="nobody", connect_timeout=5) as client:
        with pytest.raises(BrokerError, match="nobody-commands does not exist"):
            await client.schedule("a", topic="t", wait=False)
        with pytest.raises(BrokerError, match="nobody-commands does not exist"):
            await client.schedule_many([{"id": "a", "topic": "t"}])


@pytest.mark.parametrize("wait", [True, False])
async def test_a_look_up_ends_when_the_time_of_the_call_is_up(kafka: Kafka, wait: Any) -> None:
    async with SchedulerClient(kafka.bootstrap_servers, app_id="nobody", connect_timeout=120) as client:
        async with asyncio.timeout(60):
            with pytest.raises(BrokerError, match=f"nobody-{'results' if wait else 'commands'} does not exist"):
                await client.schedule("a", topic="t", wait=wait, timeout=0.5)


async def test_a_broker_that_is_not_there_is_an_error_in_bounded_time(unused_tcp_port: int) -> None:
    async with asyncio.timeout(10):
        with pytest.raises(BrokerError, match=f"127.0.0.1:{unused_tcp_port}"):
            await SchedulerClient(f"kafka://127.0.0.1:{unused_tcp_port}", connect_timeout=2).start()


async def test_a_partition_that_a_topic_got_later_is_sent_to(kafka: Kafka) -> None:
    topic = f"grown-{uuid.uuid4().hex[:8]}"
    command = schedule_command("default", {"id": "a", "topic": "t"})._replace(topic=topic)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1)])
        options = {"bootstrap_servers": kafka.bootstrap_servers}
        async with Channel(options, ChannelTopics(topic, topic)) as channel:
            assert (await channel.send(command._replace(partition=0), 10)).partition == 0
            await admin.create_partitions({topic: NewPartitions(3)})

            async def has_three_partitions() -> bool:
                return len((await admin.describe_topics([topic]))[0]["partitions"]) == 3

            await eventually(has_three_partitions)
            assert (await channel.send(command._replace(partition=2), 10)).partition == 2
            with pytest.raises(BrokerError, match=f"{topic} has no partition 3"):
                await channel.send(command._replace(partition=3), 10)
    finally:
        await admin.close()
