"""A record for later: what each way to say when becomes, and what each producer is given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.structs import ConsumerRecord
from confluent_kafka import Producer

from light_scheduler.client import CommandRecords, JsonSerializer, Record, ScheduleOptions, record_for
from light_scheduler.client.commands import schedule_command
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import After, Command, ControlCommand, Once, ScheduleCommand
from light_scheduler.wire import dialect_named, partition_for

AT = 4_102_444_800_000


def decoded(record: Record) -> Command:
    sent = ConsumerRecord("commands", 0, 0, AT, 0, record.key, record.value, None, -1, -1, record.headers)
    return dialect_named("native").decode(sent)


def received(record: Record) -> ScheduleCommand:
    command = decoded(record)
    assert isinstance(command, ScheduleCommand)
    return command


@pytest.mark.parametrize(
    ("when", "timing"),
    [
        (AT, Once(AT)),
        (datetime(2100, 1, 1, tzinfo=UTC), Once(AT)),
        ("2100-01-01T00:00:00Z", Once(AT)),
        ("2100-01-01T01:00:00+01:00", Once(AT)),
        (timedelta(minutes=15), After(900_000)),
        ("15m", After(900_000)),
        ("PT15M", After(900_000)),
        ("250ms", After(250)),
    ],
)
def test_an_instant_is_an_instant_and_a_duration_a_delay(when: Any, timing: object) -> None:
    assert received(record_for("k", b"v", "t", when)).timing == timing


@pytest.mark.parametrize(
    ("when", "reason"),
    [
        ("90", "has no unit"),
        (1.5, "must be a datetime"),
        (True, "must be a datetime"),
        (None, "must be a datetime"),
        (1_767_225_600, "looks like seconds"),
        (datetime(2100, 1, 1), "has no time zone"),
        ("2100-01-01T00:00:00", "has no offset"),
        ("tomorrow", "not a duration"),
        (timedelta(seconds=-1), "not a duration"),
    ],
)
def test_a_time_that_is_none_is_refused_before_anything_is_sent(when: Any, reason: str) -> None:
    with pytest.raises(InvalidCommand, match=reason):
        record_for("k", b"v", "t", when)


def test_it_is_the_command_of_the_application_and_tenant() -> None:
    records = CommandRecords(app_id="shop", tenant="acme")
    record = record_for("k", b"\xff", "t", AT, headers={"trace": b"\x00"}, id="a", records=records)
    assert (record.topic, record.key, record.value, record.partition) == ("shop-commands", b"k", b"\xff", None)
    command = received(record)
    assert (command.tenant, command.id, command.headers) == ("acme", "a", [("trace", b"\x00")])
    assert (command.target.topic, command.target.key) == ("t", b"k")
    assert record_for("k", b"v", "t", AT, records=CommandRecords(commands_topic="own")).topic == "own"


def test_a_record_without_a_key_stays_without_one() -> None:
    record = record_for(None, b"v", "t", AT)
    assert record.key == record.id.encode()
    assert received(record).target.key is None


def test_its_partition_is_that_of_the_key_if_their_number_is_known() -> None:
    for key in ("a", "b", "c", "d"):
        record = record_for(key, b"v", "t", AT, records=CommandRecords(partitions=7))
        assert record.partition == partition_for(key.encode(), 7)


def test_each_producer_gets_arguments_that_it_takes(unused_tcp_port: int) -> None:
    record = record_for("k", b"v", "t", AT, headers={"h": b"1"})
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{unused_tcp_port}"})
    taken: list[Any] = []
    for each in (record, record._replace(partition=2)):
        producer.produce(**each.confluent(), on_delivery=lambda _, message: taken.append(message))
    producer.purge()
    assert producer.flush(5) == 0
    assert [(message.topic(), message.key(), message.value()) for message in taken] == [(record[2], b"k", b"v")] * 2
    assert {message.partition() for message in taken} == {None, 2}
    known = AIOKafkaProducer.send.__code__.co_varnames[: AIOKafkaProducer.send.__code__.co_argcount]
    assert record.aiokafka().keys() <= set(known)
    assert record.kafka_python()["headers"] == record.headers


def test_kafka_python_is_told_that_it_sends_no_null_header() -> None:
    with pytest.raises(InvalidCommand, match="the key is None, and kafka-python"):
        record_for(None, b"v", "t", AT).kafka_python()
    with pytest.raises(InvalidCommand, match="header h is None"):
        record_for("k", b"v", "t", AT, headers={"h": None}).kafka_python()


def test_a_record_has_all_that_a_schedule_may_have() -> None:
    request: ScheduleOptions = {
        "topic": "t",
        "cron": "0 9 * * 1-5",
        "timezone": "Europe/Prague",
        "labels": {"team": "billing"},
        "ack_timeout": "1m",
        "max_attempts": 3,
        "on_conflict": "keep",
        "key": "k",
    }
    record = CommandRecords(tenant="acme").schedule("a", b"v", **request)
    sent = schedule_command("acme", {**request, "id": "a", "payload": b"v"})
    assert tuple(record) == ("acme", "a", "light-scheduler-commands", sent.key, sent.value, sent.headers, None)
    assert received(record).labels == {"team": "billing"}


def test_a_record_without_id_and_key_has_a_new_id_and_payloads_are_serialised() -> None:
    records = CommandRecords(serializer=JsonSerializer())
    made = [records.schedule(payload={"n": 1}, topic="t", after="1h") for _ in range(2)]
    assert made[0].id != made[1].id
    assert received(made[0]).payload == b'{"n":1}'


def test_a_record_cancels_a_schedule_of_a_key_and_version() -> None:
    command = decoded(CommandRecords(tenant="acme").cancel("a", key="k", expected_version=3))
    assert isinstance(command, ControlCommand)
    assert (command.name, command.tenant, command.id, command.key, command.expected_version) == (
        *("cancel", "acme", "a"),
        *(b"k", 3),
    )


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(InvalidCommand, match="wenn"):
        CommandRecords().schedule("a", topic="t", wenn="1h")  # type: ignore[call-arg]
