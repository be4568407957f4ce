"""Rows whose time has passed are sent once, and not again when their table is written anew."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.loading import AT, PASSED, Load, commands, parquet, refused

from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


@pytest.mark.soak
@pytest.mark.every_case
def test_a_file_with_more_rows_sends_nothing_that_has_passed_again_unless_it_is_asked_for(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"

    def write(*rows: tuple[str, int, str]) -> None:
        lines = [f"{id},{at or ''},{after}" for id, at, after in rows]
        table.write_text("\n".join(["id,at,after", *lines]) + "\n")

    first = ("passed", PASSED, ""), ("ahead", AT, ""), ("after", 0, "1h")
    options: dict[str, Any] = {"format": "csv", "constants": {"target-topic": "t"}}
    write(*first)
    assert load(table, **options).sent == 3, "what has passed is sent the first time"
    write(*first, ("new", AT, ""), ("new-passed", PASSED, ""))
    for sent in (2, 0):
        again = load(table, **options, refused=str(tmp_path / "refused"))
        assert (again.sent, again.refused, again.failed) == (sent, 3, True)
    found = refused(spark, tmp_path / "refused")
    assert [(row, field) for row, field, _ in found] == [(1, "at"), (3, "after"), (5, "at")]
    assert all("--send-past" in reason for _, _, reason in found)
    assert [command.id for command in commands(kafka, topic)] == ["after", "ahead", "ahead", "new", "passed"]
    assert load(table, **options, sends_past=True) == LoadSummary(5, 3, 2, 0, None)
    assert load(table, **options) == LoadSummary(5, 0, 5, 0, None)


@pytest.mark.soak
@pytest.mark.every_case
def test_rows_that_were_refused_because_they_have_passed_can_be_loaded_from_their_table(
    load: Load, tmp_path: Path
) -> None:
    kept = tmp_path / "refused"
    for ids, held_back in ((["a"], 0), (["a", "b"], 2), (["a", "b", "c"], 3)):
        table = parquet(tmp_path / "table.parquet", id=ids, at=[PASSED] * len(ids), target_topic=["t"] * len(ids))
        assert load(table, refused=str(kept)).refused == held_back
        if held_back:
            assert load(kept).sent == held_back


@pytest.mark.soak
@pytest.mark.every_case
def test_a_table_that_is_written_anew_sends_nothing_that_has_passed_again(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table, at = tmp_path / "a table", f"if(id < 9, {PASSED}, {AT}) at"
    rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", at)
    rows.repartition(2).write.parquet(str(table))
    assert load(table).sent == 10
    rows.limit(2).write.mode("append").parquet(str(table))
    assert load(table).sent == 2, "new files only add theirs"
    rows.repartition(3).write.mode("overwrite").parquet(str(table))
    for sent in (1, 0):
        again = load(table)
        assert (again.sent, again.refused) == (sent, 9)
    assert len(commands(kafka, topic)) == 13


@pytest.mark.soak
@pytest.mark.every_case
def test_a_delta_table_that_is_made_again_sends_nothing_that_has_passed_again(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", f"{PASSED} at")
    for files, sent in ((1, 10), (2, 0)):
        shutil.rmtree(table, ignore_errors=True)
        rows.repartition(files).write.format("delta").save(str(table))
        summary = load(table, format="delta")
        assert (summary.sent, summary.refused) == (sent, 10 - sent)
    assert len(commands(kafka, topic)) == 10
