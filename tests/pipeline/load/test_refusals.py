"""Rows that are refused, each with its field and reason, and tables that cannot be commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.loading import AT, Load, commands, marks_of, parquet, refused

from light_scheduler.engine.limits import Limits
from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.load import LoadOptions, LoadSummary, main
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


def test_refused_rows_are_in_a_table_with_field_and_reason_and_the_others_are_sent(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = parquet(
        tmp_path / "table.parquet",
        id=["good", "seconds", "cron", "topic", "header", "labels", "big", "past", "internal"],
        at=["1900000000000", "1900000000", None, *["1900000000000"] * 4, "1000000000000", "1900000000000"],
        cron=[None, None, "61 * * * *", *[None] * 6],
        target_topic=["t", "t", "t", "a topic", "t", "t", "t", "t", "mine"],
        headers=[None] * 4 + ['{"schedule-id": "x"}'] + [None] * 4,
        labels=[None] * 5 + ["team"] + [None] * 3,
        on_past=[None] * 7 + ["reject", None],
        payload=["x"] * 6 + ["x" * 101, "x", "x"],
    )
    limits = Limits(100, 100, frozenset({"mine"}))
    summary = load(table, refused=str(tmp_path / "refused"), limits=limits)
    assert (summary.rows, summary.sent, summary.refused, summary.failed) == (9, 1, 8, True)
    assert [command.id for command in commands(kafka, topic)] == ["good"]
    found = refused(spark, tmp_path / "refused")
    assert [(row, field) for row, field, _ in found] == [
        (2, "at"),
        (3, "cron"),
        (4, "target-topic"),
        (5, "headers"),
        (6, "labels"),
        (7, "payload"),
        (8, "at"),
        (9, "target-topic"),
    ]
    assert "looks like seconds" in found[0][2]
    assert load(table, refused=str(tmp_path / "refused"), limits=limits).refused == 8
    assert refused(spark, tmp_path / "refused") == found


def test_a_row_whose_time_is_null_is_not_delivered_at_once(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = parquet(
        tmp_path / "table.parquet",
        id=["at", "none", "cron", "empty"],
        at=[str(AT), None, None, ""],
        cron=[None, None, "0 9 * * *", None],
        target_topic=["t"] * 4,
        payload=["x"] * 4,
    )
    summary = load(table, refused=str(tmp_path / "refused"))
    assert (summary.sent, summary.refused) == (2, 2)
    assert [command.id for command in commands(kafka, topic)] == ["at", "cron"]
    reasons = {row: (field, reason) for row, field, reason in refused(spark, tmp_path / "refused")}
    assert reasons[2] == ("at", "at, cron are all null: give a time, or `after` 0 to deliver at once")
    assert reasons[4][0] == "at"


@pytest.mark.soak
def test_refused_rows_keep_their_types_and_can_be_loaded_themselves(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    rows: dict[str, Any] = {
        "id": ["a", "b", "c"],
        "at": pa.array([AT * 1_000] * 3, pa.timestamp("us", "UTC")),
        "target_topic": ["t"] * 3,
        "payload": pa.array([b"\x00\xff", b"\x00\xff" * 60, None], pa.binary()),
        "labels": pa.array([None, [("k", "v")], None], pa.map_(pa.string(), pa.string())),
    }
    table = parquet(tmp_path / "table.parquet", **rows)
    assert load(table, limits=Limits(100, 100), refused=str(tmp_path / "refused")).refused == 1
    (row,) = spark.read.parquet(str(tmp_path / "refused")).select("content.*").collect()
    assert (row.id, bytes(row.payload), row.labels) == ("b", b"\x00\xff" * 60, {"k": "v"})
    assert load(tmp_path / "refused", limits=Limits(200, 100)).sent == 1
    assert [(command.id, command.labels) for command in commands(kafka, topic)] == [
        ("a", None),
        ("b", {"k": "v"}),
        ("c", None),
    ]


def test_rows_that_repeat_an_id_are_counted_and_told(load: Load, tmp_path: Path) -> None:
    table = parquet(
        tmp_path / "table.parquet",
        id=["a", "b", "a", "a", ""],
        tenant=[None, None, None, "acme", None],
        target_topic=["t"] * 5,
    )
    summary = load(table, dry_run=True)
    assert (summary.rows, summary.refused, summary.repeated_ids) == (5, 1, 1)
    assert "1 rows have the id of another row" in summary.lines()[1]
    assert load(table).repeated_ids == 1


def test_a_dry_run_shows_the_first_rows_of_each_kind_of_refusal(load: Load, tmp_path: Path) -> None:
    at = [f"soon-{number}" if number < 12 else str(AT) for number in range(15)]
    ttl = ["1h"] * 13 + ["x", "y"]
    table = parquet(tmp_path / "a table.parquet", id=list(map(str, range(15))), at=at, ttl=ttl, target_topic=["t"] * 15)
    summary = load(table, dry_run=True)
    assert (summary.rows, summary.refused) == (15, 14)
    assert [(kind.field, kind.rows, [row.row for row in kind.first]) for kind in summary.kinds] == [
        ("at", 12, [*range(1, 11)]),
        ("ttl", 2, [14, 15]),
    ]
    lines = summary.lines()
    assert lines[1] == "12 rows refused because of at, the first 10 of them:"
    assert lines[2].startswith("  row 1 in a table.parquet: ")
    assert "soon-0" in lines[2]


def test_a_dry_run_sends_nothing(load: Load, kafka: Kafka, topic: str, tmp_path: Path) -> None:
    table = parquet(tmp_path / "table.parquet", id=["a", ""], target_topic=["t", "t"], payload=["x", "x"])
    summary = load(table, dry_run=True)
    assert replace(summary, kinds=()) == LoadSummary(2, 0, 0, 1, None)
    assert commands(kafka, topic) == []


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"target_topc": ["t"]}, {}, "column target_topc is not known; did you mean target-topic"),
        ({"command": ["cancel"]}, {}, "every row is a schedule"),
        ({"at": [1.5]}, {}, "column at cannot be double"),
        ({"priority": [b"1"]}, {}, "column priority cannot be binary"),
        ({"target_topic": ["t"], "target-topic": ["t"]}, {}, "are the same"),
        ({"payload": ["x"], "payload_base64": ["eA=="]}, {}, "give one of them"),
        ({"id": ["a"]}, {"constants": {"colour": "red"}}, "colour is not known"),
        ({"id": ["a"]}, {"constants": {"id": "b"}}, "set with --set"),
        ({"id": ["a"]}, {"ignored": ("x",)}, "no column x to ignore"),
        ({"id": ["a"]}, {"commands_topic": "not-there"}, "topic not-there cannot be used"),
    ],
)
def test_a_table_that_cannot_be_commands_is_refused_by_the_column(
    spark: SparkSession,
    kafka: Kafka,
    topic: str,
    tmp_path: Path,
    columns: dict[str, Any],
    options: dict[str, Any],
    message: str,
) -> None:
    table = parquet(tmp_path / "table.parquet", **columns)
    given = {
        "cluster": Cluster(kafka.bootstrap_servers),
        "commands_topic": topic,
        "marks_topic": marks_of(topic),
        **options,
    }
    with pytest.raises(JobError, match=message):
        main(spark, LoadOptions(table=str(table), **given))


@pytest.mark.soak
@pytest.mark.every_case
def test_refused_rows_of_new_versions_of_a_delta_table_are_added_to_those_of_earlier_ones(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    table, kept = tmp_path / "table", tmp_path / "refused"
    for number, at in enumerate(("soon", AT, "later")):
        rows = spark.createDataFrame([(f"id-{number}", str(at))], "id string, at string")
        rows.selectExpr("id", "at", "'t' target_topic").coalesce(1).write.format("delta").mode("append").save(
            str(table)
        )
        load(table, format="delta", refused=str(kept))
    found = spark.read.parquet(str(kept)).select("content.id").collect()
    assert sorted(row.id for row in found) == ["id-0", "id-2"]


@pytest.mark.soak
@pytest.mark.every_case
def test_refused_rows_are_read_with_the_columns_of_all_loads_that_added_them(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table, kept = tmp_path / "table", tmp_path / "refused"
    for number, ignored in enumerate(("priority", "payload")):
        rows = spark.createDataFrame(
            [(f"long-{number}", "x", 5), (str(number), "x", 5)], "id string, payload string, priority int"
        )
        rows.coalesce(1).write.format("delta").mode("append").save(str(table))
        options: dict[str, Any] = {"constants": {"target-topic": "t"}, "ignored": (ignored,)}
        assert load(table, format="delta", refused=str(kept), limits=Limits(100, 3), **options).refused == 1
    assert load(kept, constants={"target-topic": "t"}).sent == 2
    found = {command.id: (command.payload, command.priority) for command in commands(kafka, topic)}
    assert found["long-0"][0] == b"x"
    assert found["long-1"][1] == 5
