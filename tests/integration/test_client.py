"""SchedulerClient against a real broker; a hand-driven responder stands in for the workers."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.structs import ConsumerRecord
from support.waiting import eventually

from light_scheduler.client import NotDelivered, SchedulerClient, ScheduleRequest, Unanswered
from light_scheduler.client.channel import Channel, ChannelTopics, MakeCommand
from light_scheduler.client.commands import schedule_command
from light_scheduler.client.errors import CommandRefused, ResultTimeout
from light_scheduler.devkit.broker import EmbeddedBroker
from light_scheduler.errors import BrokerError, ClientError, InvalidCommand
from light_scheduler.kafka import connection
from light_scheduler.model import (
    REJECT_PAST,
    After,
    Command,
    ControlCommand,
    EventType,
    HistoryEvent,
    Once,
    Outcome,
    Result,
    ScheduleCommand,
    Target,
    TopicNames,
)
from light_scheduler.testing import ExistingKafka, Kafka
from light_scheduler.wire import (
    decode_history,
    decode_result,
    dialect_named,
    encode_history,
    encode_result,
    history_key,
    partition_for,
    result_headers,
)

pytestmark = pytest.mark.integration

PARTITIONS = 3
AT = 4_102_444_800_000


@pytest.fixture
async def names(kafka: Kafka) -> TopicNames:
    return await with_topics(kafka)


async def with_topics(kafka: Kafka) -> TopicNames:
    """The names of an application that nobody else has, with its topics."""
    names = TopicNames(f"client-{uuid.uuid4().hex[:8]}")
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
    await admin.start()
    try:
        await admin.create_topics(
            [NewTopic(topic, PARTITIONS, 1) for topic in (names.commands, names.results, names.history)]
        )
    finally:
        await admin.close()
    return names


@pytest.fixture
async def client(kafka: Kafka, names: TopicNames) -> AsyncIterator[SchedulerClient]:
    async with SchedulerClient(kafka.bootstrap_servers, app_id=names.app_id) as client:
        yield client


@pytest.fixture(autouse=True)
async def no_task_is_left_behind() -> AsyncIterator[None]:
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}


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
        waiting = asyncio.create_task(client.schedule("silent", topic="t", timeout=8))
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


async def test_a_broker_that_is_not_there_is_an_error_in_bounded_time(unused_tcp_port: int) -> None:
    async with asyncio.timeout(10):
        with pytest.raises(BrokerError, match=f"127.0.0.1:{unused_tcp_port}"):
            await SchedulerClient(f"kafka://127.0.0.1:{unused_tcp_port}", connect_timeout=2).start()


async def command_line(kafka: Kafka, names: TopicNames, *arguments: str) -> tuple[int, str, str]:
    """Run `light-scheduler` as a process of its own: exit code, output, errors."""
    settings = ["--app-id", names.app_id, "--broker", f"kafka://{kafka.bootstrap_servers}"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from light_scheduler.cli import main; main()", *arguments, *settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


async def test_the_command_line_schedules_with_every_option(kafka: Kafka, names: TopicNames) -> None:
    async with responder(kafka, names) as seen:
        code, output, errors = await command_line(
            kafka, names, "schedule", "--id", "a", "--tenant", "acme", "--key", "k", "--at", "2100-01-01T00:00:00Z",
            "--target-topic", "t", "--target-key", "tk", "--target-partition", "1", "--payload", "ž",
            "--header", "h=a=b", "--ttl", "5s", "--on-past", "reject", "--priority", "7", "--labels", "x=y",
            "--on-conflict", "fail", "--expected-version", "3", "--json",
        )  # fmt: skip
    assert (code, errors) == (0, "")
    result = decode_result(output.encode())
    assert (result.outcome, result.tenant, result.id) == (Outcome.SCHEDULED, "acme", "a")
    (command,) = seen
    assert isinstance(command, ScheduleCommand)
    assert (command.timing, command.payload, command.headers) == (Once(AT), "ž".encode(), [("h", b"a=b")])
    assert command.target == Target("t", b"tk", 1)
    assert (command.ttl, command.on_past, command.priority, command.labels) == (5_000, REJECT_PAST, 7, {"x": "y"})
    assert (command.on_conflict, command.expected_version, command.key) == ("fail", 3, b"k")


async def test_the_command_line_cancels_and_tells_it_in_a_line(kafka: Kafka, names: TopicNames) -> None:
    async with responder(kafka, names):
        cancelled = await command_line(kafka, names, "cancel", "a", "--key", "a")
    assert cancelled == (0, "cancelled default/a version 1\n", "")


async def test_the_command_line_warns_if_no_worker_tells_where_a_schedule_is(
    kafka: Kafka, names: TopicNames, unused_tcp_port: int
) -> None:
    nobody = f"http://127.0.0.1:{unused_tcp_port}"
    async with responder(kafka, names):
        code, output, errors = await command_line(kafka, names, "cancel", "a", "--url", nobody)
    assert (code, output) == (0, "cancelled default/a version 1\n")
    assert errors.startswith(f"warning: cannot reach a worker at {nobody}. ")
    assert errors.count("\n") == 1


async def test_the_command_line_ends_with_1_and_the_reason_when_refused(kafka: Kafka, names: TopicNames) -> None:
    async with responder(kafka, names):
        arguments = ("schedule", "--id", "refused-1", "--key", "refused-1", "--target-topic", "t")
        code, output, _ = await command_line(kafka, names, *arguments)
    assert (code, output) == (1, "rejected default/refused-1 version 1 (schedule-target-topic: too large)\n")


async def test_the_command_line_need_not_wait(kafka: Kafka, names: TopicNames) -> None:
    arguments = ("schedule", "--key", "a", "--target-topic", "t", "--payload-base64", "/w==", "--no-wait", "--json")
    code, output, errors = await command_line(kafka, names, *arguments)
    assert (code, errors) == (0, "")
    (record,) = await records_of(kafka, names.commands, 1)
    assert record.value == b"\xff"
    assert msgspec.json.decode(output) == {
        "tenant": "default",
        "id": "a",
        "partition": record.partition,
        "offset": record.offset,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "1767225600"], "--at: 1767225600 looks like seconds"),
        (["--at", "4102444800000", "--after", "5s"], "--after: is given together"),
        (["--header", "novalue"], "NAME=VALUE"),
        (["--payload", "a", "--payload-base64", "YQ=="], "given together"),
        (["--payload-base64", "?"], "not base64"),
        (["--timeout", "soon"], "not a duration"),
        (["--no-such-option"], "No such option"),
    ],
)
async def test_the_command_line_ends_with_2_on_wrong_use(
    kafka: Kafka, names: TopicNames, arguments: list[str], message: str
) -> None:
    code, output, errors = await command_line(kafka, names, "schedule", "--target-topic", "t", *arguments)
    assert (code, output) == (2, "")
    assert message in errors


@pytest.mark.parametrize("arguments", [["schedule", "--target-topic", "t"], ["cancel", "a", "--key", "a"], ["watch"]])
async def test_the_command_line_ends_with_1_when_the_broker_cannot_be_reached(
    unused_tcp_port: int, names: TopicNames, arguments: list[str]
) -> None:
    nowhere = ExistingKafka(f"127.0.0.1:{unused_tcp_port}")
    async with asyncio.timeout(30):
        code, output, errors = await command_line(nowhere, names, *arguments)
    assert (code, output) == (1, "")
    assert errors.startswith(f"Error: cannot reach Kafka at 127.0.0.1:{unused_tcp_port}")
    assert errors.count("\n") == 1


async def test_the_command_line_follows_the_history(kafka: Kafka, names: TopicNames) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    await producer.start()
    try:
        for id, kind in (("a", EventType.SCHEDULED), ("b", EventType.FIRED), ("a", EventType.FIRED)):
            event = HistoryEvent(kind, "default", id, 1, AT, AT + 7, 1, 1, "t", None, 0)
            await producer.send_and_wait(names.history, encode_history(event), b"one partition, one order")
    finally:
        await producer.stop()
    follow = ("watch", "--from-beginning", "--id-prefix", "a", "--limit", "2")
    code, output, errors = await command_line(kafka, names, *follow)
    assert (code, errors) == (0, "")
    assert output.splitlines() == [
        "2100-01-01T00:00:00.007Z scheduled     default/a v1 due 2100-01-01T00:00:00.000Z -> t",
        "2100-01-01T00:00:00.007Z fired         default/a v1 due 2100-01-01T00:00:00.000Z (+7 ms) -> t",
    ]
    code, output, _ = await command_line(kafka, names, *follow, "--json")
    assert [decode_history(line.encode()).event for line in output.splitlines()] == ["scheduled", "fired"]


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
