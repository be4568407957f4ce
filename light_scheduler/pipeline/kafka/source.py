"""The data source that Spark calls."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from .options import ReadOptions
from .reader import KafkaBatchReader, KafkaStreamReader
from .rows import COLUMNS, HEADERS
from .writer import KafkaBatchWriter, KafkaStreamWriter

FORMAT = "light_scheduler_kafka"


class KafkaDataSource(DataSource):
    """Register it with `spark.dataSource.register(KafkaDataSource)`; then `spark.read.format(FORMAT)`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        options = ReadOptions.parse(self.options, streaming=False)
        return f"{COLUMNS}, {HEADERS}" if options.include_headers else COLUMNS

    def reader(self, schema: StructType) -> KafkaBatchReader:
        return KafkaBatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> KafkaStreamReader:  # noqa: N802 (Spark's name)
        return KafkaStreamReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> KafkaBatchWriter:  # noqa: ARG002
        return KafkaBatchWriter(self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> KafkaStreamWriter:  # noqa: N802, ARG002
        return KafkaStreamWriter(self.options, schema)
