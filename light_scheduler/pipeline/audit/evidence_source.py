"""Topics as evidence: the format `light_scheduler_evidence`, which makes evidence where records are read.

Elsewhere than in our Kafka format the records come as rows, and go through Python once more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from light_scheduler.pipeline.kafka import FORMAT as KAFKA_FORMAT
from light_scheduler.pipeline.kafka.reader import KafkaBatchReader
from light_scheduler.pipeline.topics import kafka_format, read_format, read_topics

from .readings import ROWS, Reading

FORMAT = "light_scheduler_evidence"

_READING = "reading"


class EvidenceDataSource(DataSource):
    """Takes the options of the Kafka format, and `reading`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ROWS

    def reader(self, schema: StructType) -> EvidenceReader:
        return EvidenceReader(self.options, schema)


class EvidenceReader(KafkaBatchReader):
    """Reads what the logs hold when the query is planned, as evidence."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        kafka = {name: value for name, value in options.items() if name.lower() != _READING}
        super().__init__(kafka, schema)
        self._reading = Reading.decode(options[_READING])
        self._rows = to_arrow_schema(schema, timezone="UTC")
        self._schema = _records(self._rows.field("headers").type)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in super().read(partition):
            yield from self._reading.rows(batch, self._rows)


def _records(headers: pa.DataType) -> pa.Schema:
    """Return the schema of Kafka's columns in Arrow."""
    instant = pa.timestamp("us", "UTC")
    types = (pa.binary(), pa.binary(), pa.string(), pa.int32(), pa.int64(), instant, pa.int32(), headers)
    names = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
    return pa.schema(list(zip(names, types, strict=True)))


def read_evidence(
    spark: SparkSession, bootstrap_servers: str, topics: Sequence[str], reading: Reading, **options: Any
) -> DataFrame:
    """Return the evidence in topics, columns ROWS; `options` are those of `read_topics`."""
    if kafka_format(spark) != KAFKA_FORMAT:
        return read_topics(spark, bootstrap_servers, topics, **options).mapInArrow(reading, ROWS)
    spark.dataSource.register(EvidenceDataSource)
    return read_format(spark, FORMAT, bootstrap_servers, topics, **{**options, _READING: reading.encode()})
