"""What a Kafka format of Spark has to do: one suite over ours and Spark's own connector, where its jars are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import Row
from support.growing import grow
from support.kafka_records import await_decided
from support.ordering import ordered_producer
from support.waiting import eventually_blocking

from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.topics import OFFICIAL_FORMAT, official_is_here, register
from light_scheduler.testing import Kafka
from light_scheduler.wire import partition_for

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

PARTITIONS = 3
TIMEOUT_S = 60.0


@pytest.fixture(params=[FORMAT, pytest.param(OFFICIAL_FORMAT, marks=pytest.mark.every_case)])
def format(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    if request.param == OFFICIAL_FORMAT and not official_is_here(spark):
        pytest.skip("Spark's own Kafka connector is not here: `make sparkkafka` gets it, where there is Maven Central")
    register(spark)
    return str(request.param)


@pytest.fixture
def topic(kafka: Kafka, prefix: str) -> str:
    create_topic(kafka.bootstrap_servers, prefix, PARTITIONS, configs={"retention.ms": "-1"})
    return prefix


@pytest.fixture
def read(spark: SparkSession, kafka: Kafka, format: str, topic: str) -> Callable[..., DataFrame]:
    """Read the topic, committed records, with options as keywords."""

    def read(**options: Any) -> DataFrame:
        reader = spark.read.format(format)
        for name, value in {**common(kafka), "subscribe": topic, **options}.items():
            reader = reader.option(name, value)
        return reader.load()

    return read


@pytest.fixture
def stream(
    spark: SparkSession, kafka: Kafka, format: str, topic: str, tmp_path: Path
) -> Callable[..., list[tuple[str, int]]]:
    """Run a query to the topic's end and return all rows of its table: (topic, partition, offset)."""

    def stream(**options: Any) -> list[tuple[str, int]]:
        reader = spark.readStream.format(format)
        for name, value in {**common(kafka), "subscribe": topic, "startingOffsets": "earliest", **options}.items():
            reader = reader.option(name, value)
        table = str(tmp_path / "table")
        query = (
            reader.load()
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(table)
        )
        query.awaitTermination()
        return [(row.partition, row.offset) for row in spark.read.parquet(table).collect()]

    return stream


def common(kafka: Kafka) -> dict[str, str]:
    return {"kafka.bootstrap.servers": kafka.bootstrap_servers, "kafka.isolation.level": "read_committed"}


@pytest.fixture
def produce(kafka: Kafka, topic: str) -> Callable[..., None]:
    """Send values to a partition of the topic, each `{value}` as text."""

    def produce(partition: int, values: Iterator[int] | range) -> None:
        producer = ordered_producer(kafka.bootstrap_servers)  # which knows the partitions of today
        for value in values:
            producer.produce(topic, b"%d" % value, b"key", partition=partition)
        assert producer.flush(TIMEOUT_S) == 0

    return produce


@pytest.fixture
def transaction(kafka: Kafka, topic: str) -> Callable[[str], Producer]:
    """Begin a transaction."""

    def begin(name: str) -> Producer:
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-{name}"},
        )
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        return producer

    return begin


def values(rows: DataFrame | list[Row]) -> list[int]:
    return sorted(int(row.value) for row in (rows.collect() if isinstance(rows, DataFrame) else rows))


