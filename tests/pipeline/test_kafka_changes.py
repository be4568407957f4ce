"""Topics that change while they are read: replaced, cut off, enlarged, and with headers that are not text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)
from support.garbled import GarbledBatch
from support.growing import grow
from support.ordering import ordered_producer
from support.placing import delete_topic

from light_scheduler.kafka.topic_admin import create_topic, topic_id
from light_scheduler.pipeline.kafka import KafkaDataSource
from light_scheduler.pipeline.kafka.fetching import DataLossError
from light_scheduler.pipeline.kafka.options import TOPIC_IDS
from light_scheduler.pipeline.kafka.reader import KafkaStreamReader
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

TIMEOUT_S = 60.0

_HEADER = StructType().add("key", StringType()).add("value", BinaryType())
SCHEMA = (
    StructType()
    .add("key", BinaryType())
    .add("value", BinaryType())
    .add("topic", StringType())
    .add("partition", IntegerType())
    .add("offset", LongType())
    .add("timestamp", TimestampType())
    .add("timestampType", IntegerType())
    .add("headers", ArrayType(_HEADER))
)
"""What the source calls its schema: parsing its text would take a JVM."""

MakeReader = Callable[..., KafkaStreamReader]
Produce = Callable[..., None]
Row = dict[str, Any]


@pytest.fixture
def topic(kafka: Kafka, prefix: str) -> str:
    create_topic(kafka.bootstrap_servers, prefix, 1)
    return prefix


@pytest.fixture
def reader(kafka: Kafka, topic: str) -> Iterator[MakeReader]:
    """Make a stream's reader, as Spark would when the stream starts, with options as keywords."""
    made: list[KafkaStreamReader] = []

    def make(**options: str) -> KafkaStreamReader:
        given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
        source = KafkaDataSource({**given, "includeHeaders": "true", **options})
        made.append(source.streamReader(SCHEMA))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def produce(kafka: Kafka, topic: str) -> Produce:
    def produce(*values: bytes, partition: int = 0) -> None:
        producer = ordered_producer(kafka.bootstrap_servers)
        for value in values:
            producer.produce(topic, value, partition=partition)
        assert producer.flush(TIMEOUT_S) == 0

    return produce


@pytest.fixture
def admin(kafka: Kafka) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers})


def batch(reader: KafkaStreamReader, start: dict[str, Any]) -> tuple[dict[str, Any], list[Row]]:
    """Return the position after a micro-batch that begins at a position, and its rows."""
    end = reader.latestOffset(start, ReadAllAvailable())
    return end, rows(reader, start, end)


