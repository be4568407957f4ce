"""Versions of a Delta table: what is new in them is sent, and nothing again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from support.loading import AT, PASSED, Load, commands

from light_scheduler.pipeline.job import configured
from light_scheduler.pipeline.load import LoadSummary, versions
from light_scheduler.pipeline.load.versions import TableVersion
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


WAYS = {
    "files are rewritten-many rows are gone": (False, 0),
    "rows are marked in deletion vectors-few rows are gone": (True, versions.MOST_BROADCAST),
    "files are rewritten-few rows are gone": (False, versions.MOST_BROADCAST),
    "rows are marked in deletion vectors-many rows are gone": (True, 0),
}
"""How Delta changes rows (with vectors?), and how many rows that are gone are sent to all tasks."""


def ways(usual: str) -> pytest.MarkDecorator:
    """Return the parameters of a test that goes one way, and the others with `--every-case`."""
    return pytest.mark.parametrize(
        ("vectors", "broadcast"),
        [
            pytest.param(*way, id=name, marks=[] if name == usual else pytest.mark.every_case)
            for name, way in WAYS.items()
        ],
        indirect=["broadcast"],
    )


@pytest.fixture
def broadcast(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rows that are gone sent to all tasks, or not."""
    monkeypatch.setattr(versions, "MOST_BROADCAST", request.param)


@pytest.mark.soak
@pytest.mark.every_case
def test_a_delta_table_whose_files_are_rewritten_sends_nothing_and_then_only_what_is_added(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = tmp_path / "a table"

    def append(*ids: str) -> None:
        rows = spark.createDataFrame([(id,) for id in ids], "id string")
        rows.selectExpr("id", "'t' target_topic", "'x' payload").coalesce(1).write.format("delta").mode("append").save(
            str(table)
        )

    for ids in (("a", "b"), ("c",), ("d", "e")):
        append(*ids)
    assert load(table, format="delta").sent == 5
    spark.sql(f"OPTIMIZE delta.`{table}`")
    assert load(table, format="delta") == LoadSummary(0, 0, 0, 0, None)
    append("f")
    append("g", "h")
    spark.sql(f"OPTIMIZE delta.`{table}`")
    append("i")
    assert load(table, format="delta") == LoadSummary(4, 4, 0, 0, None)
    assert load(table, format="delta").sent == 0
    assert [command.id for command in commands(kafka, topic)] == list("abcdefghi")
    assert load(table, format="delta", name=f"{topic}-other").sent == 9


@pytest.mark.usefixtures("broadcast")
@ways("rows are marked in deletion vectors-few rows are gone")
@pytest.mark.soak
@pytest.mark.every_case
def test_a_delta_table_whose_rows_change_sends_what_is_new_and_nothing_again(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, vectors: bool
) -> None:
    table = tmp_path / "table"
    at = "timestamp_micros(1900000000000001) at"
    rows = spark.range(100).selectExpr("cast(id as string) id", "'t' target_topic", at, "map('k', 'v') labels")
    rows.coalesce(1).write.format("delta").save(str(table))
    name = f"delta.`{table}`"
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}')")
    assert load(table, format="delta").sent == 100
    spark.sql(f"DELETE FROM {name} WHERE id < 20")
    assert load(table, format="delta").sent == 0
    spark.sql(f"UPDATE {name} SET target_topic = 'u' WHERE id in ('30', '31')")
    rows.where("id = '7'").selectExpr("'new' id", "target_topic", "at", "labels").write.format("delta").mode(
        "append"
    ).save(str(table))
    spark.sql(f"OPTIMIZE {name}")
    assert load(table, format="delta").sent == 3
    rows.where("id in ('40', '41')").write.format("delta").mode("overwrite").save(str(table))
    assert load(table, format="delta").sent == 0
    sent = commands(kafka, topic)
    assert len(sent) == 103
    assert [command.id for command in sent if command.target.topic == "u"] == ["30", "31"]


@pytest.mark.usefixtures("broadcast")
@ways("files are rewritten-many rows are gone")
@pytest.mark.soak
@pytest.mark.every_case
def test_rows_that_are_written_again_as_they_were_send_nothing_and_those_that_come_back_are_sent(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, vectors: bool
) -> None:
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"
    rows = spark.range(10).selectExpr("cast(id as string) id", "'t' target_topic", "'x' payload", f"'{AT}' at")
    property = "delta.enableDeletionVectors", str(vectors).lower()
    rows.coalesce(1).write.format("delta").option(*property).save(str(table))
    assert load(table, format="delta").sent == 10
    spark.sql(f"UPDATE {name} SET payload = payload WHERE id = '1'")
    assert load(table, format="delta").sent == 0
    source = "SELECT * FROM VALUES ('2', 'x'), ('3', 'y'), ('new', 'x') AS rows(id, payload)"
    spark.sql(
        f"MERGE INTO {name} USING ({source}) AS source ON {name}.id = source.id "
        "WHEN MATCHED THEN UPDATE SET payload = source.payload "
        "WHEN NOT MATCHED THEN INSERT (id, target_topic, payload, at) "
        f"VALUES (source.id, 't', source.payload, '{AT}')"
    )
    assert load(table, format="delta").sent == 2
    spark.sql(f"DELETE FROM {name} WHERE id = '4'")
    assert load(table, format="delta").sent == 0
    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF 0")
    assert load(table, format="delta").sent == 2, "the row that was deleted and the one that was changed"
    assert [command.id for command in commands(kafka, topic)] == sorted([*map(str, range(10)), "3", "3", "4", "new"])


