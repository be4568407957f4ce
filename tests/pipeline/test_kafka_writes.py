"""Exactly-once writes, and what else our Kafka format has beyond Spark's own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from support.kafka_records import await_decided
from support.ordering import ordered_producer

from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.kafka.marks import NOTHING_WRITTEN, Mark, MarkedProducer
from light_scheduler.pipeline.topics import register
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.soak]


@pytest.fixture
def topic(kafka: Kafka, prefix: str) -> str:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    return prefix


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def decided(session: SparkSession, kafka: Kafka, topic: str) -> list[int]:
    """Return what is committed once every transaction is decided."""
    await_decided(kafka, topic)
    return committed(session, kafka, topic)


def committed(session: SparkSession, kafka: Kafka, topic: str) -> list[int]:
    reader = session.read.format(FORMAT).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    return sorted(int(row.value) for row in reader.option("subscribe", topic).load().collect())


def write(table: DataFrame, kafka: Kafka, **options: Any) -> None:
    writer = table.write.format(FORMAT).mode("append").option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    for name, value in options.items():
        writer = writer.option(name, value)
    writer.save()


def numbers(session: SparkSession, count: int) -> DataFrame:
    return session.range(0, count, 1, 2).selectExpr("cast(id as string) value")


def fail_inside(writer: MarkedProducer, topic: str) -> None:
    with writer.transaction(Mark(4, "four")) as producer:
        producer.produce(topic, b"2")
        producer.flush()
        raise KeyError


class TestMarks:
    def test_records_and_mark_are_there_together_or_not_at_all(
        self, session: SparkSession, kafka: Kafka, topic: str
    ) -> None:
        client = {"bootstrap.servers": kafka.bootstrap_servers}
        with MarkedProducer(client, f"{topic}-writer", topic) as writer:
            assert writer.mark == NOTHING_WRITTEN
            with writer.transaction(Mark(3, "three")) as producer:
                producer.produce(topic, b"1")
            with pytest.raises(KeyError):
                fail_inside(writer, topic)
        with MarkedProducer(client, f"{topic}-writer", topic) as again:
            assert again.mark == Mark(3, "three")
        assert decided(session, kafka, topic) == [1]

    def test_a_successor_ends_what_its_predecessor_left_open(
        self, session: SparkSession, kafka: Kafka, topic: str
    ) -> None:
        client = {"bootstrap.servers": kafka.bootstrap_servers}
        frozen = MarkedProducer(client, f"{topic}-writer", topic)
        frozen.producer.begin_transaction()
        frozen.producer.produce(topic, b"-1")
        frozen.producer.flush()
        with MarkedProducer(client, f"{topic}-writer", topic) as successor:
            assert successor.mark == NOTHING_WRITTEN
            with successor.transaction(Mark(0, "")) as producer:
                producer.produce(topic, b"1")
        assert decided(session, kafka, topic) == [1]
        frozen.__exit__(None, None, None)


class TestTables:
    def test_a_table_written_again_with_its_write_id_adds_nothing(
        self, session: SparkSession, kafka: Kafka, topic: str
    ) -> None:
        once = {"topic": topic, "transactionalId": f"{topic}-writer", "writeId": "monday"}
        write(numbers(session, 100), kafka, **once)
        write(numbers(session, 100), kafka, **once)
        assert decided(session, kafka, topic) == list(range(100))
        write(numbers(session, 1), kafka, **{**once, "writeId": "tuesday"})
        assert decided(session, kafka, topic) == [0, *range(100)]

    def test_a_task_that_fails_half_way_leaves_nothing(self, session: SparkSession, kafka: Kafka, topic: str) -> None:
        failing = numbers(session, 100).selectExpr("if(value = '60', raise_error('planted'), value) value")
        with pytest.raises(Exception, match="planted"):
            write(failing, kafka, topic=topic, transactionalId=f"{topic}-writer")
        assert set(committed(session, kafka, topic)) <= set(range(50))  # the other task's, or nothing


def test_a_micro_batch_that_is_run_again_is_written_once(
    session: SparkSession, kafka: Kafka, topic: str, prefix: str, tmp_path: Path
) -> None:
    source = f"{prefix}-source"
    create_topic(kafka.bootstrap_servers, source, 2)
    producer = ordered_producer(kafka.bootstrap_servers)
    for number in range(40):
        producer.produce(source, b"%d" % number, partition=number % 2)
    producer.flush()

    def run() -> None:
        reader = session.readStream.format(FORMAT).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        rows = reader.option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
        writer = rows.writeStream.format(FORMAT).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        writer = writer.option("topic", topic).option("transactionalId", f"{topic}-query")
        writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()

    run()
    # As if the process had died after its transactions and before Spark noted that the batch was done.
    for path in (tmp_path / "commits").iterdir():
        path.unlink()
    run()
    assert decided(session, kafka, topic) == list(range(40))


def test_rows_are_written_from_a_thread_in_which_no_session_is_active_or_another_one_is(
    spark: SparkSession, kafka: Kafka, topic: str
) -> None:
    def run(other: SparkSession | None) -> None:
        if other is not None:
            other.createDataFrame([], "nothing int")
        register(spark)
        write(numbers(spark, 10), kafka, topic=topic)

    for other in (None, spark.newSession()):
        with ThreadPoolExecutor(1) as threads:
            threads.submit(run, other).result()
    assert decided(spark, kafka, topic) == sorted([*range(10)] * 2)


def test_committed_records_only_are_read_unless_asked_otherwise(
    session: SparkSession, kafka: Kafka, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-aborted"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"1")
    producer.flush()
    producer.abort_transaction()
    reader = session.read.format(FORMAT).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    reader = reader.option("subscribe", topic)
    assert reader.load().count() == 0
    assert reader.option("kafka.isolation.level", "read_uncommitted").load().count() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "a", "assign": "{}"}, "exactly one"),
        ({}, "exactly one"),
        ({"subscribe": "a", "startingOfsets": "earliest"}, "startingofsets is not known"),
        ({"subscribe": "a", "startingOffsets": "monday"}, "startingOffsets is not JSON"),
        ({"subscribe": "a", "failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger must be a whole number"),
    ],
)
def test_a_bad_option_is_refused_by_name(
    session: SparkSession, kafka: Kafka, options: dict[str, str], message: str
) -> None:
    reader = session.read.format(FORMAT).option("kafka.bootstrap.servers", kafka.bootstrap_servers)
    for name, value in options.items():
        reader = reader.option(name, value)
    with pytest.raises(Exception, match=message):
        reader.load()
