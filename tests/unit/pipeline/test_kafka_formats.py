"""Through which Kafka format jobs read, and the options that they give it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from light_scheduler.cli.pipeline.running import KAFKA_FORMATS
from light_scheduler.errors import JobError
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.kafka.options import ReadOptions
from light_scheduler.pipeline.topics import FORMAT_CONFIG, FORMATS, kafka_format, read_topics, stream_topics

CONNECTION = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.sasl.mechanism": "SCRAM-SHA-512",
    "kafka.sasl.username": "jobs",
    "kafka.sasl.password": 'a "b" \\ c',
}


class Reader:
    """What a session's `read` and `readStream` do with a format and its options."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._options: dict[str, str] = {}
        self._format = ""

    def format(self, name: str) -> Reader:
        self._format, self._options = name, {}
        return self

    def option(self, name: str, value: Any) -> Reader:
        self._options[name] = str(value)
        return self

    def load(self) -> Any:
        if self._format == "kafka" and not self._session.has_official:
            raise AnalysisException("Failed to find data source: kafka")
        self._session.loaded = self._format, self._options
        return self

    @property
    def columns(self) -> list[str]:
        return []


class Session:
    """A Spark session with or without Spark's own connector on its class path."""

    def __init__(self, *, has_official: bool, wanted: str | None = None) -> None:
        self.has_official = has_official
        self.conf: Any = {} if wanted is None else {FORMAT_CONFIG: wanted}
        self.registered: list[Any] = []
        self.loaded: tuple[str, dict[str, str]] = "", {}
        self.sparkContext = type("Context", (), {"defaultParallelism": 4})()

    @property
    def read(self) -> Reader:
        return Reader(self)

    readStream = read  # noqa: N815 (Spark's name)

    @property
    def dataSource(self) -> Any:  # noqa: N802
        return type("Registration", (), {"register": lambda _, source: self.registered.append(source)})()

    def createDataFrame(self, rows: list[Any], schema: str) -> None:  # noqa: N802
        assert not rows, "it only makes the session active"


def session(*, has_official: bool, wanted: str | None = None) -> Any:
    return Session(has_official=has_official, wanted=wanted)


def test_the_command_line_knows_the_formats() -> None:
    assert KAFKA_FORMATS == FORMATS


@pytest.mark.parametrize(
    ("wanted", "has_official", "used"),
    [
        (None, True, "kafka"),
        (None, False, FORMAT),
        ("auto", True, "kafka"),
        ("auto", False, FORMAT),
        ("kafka", True, "kafka"),
        (FORMAT, True, FORMAT),
        (FORMAT, False, FORMAT),
    ],
)
def test_the_format_is_the_one_that_is_asked_for_or_there(wanted: str | None, has_official: bool, used: str) -> None:
    spark = session(has_official=has_official, wanted=wanted)
    assert kafka_format(spark) == used
    assert len(spark.registered) == (used == FORMAT)


def test_a_connector_that_is_missing_is_named_with_its_package() -> None:
    with pytest.raises(JobError, match=r"--packages org\.apache\.spark:spark-sql-kafka-0-10_2\.13.*--kafka-format"):
        kafka_format(session(has_official=False, wanted="kafka"))


def test_a_batch_read_has_the_options_of_the_official_connector() -> None:
    spark = session(has_official=True)
    read_topics(spark, "broker:9092", ["a", "b"], startingTimestamp=5, endingTimestamp=9, **CONNECTION)
    format, options = spark.loaded
    assert format == "kafka"
    assert options.pop("kafka.sasl.jaas.config").startswith(
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="jobs" password="a \\"b\\"'
    )
    assert options == {
        "kafka.bootstrap.servers": "broker:9092",
        "kafka.isolation.level": "read_committed",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "subscribe": "a,b",
        "includeHeaders": "true",
        "minPartitions": "4",
        "startingTimestamp": "5",
        "endingTimestamp": "9",
        "startingOffsetsByTimestampStrategy": "latest",
    }


def test_a_stream_has_the_options_of_the_official_connector() -> None:
    spark = session(has_official=True)
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 7, "failOnDataLoss": "false"}
    stream_topics(spark, "broker:9092", ["a"], **limits)
    format, options = spark.loaded
    assert format == "kafka"
    assert options.items() >= {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "7"}.items()
    assert options["failOnDataLoss"] == "false"


def test_ours_takes_what_it_is_given() -> None:
    spark = session(has_official=False)
    read_topics(spark, "broker:9092", ["a", "b"], startingTimestamp=5, **CONNECTION)
    format, options = spark.loaded
    assert format == FORMAT
    parsed = ReadOptions.parse(options, streaming=False)
    assert (parsed.topics, parsed.include_headers, parsed.min_partitions) == (("a", "b"), True, 4)
    assert parsed.client["sasl.username"] == "jobs"