def records(kafka: Kafka, topic: str, partitions: int = PARTITIONS) -> list[Any]:
    """Return what is committed in a topic, read without Spark."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"{topic}-check",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: list[Any] = []
    ended: set[int | None] = set()
    while len(ended) < partitions:
        for message in consumer.consume(1_000, 0.5):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found


class TestRows:
    def test_columns_and_types_are_those_of_sparks_connector(self, read: Callable[..., DataFrame]) -> None:
        assert read(includeHeaders="true").schema.simpleString() == (
            "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
            "timestampType:int,headers:array<struct<key:string,value:binary>>>"
        )
        assert "headers" not in read().columns

    def test_keys_values_headers_and_times_come_untouched(
        self, read: Callable[..., DataFrame], kafka: Kafka, topic: str
    ) -> None:
        producer = ordered_producer(kafka.bootstrap_servers)
        headers: list[tuple[str, Any]] = [("a", b"\x00\xff"), ("b", None), ("a", b"")]
        producer.produce(topic, b"\x00\xff", b"\xfe", partition=1, headers=headers, timestamp=1_767_225_600_123)
        producer.produce(topic, None, None, partition=1)
        producer.produce(topic, b"", b"", partition=1)
        producer.flush(TIMEOUT_S)
        first, second, third = sorted(
            read(includeHeaders="true").selectExpr("*", "unix_millis(timestamp) at").collect(),
            key=lambda row: int(row.offset),
        )
        assert (first.topic, first.partition, first.offset) == (topic, 1, 0)
        assert (bytes(first.key), bytes(first.value)) == (b"\xfe", b"\x00\xff")
        assert (first.at, first.timestampType) == (1_767_225_600_123, 0)
        assert [(name, value) for name, value in first.headers] == headers
        assert (second.key, second.value, second.headers) == (None, None, None)
        assert (bytes(third.key), bytes(third.value)) == (b"", b"")

    def test_several_topics_and_patterns_can_be_read(
        self, read: Callable[..., DataFrame], produce: Callable[..., None], kafka: Kafka, topic: str
    ) -> None:
        create_topic(kafka.bootstrap_servers, f"{topic}-more", 1)
        produce(0, range(3))
        assert read(subscribe=f"{topic},{topic}-more").count() == 3


class TestRanges:
    def test_what_aborted_and_open_transactions_hold_is_not_read_and_not_waited_for(
        self,
        read: Callable[..., DataFrame],
        produce: Callable[..., None],
        transaction: Callable[[str], Producer],
        kafka: Kafka,
        topic: str,
    ) -> None:
        aborted = transaction("aborted")
        for partition in (0, 1):
            aborted.produce(topic, b"-1", partition=partition)
        aborted.flush(TIMEOUT_S)
        produce(0, range(5))
        aborted.abort_transaction(TIMEOUT_S)  # partition 1 holds nothing that is read: an aborted record, a marker
        committed = transaction("committed")
        committed.produce(topic, b"5", partition=0)
        committed.commit_transaction(TIMEOUT_S)
        await_decided(kafka, topic)  # the log ends in a marker
        unfinished = transaction("open")
        unfinished.produce(topic, b"-2", partition=2)
        unfinished.flush(TIMEOUT_S)
        produce(2, range(6, 8))  # after the last stable offset
        assert values(read()) == list(range(6))
        unfinished.commit_transaction(TIMEOUT_S)  # the marker is written a moment after the answer
        eventually_blocking(lambda: len(values(read())) > 6, what="what was open")
        assert values(read()) == [-2, *range(8)]

    def test_offsets_for_each_partition_bound_what_is_read(
        self, read: Callable[..., DataFrame], produce: Callable[..., None], topic: str, format: str
    ) -> None:
        for partition in range(PARTITIONS):
            produce(partition, range(10 * partition, 10 * partition + 10))
        end = -1 if format == FORMAT else 10  # Spark's own connector refuses -1 as the start of a batch
        starts = json.dumps({topic: {"0": 8, "1": -2, "2": end}})
        ends = json.dumps({topic: {"0": -1, "1": 2, "2": -1}})
        assert values(read(startingOffsets=starts, endingOffsets=ends)) == [8, 9, 10, 11]

    def test_an_instant_bounds_what_is_read(self, read: Callable[..., DataFrame], kafka: Kafka, topic: str) -> None:
        producer = ordered_producer(kafka.bootstrap_servers)
        for at in range(1_000, 1_010):
            producer.produce(topic, b"%d" % at, partition=0, timestamp=1_767_225_600_000 + at)
        for partition in (1, 2):  # else there is no record as late as that, which Spark's connector refuses
            producer.produce(topic, b"1010", partition=partition, timestamp=1_767_225_601_010)
        producer.flush(TIMEOUT_S)
        assert values(read(startingTimestamp=1_767_225_601_008)) == [1_008, 1_009, 1_010, 1_010]
        assert values(read(endingTimestamp=1_767_225_601_002)) == [1_000, 1_001]

    def test_logs_are_cut_into_as_many_ranges_as_asked_for(
        self, read: Callable[..., DataFrame], produce: Callable[..., None]
    ) -> None:
        produce(0, range(100))
        cut = read(minPartitions=5)
        assert cut.rdd.getNumPartitions() >= 5
        assert values(cut) == list(range(100))

    def test_lost_records_are_an_error_unless_it_is_allowed(
        self, read: Callable[..., DataFrame], produce: Callable[..., None], kafka: Kafka, topic: str
    ) -> None:
        produce(0, range(10))
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for deleted in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
            deleted.result(TIMEOUT_S)
        starts = json.dumps({topic: {"0": 3, "1": 0, "2": 0}})
        assert values(read(startingOffsets=starts, failOnDataLoss="false")) == [6, 7, 8, 9]
        with pytest.raises(Exception, match=r"(?i)failOnDataLoss"):
            read(startingOffsets=starts).collect()


class TestStreams:
    @pytest.mark.soak
    def test_a_query_goes_on_where_its_checkpoint_ends(
        self,
        stream: Callable[..., list[tuple[str, int]]],
        produce: Callable[..., None],
        kafka: Kafka,
        topic: str,
    ) -> None:
        produce(0, range(10))
        assert Counter(stream()) == Counter((0, offset) for offset in range(10))
        produce(0, range(5))
        produce(1, range(5))
        grow(AdminClient({"bootstrap.servers": kafka.bootstrap_servers}), topic, PARTITIONS + 1)
        produce(PARTITIONS, range(4))
        wanted = [(0, offset) for offset in range(15)]
        wanted += [(1, offset) for offset in range(5)] + [(PARTITIONS, offset) for offset in range(4)]
        assert Counter(stream()) == Counter(wanted)

    @pytest.mark.soak
    def test_batches_are_as_small_as_asked_for_and_miss_nothing(
        self, stream: Callable[..., list[tuple[str, int]]], produce: Callable[..., None], tmp_path: Path
    ) -> None:
        produce(0, range(60))
        produce(1, range(30))
        wanted = [(0, offset) for offset in range(60)] + [(1, offset) for offset in range(30)]
        assert Counter(stream(maxOffsetsPerTrigger=30)) == Counter(wanted)
        batches = [path for path in (tmp_path / "checkpoint" / "commits").iterdir() if path.name.isdigit()]
        assert len(batches) == 3


class TestWrites:
    def test_rows_become_records_where_kafka_itself_would_put_them(
        self, spark: SparkSession, kafka: Kafka, format: str, topic: str
    ) -> None:
        rows = [
            (b"key-%d" % number, b"%d" % number, [(f"h{number}", b"\x00"), ("none", None)], None)
            for number in range(50)
        ]
        table = spark.createDataFrame(
            [*rows, (None, None, None, 2)],
            "key binary, value binary, headers array<struct<key:string,value:binary>>, partition int",
        )
        writer = table.write.format(format).mode("append").option("topic", topic)
        writer.option("includeHeaders", "true").option("kafka.bootstrap.servers", kafka.bootstrap_servers).save()
        found = {(record.key(), record.value()): record for record in records(kafka, topic)}
        assert len(found) == 51
        for key, value, headers, _ in rows:
            record = found[key, value]
            assert record.headers() == headers
            assert record.partition() == partition_for(key, PARTITIONS)
        assert found[None, None].partition() == 2

    def test_rows_name_their_topics(self, spark: SparkSession, kafka: Kafka, format: str, topic: str) -> None:
        create_topic(kafka.bootstrap_servers, f"{topic}-other", 1)
        table = spark.createDataFrame([(topic, "here"), (f"{topic}-other", "there")], "topic string, value string")
        table.write.format(format).mode("append").option("kafka.bootstrap.servers", kafka.bootstrap_servers).save()
        assert [record.value() for record in records(kafka, topic)] == [b"here"]
        assert [record.value() for record in records(kafka, f"{topic}-other", 1)] == [b"there"]

    @pytest.mark.soak
    def test_a_stream_can_be_written(
        self, spark: SparkSession, kafka: Kafka, format: str, topic: str, produce: Callable[..., None], tmp_path: Path
    ) -> None:
        create_topic(kafka.bootstrap_servers, f"{topic}-copy", 1)
        produce(0, range(20))
        reader = spark.readStream.format(format).option("subscribe", topic).option("startingOffsets", "earliest")
        for name, value in common(kafka).items():
            reader = reader.option(name, value)
        writer = reader.load().select("value").writeStream.format(format).option("topic", f"{topic}-copy")
        writer = writer.option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        writer.start().awaitTermination()
        assert sorted(int(record.value()) for record in records(kafka, f"{topic}-copy", 1)) == list(range(20))
