"""Checkpoints of loads that go on: where they are, and what is read of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from support.loading import AT, Load, going_on, parquet
from support.waiting import eventually_blocking

from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import Cluster, configured
from light_scheduler.pipeline.load.checkpoints import CONFIG, configured_checkpoint, place_in
from light_scheduler.pipeline.load.options import LoadOptions
from light_scheduler.pipeline.load.stream_files import SparkCheckpoint, files_of
from light_scheduler.pipeline.topics import cluster_id
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.soak]


def test_of_the_files_of_all_looks_those_of_one_are_collected(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, collected = tmp_path / "a checkpoint {1}", list[Row]()
    for folder in ("offsets", "sources/0"):
        (checkpoint / folder).mkdir(parents=True)
    for batch in (8, 9):
        (checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{batch}}}')
    noted = [(f"file:///in/a%20b/{number}", number % 9) for number in range(1_000)] + [("file:///in/c%20d", 9)]
    lines = [json.dumps({"path": path, "timestamp": 1, "batchId": look}) for path, look in noted]
    (checkpoint / "sources" / "0" / "9.compact").write_text("\n".join(["v1", *lines]))

    kind = type(spark.range(1))
    collect = kind.collect

    def counted(table: Any) -> list[Row]:
        rows = collect(table)
        collected.extend(rows)
        return rows

    monkeypatch.setattr(kind, "collect", counted)
    assert files_of(SparkCheckpoint(spark, str(checkpoint)), 9) == ["file:///in/c%20d"]
    assert len(collected) < 10


@pytest.mark.every_case
def test_a_load_goes_on_where_it_was_by_the_checkpoints_that_spark_is_configured_with(
    spark: SparkSession, load: Load, sent: Callable[[int], None], tmp_path: Path
) -> None:
    (folder := tmp_path / "rows").mkdir()
    refused = str(tmp_path / "refused")

    def put(id: str) -> None:
        parquet(tmp_path / id, id=[id], at=[str(AT)], target_topic=["t"]).rename(folder / f"{id}.parquet")

    put("a")
    with configured(spark, {CONFIG: str(tmp_path / "checkpoints")}):
        with going_on(load, folder, refused=refused):
            sent(1)
            done = (tmp_path / "checkpoints").glob
            eventually_blocking(
                lambda: any(done("*/commits/0")), within=60, every=0.2, what="a micro-batch that is done"
            )
        put("b")
        with going_on(load, folder, refused=refused) as second:
            sent(2)
        put("c")
        with going_on(load, folder, refused=refused, checkpoint=str(tmp_path / "own")) as third:
            sent(3)
    assert (second[0].rows, second[0].sent_before) == (1, 0), "what the first run read is not read again"
    assert third[0].rows == 3, "a checkpoint that is named is another one"
    assert (tmp_path / "own" / "offsets").is_dir()
    assert len(list((tmp_path / "checkpoints").iterdir())) == 1


def test_a_configured_place_for_checkpoints_is_not_in_the_folder_that_is_loaded(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    (folder := tmp_path / "rows").mkdir()
    parquet(folder / "a.parquet", id=["a"], target_topic=["t"])
    with (
        configured(spark, {CONFIG: str(folder / "checkpoints")}),
        pytest.raises(JobError, match=rf"^{CONFIG} .* is in the folder that is loaded"),
    ):
        load(folder, refused=str(tmp_path / "refused"), every_s=1.0)


def test_a_configured_place_that_is_none_is_an_error_that_names_the_setting(
    spark: SparkSession, load: Load, tmp_path: Path
) -> None:
    parquet(tmp_path / "a.parquet", id=["a"], target_topic=["t"])
    with (
        configured(spark, {CONFIG: "table:no name"}),
        pytest.raises(JobError, match=rf"^{CONFIG} cannot be used: no name is not a name in a catalog"),
    ):
        load(tmp_path / "a.parquet", refused=str(tmp_path / "refused"), every_s=1.0)


def test_a_configured_checkpoint_is_that_of_one_cluster(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    cluster = Cluster(kafka.bootstrap_servers)
    options = LoadOptions(table=str(tmp_path), cluster=cluster, commands_topic="c", marks_topic="m")
    with configured(spark, {CONFIG: str(tmp_path)}):
        here = configured_checkpoint(spark, options)
    assert cluster_id(cluster)
    assert here == place_in(str(tmp_path), options, str(tmp_path), cluster_id(cluster))