def rows(reader: KafkaStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
    return [row for part in reader.partitions(start, end) for found in reader.read(part) for row in found.to_pylist()]


def values(found: list[Row]) -> list[bytes]:
    return [row["value"] for row in found]


def replace_topic(kafka: Kafka, topic: str) -> None:
    delete_topic(kafka.bootstrap_servers, topic)
    create_topic(kafka.bootstrap_servers, topic, 1)


class TestATopicThatIsReplaced:
    def test_is_an_error_even_if_it_has_grown_past_what_was_read(
        self, reader: MakeReader, produce: Produce, kafka: Kafka, topic: str
    ) -> None:
        produce(b"a", b"b")
        read, found = batch(reader(), reader().initialOffset())
        assert values(found) == [b"a", b"b"]
        assert read == {topic: {"0": 2}, TOPIC_IDS: {topic: topic_id(kafka.bootstrap_servers, topic)}}
        replace_topic(kafka, topic)
        produce(b"c", b"d", b"e")
        with pytest.raises(DataLossError, match=rf"topic {topic} was deleted and created again.* --allow-data-loss"):
            batch(reader(), read)

    def test_is_an_error_in_a_batch_that_was_planned_before_and_is_run_again(
        self, reader: MakeReader, produce: Produce, kafka: Kafka, topic: str
    ) -> None:
        produce(b"a", b"b")
        start = reader().initialOffset()
        end = reader().latestOffset(start, ReadAllAvailable())
        replace_topic(kafka, topic)
        produce(b"c", b"d", b"e")
        with pytest.raises(DataLossError, match="deleted and created again"):
            reader().partitions(start, end)

    def test_is_read_from_its_beginning_if_loss_is_allowed(
        self, reader: MakeReader, produce: Produce, kafka: Kafka, topic: str
    ) -> None:
        produce(b"a", b"b")
        read, _ = batch(reader(), reader().initialOffset())
        replace_topic(kafka, topic)
        produce(b"c")
        lenient = reader(failOnDataLoss="false")
        read, found = batch(lenient, read)
        assert values(found) == [b"c"]
        produce(b"d")
        assert values(batch(lenient, read)[1]) == [b"d"]

    def test_while_all_that_is_there_is_read_is_noticed_too(
        self, reader: MakeReader, produce: Produce, kafka: Kafka, topic: str
    ) -> None:
        produce(b"a", b"b")
        lenient = reader(failOnDataLoss="false")
        lenient.prepareForTriggerAvailableNow()
        read, _ = batch(lenient, lenient.initialOffset())
        replace_topic(kafka, topic)
        produce(b"c")
        assert values(batch(lenient, read)[1]) == [b"c"]

    def test_is_not_told_by_a_checkpoint_without_ids(self, reader: MakeReader, produce: Produce, topic: str) -> None:
        produce(b"a", b"b")
        read, found = batch(reader(), {topic: {"0": 1}})
        assert values(found) == [b"b"]
        assert TOPIC_IDS in read


def test_a_log_that_ends_before_what_was_read_is_an_error_unless_loss_is_allowed(
    reader: MakeReader, produce: Produce, topic: str
) -> None:
    produce(b"a")
    start = {**reader().initialOffset(), topic: {"0": 5}}
    with pytest.raises(DataLossError, match=f"{topic}-0 ends at offset 1 and was read up to 5"):
        batch(reader(), start)
    assert batch(reader(failOnDataLoss="false"), start)[1] == []


class TestAPartitionThatIsAdded:
    @pytest.fixture
    def grown(self, reader: MakeReader, produce: Produce, admin: AdminClient, topic: str) -> dict[str, Any]:
        """Return the position before a partition was added, with records in it; the first one is gone again."""
        produce(b"a")
        read, _ = batch(reader(), reader().initialOffset())
        grow(admin, topic, 2)
        produce(b"b", b"c", partition=1)
        return read

    def test_is_read_from_its_beginning(self, reader: MakeReader, grown: dict[str, Any]) -> None:
        assert values(batch(reader(), grown)[1]) == [b"b", b"c"]

    def test_is_an_error_if_its_beginning_is_gone_unless_loss_is_allowed(
        self, reader: MakeReader, grown: dict[str, Any], admin: AdminClient, topic: str
    ) -> None:
        (deleted,) = admin.delete_records([TopicPartition(topic, 1, 1)]).values()
        deleted.result(TIMEOUT_S)
        with pytest.raises(DataLossError, match="records were deleted before they were read"):
            batch(reader(), grown)
        assert values(batch(reader(failOnDataLoss="false"), grown)[1]) == [b"c"]


async def test_headers_with_a_name_that_is_not_text_are_replaced_and_all_else_is_read(
    reader: MakeReader, kafka: Kafka, topic: str
) -> None:
    garbled = GarbledBatch(100_000, 0, is_transactional=0)
    garbled.append(timestamp=None, key=b"1", value=b"a", headers=[("trace", b"\xff")])
    garbled.append(timestamp=None, key=b"2", value=b"b", headers=[("trace", b"x"), ("garbled", b""), ("x", None)])
    for _ in range(100):
        garbled.append(timestamp=None, key=b"2", value=b"b", headers=[("garbled", b"")])
    garbled.append(timestamp=None, key=b"3", value=b"c", headers=[])
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=False)
    await producer.start()
    try:
        await (await producer.send_batch(garbled, topic, partition=0))
    finally:
        await producer.stop()
    found = batch(reader(), reader().initialOffset())[1]
    assert [(row["key"], row["value"]) for row in found] == [(b"1", b"a"), *[(b"2", b"b")] * 101, (b"3", b"c")]
    assert found[0]["headers"] == [{"key": "trace", "value": b"\xff"}]
    assert {row["headers"][0]["key"] for row in found[1:-1]} == {"schedule-unreadable"}
    assert found[-1]["headers"] is None
