"""Topics as tables: through Spark's own Kafka connector where its jars are, else through ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from light_scheduler.errors import JobError

from .job import Cluster
from .kafka import FORMAT, KafkaDataSource
from .kafka.log_ends import TIMEOUT_S
from .kafka.silence import SILENT

OFFICIAL_FORMAT = "kafka"
_OFFICIAL_CLASS = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def kafka_format(spark: SparkSession) -> str:
    """Return the name of the Kafka format to use, registering ours if it is that."""
    if official_is_here(spark):
        return OFFICIAL_FORMAT
    register(spark)
    return FORMAT


def official_is_here(spark: SparkSession) -> bool:
    """Tell whether Spark's own connector is on the class path."""
    jvm: Any = spark._jvm
    try:
        jvm.java.lang.Class.forName(
            _OFFICIAL_CLASS, False, jvm.java.lang.Thread.currentThread().getContextClassLoader()
        )
    except Exception as error:
        if "ClassNotFoundException" in str(error):
            return False
        raise
    return True


def register(spark: SparkSession) -> None:
    """Make our format known to a session."""
    spark.dataSource.register(KafkaDataSource)


def read_topics(spark: SparkSession, bootstrap_servers: str, topics: Sequence[str], **options: Any) -> DataFrame:
    """Return what is committed in topics, with headers; `options` are those of the format."""
    reader = spark.read.format(kafka_format(spark))
    for name, value in _options(bootstrap_servers, topics, options).items():
        reader = reader.option(name, value)
    return reader.load()


def stream_topics(spark: SparkSession, bootstrap_servers: str, topics: Sequence[str], **options: Any) -> DataFrame:
    """Return a stream of what is committed in topics, with headers; `options` are those of the format."""
    reader: DataStreamReader = spark.readStream.format(kafka_format(spark))
    for name, value in _options(bootstrap_servers, topics, options).items():
        reader = reader.option(name, value)
    return reader.load()


def _options(bootstrap_servers: str, topics: Sequence[str], more: Mapping[str, Any]) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "subscribe": ",".join(topics),
        "includeHeaders": "true",
        **{name: str(value) for name, value in more.items()},
    }


def require_topic(cluster: Cluster, topic: str) -> int:
    """Return how many partitions a topic has. Raises JobError if there is none, or no broker."""
    try:
        found = AdminClient(cluster.configuration(), logger=SILENT).list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    except KafkaException as error:
        raise JobError(f"{cluster.bootstrap_servers} cannot be reached: {error.args[0].str()}") from error
    if found.error is not None:
        raise JobError(f"topic {topic} cannot be used: {found.error.str()}. `light-scheduler topics create` makes it")
    return len(found.partitions)
