"""Rows that are deleted from a Delta table: their schedules are cancelled, and those that come back are sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.kafka_records import decided_records
from support.loading import AT, PASSED, VECTORS, Load, killed_before_a_version_is_marked

from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.testing import Kafka
from light_scheduler.wire.native import NATIVE

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


@pytest.mark.soak
@VECTORS
@pytest.mark.every_case
def test_schedules_whose_rows_were_deleted_from_a_delta_table_are_cancelled_once(
    spark: SparkSession,
    load: Load,
    kafka: Kafka,
    topic: str,
    tmp_path: Path,
    vectors: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = tmp_path / "table"

    def append(payload: str, *ids: str) -> None:
        rows = spark.createDataFrame([(id,) for id in ids], "id string")
        columns = "id", "concat('of ', id) key", "if(id = 'b', 'acme', null) tenant", "'t' target_topic"
        rows.selectExpr(*columns, f"'{payload}' payload").coalesce(1).write.format("delta").mode("append").save(
            str(table)
        )

    def changed() -> list[Any]:
        """Return all records after those of the first load."""
        return [each for each in decided_records(kafka, topic) if (each.partition, each.offset) not in before]

    options: dict[str, Any] = {"format": "delta", "cancels_deleted": True}
    append("x", "a", "b", "c", "d", "e")
    append("y", "e")
    property = f"'delta.enableDeletionVectors' = '{str(vectors).lower()}'"
    spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ({property})")
    assert load(table, **options).sent == 6
    homes = {record.key: record.partition for record in decided_records(kafka, topic)}
    before = {(record.partition, record.offset) for record in decided_records(kafka, topic)}
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id IN ('a', 'b')")
    spark.sql(f"UPDATE delta.`{table}` SET target_topic = 'u' WHERE id = 'c'")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 'e' AND payload = 'x'")
    with killed_before_a_version_is_marked(monkeypatch):  # after the cancels
        load(table, **options)
    summary = load(table, **options)

    assert (summary.sent, summary.cancelled, load(table, **options).cancelled) == (0, 0, 0)
    assert [(record.key, record.partition) for record in changed()].count((b"of c", homes[b"of c"])) == 1
    cancels = [NATIVE.decode(record) for record in changed() if record.value is None]
    assert sorted((each.name, each.tenant, each.id) for each in cancels) == [
        ("cancel", "acme", "b"),
        ("cancel", "default", "a"),
    ]
    assert all(record.partition == homes[record.key or b""] for record in changed())


@pytest.mark.soak
@pytest.mark.every_case
def test_a_row_that_is_deleted_and_comes_back_between_two_loads_is_neither_sent_nor_cancelled(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    rows = spark.createDataFrame([("a", AT), ("b", AT)], "id string, at long")
    rows.coalesce(1).write.format("delta").save(str(table))
    options: dict[str, Any] = {"format": "delta", "constants": {"target-topic": "t"}, "cancels_deleted": True}
    assert load(table, **options).sent == 2
    spark.sql(f"DELETE FROM {name} WHERE id = 'a'")
    spark.sql(f"INSERT INTO {name} VALUES ('a', {AT})")
    assert load(table, **options) == LoadSummary(0, 0, 0, 0, None)
    spark.sql(f"DELETE FROM {name} WHERE id = 'a'")
    assert load(table, **options).cancelled == 1
    spark.sql(f"INSERT INTO {name} VALUES ('a', {AT})")
    assert load(table, **options).sent == 1


@pytest.mark.soak
@pytest.mark.every_case
def test_files_that_come_back_are_sent_again_though_their_batches_were_save_for_rows_that_have_passed(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    table, rows = tmp_path / "table", [("ahead", AT), ("passed", PASSED)]
    written = spark.createDataFrame(rows, "id string, at long").repartitionByRange(2, "id").write.format("delta")
    written.save(str(table))
    options: dict[str, Any] = {"format": "delta", "constants": {"target-topic": "t"}}
    assert load(table, **options).sent == 2
    spark.sql(f"DELETE FROM delta.`{table}`")
    assert load(table, **options, cancels_deleted=True).cancelled == 2
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
    summary = load(table, **options, refused=str(tmp_path / "refused"))
    assert (summary.sent, summary.refused) == (1, 1)
    assert load(table, **options) == LoadSummary(0, 0, 0, 0, None)
    whole = {**options, "reading": {"versionAsOf": "2"}, "sends_past": True}
    summary = load(table, **whole)
    assert (summary.sent, summary.sent_before) == (1, 1), "what was sent is known by its content, too"


@pytest.mark.soak
@pytest.mark.every_case
def test_rows_that_deletion_vectors_give_back_are_sent_each_time(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    rows = spark.createDataFrame([("stays", AT), ("goes", AT)], "id string, at long")
    rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(table))
    options: dict[str, Any] = {"format": "delta", "constants": {"target-topic": "t"}}
    assert load(table, **options).sent == 2
    for _ in range(2):
        spark.sql(f"DELETE FROM {name} WHERE id = 'goes'")
        assert load(table, **options, cancels_deleted=True).cancelled == 1
        spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
        assert load(table, **options).sent == 1


@pytest.mark.soak
@pytest.mark.every_case
def test_rows_that_have_passed_and_come_back_in_files_that_only_optimize_wrote_are_held_back(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    for id, at in (("ahead", AT), ("passed", PASSED)):
        rows = spark.createDataFrame([(id, at)], "id string, at long")
        rows.coalesce(1).write.format("delta").mode("append").save(str(table))
    options: dict[str, Any] = {
        "format": "delta",
        "constants": {"target-topic": "t"},
        "refused": str(tmp_path / "refused"),
    }
    assert load(table, **options).sent == 2
    spark.sql(f"OPTIMIZE {name}")
    spark.sql(f"DELETE FROM {name} WHERE id = 'passed'")
    load(table, **options)
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 2")
    summary = load(table, **options)
    assert (summary.sent, summary.refused) == (0, 1)


@pytest.mark.soak
@pytest.mark.every_case
def test_the_summary_tells_how_many_schedules_were_cancelled(spark: SparkSession, load: Load, tmp_path: Path) -> None:
    table, rows = tmp_path / "table", spark.range(3).selectExpr("cast(id as string) id", "'t' target_topic")
    rows.coalesce(1).write.format("delta").save(str(table))
    load(table, format="delta")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = '1'")
    summary = load(table, format="delta", cancels_deleted=True)
    assert summary == LoadSummary(0, 0, 0, 0, None, cancelled=1)
    assert summary.lines()[1] == "1 schedules cancelled: their rows were deleted"
