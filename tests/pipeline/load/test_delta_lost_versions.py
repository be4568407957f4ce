"""A Delta table whose versions are gone, or that is not the one that was loaded: an error that says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.loading import Load

from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import configured
from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


@pytest.mark.soak
@pytest.mark.parametrize(
    "cancels", [True, pytest.param(False, marks=pytest.mark.every_case)], ids=["to cancel", "to send"]
)
@pytest.mark.every_case
def test_a_version_whose_files_were_vacuumed_is_an_error_that_says_what_to_do(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, cancels: bool
) -> None:
    table = tmp_path / "a table, {100%} [+ ü]"
    rows = spark.range(3).selectExpr("cast(id as string) id", "'t' target_topic")
    rows.coalesce(1).write.format("delta").save(str(table))
    load(table, format="delta")
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = '1'")
    assert load(table, format="delta", cancels_deleted=True).cancelled == 1, "its files are there"
    spark.sql(f"DELETE FROM delta.`{table}` WHERE id = '2'")
    with configured(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
        spark.sql(f"VACUUM delta.`{table}` RETAIN 0 HOURS")

    with pytest.raises(JobError, match=r"VACUUM has deleted files of version 1 .*another --name"):
        load(table, format="delta", cancels_deleted=cancels)

    assert load(table, format="delta", name="another", cancels_deleted=cancels).sent == 1


@pytest.mark.soak
@pytest.mark.parametrize("purge", [False, pytest.param(True, marks=pytest.mark.every_case)], ids=["kept", "rewritten"])
@pytest.mark.every_case
def test_a_file_whose_deletion_vector_was_vacuumed_is_an_error_that_says_what_to_do(
    spark: SparkSession, load: Load, tmp_path: Path, purge: bool
) -> None:
    table, name = tmp_path / "a table, 100% + ü", f"delta.`{tmp_path / 'a table, 100% + ü'}`"
    rows = spark.range(4).selectExpr("cast(id as string) id", "'t' target_topic")
    rows.coalesce(1).write.format("delta").option("delta.enableDeletionVectors", "true").save(str(table))
    assert load(table, format="delta").sent == 4
    spark.sql(f"DELETE FROM {name} WHERE id = '1'")
    assert load(table, format="delta").sent == 0
    spark.sql(f"DELETE FROM {name} WHERE id = '2'")
    if purge:
        spark.sql(f"REORG TABLE {name} APPLY (PURGE)")
        for path in table.glob("**/deletion_vector_*.bin"):
            path.unlink()
    else:
        with configured(spark, {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}):
            spark.sql(f"VACUUM {name} RETAIN 0 HOURS")

    with pytest.raises(JobError, match=r"VACUUM has deleted files of version 1 .*another --name"):
        load(table, format="delta")


@pytest.mark.soak
@pytest.mark.every_case
def test_a_copy_of_a_delta_table_adds_nothing_until_it_gets_versions_of_its_own_and_then_is_an_error(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    table, copy = tmp_path / "table", tmp_path / "copy"

    def append(id: str, path: Path) -> None:
        rows = spark.createDataFrame([(id,)], "id string").selectExpr("id", "'t' target_topic")
        rows.coalesce(1).write.format("delta").mode("append").save(str(path))

    append("a", table)
    shutil.copytree(table, copy)
    assert load(table, format="delta").sent == 1
    assert load(copy, format="delta") == LoadSummary(0, 0, 0, 0, None)
    append("b", table)
    append("c", copy)
    assert load(table, format="delta").sent == 1
    with pytest.raises(JobError, match=r"copy is not the table that was loaded last.*another --name"):
        load(copy, format="delta")
    shutil.rmtree(table)
    spark.sql(f"RESTORE TABLE delta.`{copy}` TO VERSION AS OF 0")
    append("d", copy)
    with pytest.raises(JobError, match="up to version 1"):
        load(copy, format="delta")
    assert load(copy, format="delta", name="another").sent == 2
