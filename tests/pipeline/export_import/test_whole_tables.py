"""Tables that are not whole are not imported; a whole one is, and a record that is written twice changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.exporting import ALL, Write, defined, export_to, options_of, pending
from support.kafka_records import committed_records

from light_scheduler.errors import JobError
from light_scheduler.pipeline import importing
from light_scheduler.pipeline.job import configured
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire.state import encode_entry

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


@pytest.mark.parametrize("format", ["parquet", pytest.param("json", marks=pytest.mark.soak)])
def test_what_an_export_leaves_that_was_killed_is_not_imported(
    spark: SparkSession,
    kafka: Kafka,
    write: Write,
    applications: tuple[Settings, Settings],
    tmp_path: Path,
    format: str,
) -> None:
    old, new = applications
    table = tmp_path / "table"
    write(old, 0, *map(defined, ALL))
    with configured(spark, {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}):
        export_to(spark, old, table, format)
    (table / "_SUCCESS").unlink()
    with pytest.raises(JobError, match=r"has no file _SUCCESS.* Run the export again"):
        importing.main(spark, options_of(new, table, format))
    for file in table.glob(f"*.{format}"):
        file.unlink()
    (table / "_temporary").mkdir()
    with pytest.raises(JobError, match="has no file _SUCCESS"):
        importing.main(spark, options_of(new, table, format))
    assert pending(kafka, new) == []


@pytest.mark.soak
@pytest.mark.every_case
def test_a_table_that_is_one_file_can_be_imported(
    spark: SparkSession,
    applications: tuple[Settings, Settings],
    exported: importing.ImportOptions,
    tmp_path: Path,
) -> None:
    spark.read.parquet(exported.table).coalesce(1).write.parquet(str(tmp_path / "one"))
    (file,) = (tmp_path / "one").glob("*.parquet")
    (tmp_path / "a b").mkdir()
    moved_to = file.rename(tmp_path / "a b" / "100%25.parquet")
    assert importing.main(spark, options_of(applications[1], moved_to)).written == 4


@pytest.mark.soak
@pytest.mark.every_case
def test_a_record_that_an_import_wrote_twice_changes_nothing(
    spark: SparkSession,
    kafka: Kafka,
    write: Write,
    applications: tuple[Settings, Settings],
    exported: importing.ImportOptions,
    tmp_path: Path,
) -> None:
    importing.main(spark, exported)
    new = applications[1]
    once = pending(kafka, new)
    for partition, stored in once:  # as a task does that Spark runs again
        write(new, partition, defined(stored))
    assert len(committed_records(kafka, new.topics.changelog(new.topics.commands))) == 8
    assert pending(kafka, new) == once
    assert importing.main(spark, exported) == importing.ImportSummary(4, 0)
    assert export_to(spark, new, tmp_path / "again").schedules == 4
    rows = spark.read.parquet(str(tmp_path / "again")).select("record").collect()
    assert sorted(bytes(row.record) for row in rows) == sorted(encode_entry(stored) for _, stored in once)
