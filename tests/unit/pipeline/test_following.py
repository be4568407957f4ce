"""The stream of files that a load with `--continuous` reads."""

from __future__ import annotations

from unittest.mock import MagicMock

from pyspark.sql.types import StructType

from light_scheduler.pipeline.load.following import stream_of


def test_an_option_that_is_given_counts_in_the_place_of_ours() -> None:
    spark = MagicMock()
    reader = spark.readStream
    for method in (reader.format, reader.schema, reader.option, reader.options):
        method.return_value = reader

    stream_of(spark, "/incoming", "csv", {"multiLine": "false", "sep": ";"}, StructType())

    options = reader.options.call_args.kwargs
    assert (options["multiLine"], options["sep"], options["header"]) == ("false", ";", "true")
