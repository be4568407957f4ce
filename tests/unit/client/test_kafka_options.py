"""Options of Kafka's clients: each client gets those that it has, and what is wrong is said by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaConnectionError

from light_scheduler.client import BlockingSchedulerClient, Firing, FiringConsumer, SchedulerClient
from light_scheduler.client.reading import Reader
from light_scheduler.errors import BrokerUnreachable, InvalidCommand
from light_scheduler.host.ports import free_port


def member(**options: Any) -> FiringConsumer:
    return FiringConsumer(cast("Any", None), f"127.0.0.1:{free_port()}", group_id="g", **options)


async def nothing(_: Firing) -> None:
    return


ADDRESS = "is set by the argument bootstrap_servers$"
FIXED = "cannot be changed: exactly-once delivery depends on it"


@pytest.mark.parametrize(
    ("make", "option", "reason"),
    [
        (SchedulerClient, "linger", "linger is not an option of .* Did you mean linger_ms"),
        (SchedulerClient, "linger.ms", "linger.ms is not an option of .* Did you mean linger_ms?"),
        (SchedulerClient, "topics", "topics is not an option of aiokafka's producer or consumer"),
        (SchedulerClient, "xyz", "xyz is not an option of aiokafka's producer or consumer$"),
        *((make, "bootstrap_servers", ADDRESS) for make in (SchedulerClient, member)),
        *((BlockingSchedulerClient, option, ADDRESS) for option in ("bootstrap.servers", "metadata.broker.list")),
        (SchedulerClient, "group_id", "group_id cannot be changed: the client reads results outside of any group"),
        (SchedulerClient, "isolation_level", FIXED),
        (SchedulerClient, "enable_auto_commit", FIXED),
        (SchedulerClient, "value_serializer", "cannot be changed: records are read and written as bytes"),
        (SchedulerClient, "value_deserializer", "cannot be changed: records are read and written as bytes"),
        (BlockingSchedulerClient, "group.id", "cannot be changed: the client reads results outside of any group"),
        (BlockingSchedulerClient, "isolation.level", FIXED),
        (BlockingSchedulerClient, "enable.auto.commit", FIXED),
        (member, "group_id", "group_id is set by the argument group_id"),
        (member, "isolation_level", FIXED),
        (member, "linger_ms", "linger_ms is not an option of aiokafka's consumer"),
        (member, "max_poll_record", "Did you mean max_poll_records?"),
    ],
)
def test_an_option_that_cannot_be_given_is_refused_by_its_name(
    make: Callable[..., Any], option: str, reason: str
) -> None:
    with pytest.raises(InvalidCommand, match=f"^kafka_options: {option} ") as refused:
        make(kafka_options={option: 1})
    assert refused.match(reason)


async def test_options_of_a_producer_or_of_a_consumer_alone_disturb_neither() -> None:
    options = {"linger_ms": 5, "fetch_max_wait_ms": 10}
    server = f"127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnreachable):
        await SchedulerClient(server, kafka_options=options).start()
    with pytest.raises(KafkaConnectionError):
        await Reader.open({"bootstrap_servers": server, **options}, "t", [0])


async def test_a_value_that_aiokafka_refuses_is_a_wrong_argument() -> None:
    refused = "kafka_options: has a value that aiokafka refuses: "
    with pytest.raises(InvalidCommand, match=f"{refused}Invalid compression type!"):
        await SchedulerClient(kafka_options={"compression_type": "x"}).start()
    with pytest.raises(InvalidCommand, match=f"{refused}`max_poll_records` should be"):
        await Reader.open({"bootstrap_servers": "127.0.0.1:1", "max_poll_records": 0}, "t", [0])
    consumer = member(kafka_options={"max_poll_records": 0})
    consumer.on_firing("reminders")(nothing)
    with pytest.raises(InvalidCommand, match=f"{refused}`max_poll_records` should be"):
        await consumer.run()


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("linger.mss", 5, 'No such configuration property: "linger.mss"'),
        ("linger.ms", "x", "Invalid value for configuration property"),
        ("linger.ms", -1, "outside allowed range"),
    ],
)
def test_an_option_that_librdkafka_refuses_is_a_wrong_argument(option: str, value: object, reason: str) -> None:
    options = {"client.id": "shop", option: value}
    client = BlockingSchedulerClient(f"127.0.0.1:{free_port()}", kafka_options=options)
    with pytest.raises(
        InvalidCommand, match=rf"kafka_options: librdkafka refuses (client.id or )?{option}: .*{reason}"
    ):
        client.start()
    client.close()
