"""Loads of a Delta table that fail or are killed go on with the version they began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.kafka_records import decided_records
from support.loading import AT, PASSED, Load, commands, killed_before_a_version_is_marked

from light_scheduler.engine.limits import Limits
from light_scheduler.pipeline.job import Cluster, configured
from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.pipeline.load.versions import TableMark
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


def as_before(mark: Any) -> Any:
    """Return a mark of a table as older versions wrote it."""
    return TableMark(mark.loaded, mark.begun, mark.commit)


@pytest.mark.soak
@pytest.mark.parametrize("begun_by", ["this version", pytest.param("an older version", marks=pytest.mark.every_case)])
@pytest.mark.every_case
def test_a_load_of_new_versions_that_was_killed_sends_nothing_again_whoever_began_it(
    spark: SparkSession,
    load: Load,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    begun_by: str,
) -> None:
    table = tmp_path / "table"

    def append(id: str) -> None:
        rows = spark.createDataFrame([(id,)], "id string").selectExpr("id", f"{PASSED} at", "'t' target_topic")
        rows.coalesce(1).write.format("delta").mode("append").save(str(table))

    append("a")
    assert load(table, format="delta").sent == 1
    append("b")
    written = as_before if begun_by == "an older version" else lambda mark: mark
    with killed_before_a_version_is_marked(monkeypatch, written):  # after the rows
        load(table, format="delta")
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('a' = 'b')")
    assert load(table, format="delta") == LoadSummary(1, 0, 1, 0, None)
    append("b")
    assert load(table, format="delta").sent == 1, "a row of its own"


@pytest.mark.soak
@pytest.mark.every_case
def test_a_load_of_a_delta_table_that_failed_goes_on_with_the_version_it_began(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    for ids in ((0, 3), (3, 6)):
        rows = spark.range(*ids).selectExpr("cast(id as string) id", "'t' target_topic", f"{AT} at", "'x' payload")
        rows.coalesce(1).write.format("delta").mode("append").save(str(table))
    rows = spark.range(6, 7).selectExpr("'6' id", "'t' target_topic", f"{AT} at", "repeat('x', 2000000) payload")
    rows.coalesce(1).write.format("delta").mode("append").save(str(table))
    with pytest.raises(Exception, match="Message size too large"):
        load(table, format="delta", cluster=Cluster(kafka.bootstrap_servers, {"message.max.bytes": "1000000"}))
    spark.sql(f"OPTIMIZE delta.`{table}`")
    limits = Limits(1_000_000, 100)
    summary = load(table, format="delta", limits=limits, refused=str(tmp_path / "refused"))
    assert (summary.rows, summary.refused, summary.sent + summary.sent_before) == (7, 1, 6)
    assert [command.id for command in commands(kafka, topic)] == [str(number) for number in range(6)]
    assert load(table, format="delta") == LoadSummary(0, 0, 0, 0, None)


@pytest.mark.soak
@pytest.mark.every_case
def test_rows_of_a_large_file_that_are_deleted_by_vectors_after_a_load_broke_off_shift_no_others(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import light_scheduler.pipeline.load as job

    count, breaks_at, deleted = 30_000, 6_500, 1_500
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    columns = "format_string('%05d', id) id", "'t' target_topic", f"{AT} at"
    payload = f"if(id = {breaks_at}, repeat('x', 2000000), 'x') payload"
    spark.range(count).selectExpr(*columns, payload).coalesce(1).write.format("delta").save(str(table))
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    monkeypatch.setitem(job._CONFIGS, "spark.sql.execution.arrow.maxRecordsPerBatch", "2000")
    with pytest.raises(Exception, match="Message size too large"):
        load(table, format="delta", cluster=Cluster(kafka.bootstrap_servers, {"message.max.bytes": "1000000"}))
    assert len(commands(kafka, topic)) == 6_000
    files = spark.read.format("delta").load(str(table)).inputFiles()
    spark.sql(f"DELETE FROM {name} WHERE id < '{deleted:05}'")
    assert spark.read.format("delta").load(str(table)).inputFiles() == files, "rows are marked in a vector"

    summary = load(table, format="delta", limits=Limits(1_000_000, 100), refused=str(tmp_path / "refused"))

    assert (summary.sent, summary.sent_before, summary.refused) == (count - 6_000 - 1, 6_000, 1)
    sent = [command.id for command in commands(kafka, topic)]
    assert sent == [f"{number:05}" for number in range(count) if number != breaks_at]
    assert load(table, format="delta") == LoadSummary(0, 0, 0, 0, None)


@pytest.mark.soak
@pytest.mark.every_case
def test_rows_that_are_appended_again_are_sent_once_though_the_load_was_killed(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"

    def append(*ids: int) -> None:
        rows = spark.createDataFrame([(id,) for id in ids], "id int").selectExpr("format_string('%03d', id) id")
        rows.selectExpr("id", f"{AT} at", "'t' target_topic").coalesce(1).write.format("delta").mode("append").save(
            str(table)
        )

    append(*range(200))
    assert load(table, format="delta").sent == 200
    spark.sql(f"UPDATE {name} SET target_topic = 'u' WHERE id < '050'")
    append(*range(50, 150), 200)
    append(*range(100, 180), 201)
    with (
        configured(spark, {"spark.sql.shuffle.partitions": "5"}),
        killed_before_a_version_is_marked(monkeypatch),  # after the rows
    ):
        load(table, format="delta")
    before = [record.key for record in decided_records(kafka, topic)]
    assert len(before) == 200 + 50 + 101 + 81
    spark.sql(f"OPTIMIZE {name}")
    summary = load(table, format="delta")
    assert (summary.sent, summary.sent_before) == (0, 232)
    assert [record.key for record in decided_records(kafka, topic)] == before
