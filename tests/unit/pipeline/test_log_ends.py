"""Where logs begin, as librdkafka's own imitation of a cluster tells it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from support.imitated_kafka import NO_LOG, imitated_kafka

from light_scheduler.pipeline.kafka.leaders import without_errors
from light_scheduler.pipeline.kafka.log_ends import LogEnds
from light_scheduler.pipeline.kafka.options import ReadOptions

TOPIC = "orders"


def log_ends(bootstrap_servers: str) -> LogEnds:
    options = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": TOPIC}
    return LogEnds(ReadOptions.parse(options, streaming=True))


@pytest.fixture
def bootstrap_servers() -> Iterator[str]:
    with imitated_kafka(TOPIC) as address:
        yield address


def test_all_logs_are_asked_about_at_once_and_one_that_is_not_there_is_left_out(bootstrap_servers: str) -> None:
    with log_ends(bootstrap_servers) as logs:
        assert logs.earliest_of([(TOPIC, 0), (TOPIC, 1), (TOPIC, 999)], 15) == {(TOPIC, 0): 0, (TOPIC, 1): 0}
        assert logs.earliest_of([]) == {}


def test_a_cluster_that_does_not_answer_is_waited_for_no_longer_than_asked() -> None:
    with log_ends("127.0.0.1:9") as logs, pytest.raises(KafkaException, match="TIMED_OUT"):
        logs.earliest_of([(TOPIC, partition) for partition in range(50)], 0.2)


def test_a_log_that_cannot_be_asked_for_an_instant_is_no_log_without_later_records(bootstrap_servers: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "test"}, logger=NO_LOG)
    try:
        there = consumer.offsets_for_times([TopicPartition(TOPIC, 0, 0)], 15)
        assert [place.partition for place in without_errors(there)] == [0]
        with pytest.raises(KafkaException):
            without_errors(consumer.offsets_for_times([TopicPartition(TOPIC, 0, 0), TopicPartition(TOPIC, 999, 0)], 15))
    finally:
        consumer.close()