@pytest.mark.usefixtures("broadcast")
@ways("rows are marked in deletion vectors-few rows are gone")
@pytest.mark.soak
@pytest.mark.every_case
def test_rows_that_are_appended_again_are_sent_also_if_another_commit_rewrote_the_file_that_has_them(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, vectors: bool
) -> None:
    table, name = tmp_path / "table", f"delta.`{tmp_path / 'table'}`"

    def append(*ids: str) -> None:
        rows = spark.createDataFrame([(id,) for id in ids], "id string")
        columns = "id", "'t' target_topic", "'x' payload", f"{PASSED} at"
        rows.selectExpr(*columns).coalesce(1).write.format("delta").mode("append").save(str(table))

    append("a", "b", "c", "c")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = '{str(vectors).lower()}')")
    assert load(table, format="delta").sent == 4
    spark.sql(f"UPDATE {name} SET payload = 'y' WHERE id = 'b'")
    append("a", "d")
    append("e", "a", "a")
    append("c", "f", "c")
    assert load(table, format="delta") == LoadSummary(9, 9, 0, 0, None, repeated_ids=3), "none is held back"
    spark.sql(f"DELETE FROM {name} WHERE id = 'd'")
    append("a", "g")
    spark.sql(f"OPTIMIZE {name}")
    assert load(table, format="delta").sent == 2
    assert "".join(command.id for command in commands(kafka, topic)) == "aaaaa" + "bb" + "cccc" + "defg"


@pytest.mark.parametrize(
    "broadcast",
    [
        pytest.param(versions.MOST_BROADCAST, id="few rows are gone"),
        pytest.param(0, id="many rows are gone", marks=pytest.mark.every_case),
    ],
    indirect=True,
)
@pytest.mark.usefixtures("broadcast")
@pytest.mark.soak
@pytest.mark.every_case
def test_files_of_one_name_in_different_folders_are_told_apart(spark: SparkSession, load: Load, tmp_path: Path) -> None:
    table = tmp_path / "a table, 100% + ü"
    columns = "cast(id as string) id", "'t' target_topic", f"{AT} at", "concat('a b=', id % 2) folder"
    spark.range(40).selectExpr(*columns).coalesce(1).write.partitionBy("folder").parquet(str(table))
    spark.sql(f"CONVERT TO DELTA parquet.`{table}` PARTITIONED BY (folder string)")
    assert len({path.name for path in table.glob("folder=*/*.parquet")}) == 1
    options: dict[str, Any] = {"format": "delta", "ignored": ("folder",)}
    assert load(table, **options).sent == 40
    spark.sql(f"UPDATE delta.`{table}` SET target_topic = 'u' WHERE id IN ('1', '11', '21', '31')")
    parts = []
    for partitions in (2, 5):
        with configured(spark, {"spark.sql.shuffle.partitions": str(partitions)}):
            (part,) = TableVersion.at(spark, str(table), {}).between(0, 1)
            parts.append(part.select("id", F.spark_partition_id()).collect())
    assert parts[0] == parts[1], "batches are the same whatever the cluster"
    assert [row.id for row in parts[0]] == ["1", "11", "21", "31"], "in the order of their file"
    assert load(table, **options).sent == 4


@pytest.mark.soak
@pytest.mark.every_case
def test_a_delta_table_that_is_replaced_sends_what_is_new(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, prefix: str, tmp_path: Path
) -> None:
    table, name = tmp_path / "table", prefix.replace("-", "_")

    def replace(*ids: str) -> None:
        rows = ", ".join(f"('{id}', 't', 'x')" for id in ids)
        values = f"SELECT * FROM VALUES {rows} AS rows(id, target_topic, payload)"
        spark.sql(f"CREATE OR REPLACE TABLE {name} USING delta LOCATION '{table}' AS {values}")

    try:
        replace("a", "b")
        assert load(table, format="delta").sent == 2
        replace("b", "c", "a")
        assert load(table, format="delta") == LoadSummary(1, 1, 0, 0, None)
        replace("d", "c")
        replace("d", "c", "b")
        assert load(table, format="delta").sent == 1, "b was there in the version that was loaded last"
    finally:
        spark.sql(f"DROP TABLE {name}")
    assert [command.id for command in commands(kafka, topic)] == list("abcd")
