"""Topics as tables: through Spark's own Kafka connector if its jars are present, otherwise through ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from light_scheduler.errors import JobError
from light_scheduler.model.topic_configuration import TopicConfiguration, configuration_of

from .job import Cluster, parallelism
from .kafka import FORMAT, KafkaDataSource
from .kafka.log_ends import TIMEOUT_S
from .kafka.options import CLIENT_PREFIX
from .kafka.security import for_official
from .kafka.silence import SILENT

OFFICIAL_FORMAT = "kafka"
FORMAT_CONFIG = "spark.lightScheduler.kafkaFormat"
"""The session property that selects the Kafka format for reading topics: one of FORMATS; default: AUTO."""
AUTO = "auto"
FORMATS = (AUTO, OFFICIAL_FORMAT, FORMAT)


def kafka_format(spark: SparkSession) -> str:
    """Return the name of the Kafka format to use, registering ours if necessary.

    Raises JobError if Spark's own is requested but not present.
    """
    wanted = spark.conf.get(FORMAT_CONFIG, AUTO)
    if wanted != FORMAT and official_is_here(spark):
        return OFFICIAL_FORMAT
    if wanted == OFFICIAL_FORMAT:
        raise JobError(
            "Spark's own Kafka connector is not on the class path: give its jars with --jar, or to spark-submit with "
            f"--packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION (Spark's), or use --kafka-format {FORMAT}"
        )
    register(spark)
    return FORMAT


def official_is_here(spark: SparkSession) -> bool:
    """Return whether Spark's own connector is on the class path."""
    # Planning a read contacts no broker. With Spark Connect, there is no other way to find out.
    reader = spark.read.format(OFFICIAL_FORMAT).option("kafka.bootstrap.servers", "127.0.0.1:1")
    try:
        _ = reader.option("subscribe", "none").load().columns
    except AnalysisException as error:
        if "Failed to find" in str(error):
            return False
        raise
    return True


def register(spark: SparkSession) -> None:
    """Make a session the active one of this thread, and register our format in it.

    Spark looks up the format of a write in the thread's active session, whichever session the rows belong to. A new
    thread has none. If it is another session, Spark refuses to register there what this session already has.
    """
    spark.createDataFrame([], "nothing int")  # no other public call activates its session
    spark.dataSource.register(KafkaDataSource)


def read_topics(spark: SparkSession, bootstrap_servers: str, topics: Sequence[str], **options: Any) -> DataFrame:
    """Return the committed records of topics, with headers. `options` are those of the format.

    Logs are split so that all cores have work.
    """
    return read_format(spark, kafka_format(spark), bootstrap_servers, topics, **options)


def read_format(
    spark: SparkSession, kind: str, bootstrap_servers: str, topics: Sequence[str], **options: Any
) -> DataFrame:
    """Return the committed records of topics through a format with the options of a Kafka format."""
    reader = spark.read.format(kind)
    for name, value in _options(kind, bootstrap_servers, topics, {**_pieces(spark), **options}).items():
        reader = reader.option(name, value)
    return reader.load()


def stream_topics(spark: SparkSession, bootstrap_servers: str, topics: Sequence[str], **options: Any) -> DataFrame:
    """Return a stream of the committed records of topics, with headers. `options` are those of the format.

    Micro-batches are split so that all cores have work.
    """
    kind = kafka_format(spark)
    reader: DataStreamReader = spark.readStream.format(kind)
    for name, value in _options(kind, bootstrap_servers, topics, {**_pieces(spark), **options}).items():
        reader = reader.option(name, value)
    return reader.load()


def _pieces(spark: SparkSession) -> dict[str, int]:
    """Return the option that splits logs into one piece per concurrent task, if their number is known."""
    cores = parallelism(spark)
    return {} if cores is None else {"minPartitions": cores}


def _options(kind: str, bootstrap_servers: str, topics: Sequence[str], more: Mapping[str, Any]) -> dict[str, str]:
    client = {name: str(value) for name, value in more.items() if name.startswith(CLIENT_PREFIX)}
    if kind == OFFICIAL_FORMAT:
        own = {name.removeprefix(CLIENT_PREFIX): value for name, value in client.items()}
        try:
            client = {f"{CLIENT_PREFIX}{name}": value for name, value in for_official(own).items()}
        except ValueError as error:
            raise JobError(str(error)) from None
        # A partition without a record since then is read from its end, as with our format; by default it would be an
        # error.
        more = {"startingOffsetsByTimestampStrategy": "latest", **more}
    return {
        "kafka.bootstrap.servers": bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "subscribe": ",".join(topics),
        "includeHeaders": "true",
        **{name: str(value) for name, value in more.items() if not name.startswith(CLIENT_PREFIX)},
        **client,
    }


def configurations(cluster: Cluster, topics: Sequence[str]) -> dict[str, TopicConfiguration]:
    """Return the effective configurations of topics. Raises JobError."""
    resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
    if not resources:
        return {}
    admin = AdminClient(cluster.configuration(), logger=SILENT)  # the variable keeps it alive until the answers arrive
    asked = admin.describe_configs(resources, request_timeout=TIMEOUT_S)
    try:
        return {
            resource.name: configuration_of({entry.name: entry.value for entry in answer.result().values()})
            for resource, answer in asked.items()
        }
    except KafkaException as error:
        raise JobError(
            f"the configuration of {', '.join(topics)} cannot be read, which takes the right DescribeConfigs: "
            f"{error.args[0].str()}"
        ) from error


def require_topic(cluster: Cluster, topic: str) -> int:
    """Return the number of partitions of a topic. Raises JobError if it does not exist, or there is no broker."""
    try:
        found = AdminClient(cluster.configuration(), logger=SILENT).list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    except KafkaException as error:
        raise _unreachable(cluster, error) from error
    if found.error is not None:
        raise JobError(f"topic {topic} cannot be used: {found.error.str()}. `light-scheduler topics create` makes it")
    return len(found.partitions)


def cluster_id(cluster: Cluster) -> str:
    """Return the id of a cluster, which is independent of its addresses. Raises JobError if there is no broker."""
    admin = AdminClient(cluster.configuration(), logger=SILENT)
    try:
        # The id in a list of topics is the one that the client knows at that moment, which may be none.
        return str(admin.describe_cluster(request_timeout=TIMEOUT_S).result().cluster_id)
    except KafkaException as error:
        raise _unreachable(cluster, error) from error


def _unreachable(cluster: Cluster, error: KafkaException) -> JobError:
    return JobError(
        f"{cluster.bootstrap_servers} cannot be reached: {error.args[0].str()}. Name your brokers with --broker, and "
        "how to log in to them"
    )
