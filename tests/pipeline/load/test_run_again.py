"""A load that is run again: rows are known by their content, and only new ones are sent."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from support.loading import AT, Load, commands, parquet, refused

from light_scheduler.engine.limits import Limits
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.load import LoadSummary
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


@pytest.mark.soak
@pytest.mark.every_case
def test_rows_are_known_by_their_content_wherever_they_are_and_whatever_the_groups_of_the_broker_forget(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    rows = {"id": ["a", "b"], "target_topic": ["t"] * 2, "payload": ["x", None]}
    one = parquet(tmp_path / "one.parquet", **rows)
    assert load(one).sent == 2
    os.utime(one, (1, 1))
    assert load(one) == LoadSummary(2, 0, 2, 0, None)
    copy = parquet(tmp_path / "copy.parquet", **rows, labels=pa.nulls(2, pa.string()))
    assert load(copy) == LoadSummary(2, 0, 2, 0, None)
    csv = tmp_path / "copy.csv"
    csv.write_text("payload,id\nx,a\n,b\n")
    assert load(csv, format="csv", constants={"target-topic": "t"}).sent == 2, "other constants, other commands"
    assert load(parquet(one, **{**rows, "payload": ["x", "y"]}), sends_past=True).sent == 2, "another content"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
    assert [name for name in groups if topic in name] == [], "no mark is kept where it would expire"


@pytest.mark.soak
def test_a_load_that_is_run_again_adds_nothing_and_new_files_only_add_theirs(
    load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    parquet(folder / "one.parquet", id=["a", "b"], target_topic=["t"] * 2)
    parquet(folder / "two.parquet", id=["c"], target_topic=["t"])
    assert load(folder).sent == 3
    assert load(folder) == LoadSummary(3, 0, 3, 0, None)
    parquet(folder / "three.parquet", id=["d"], target_topic=["t"])
    assert load(folder) == LoadSummary(4, 1, 3, 0, None)
    assert [command.id for command in commands(kafka, topic)] == ["a", "b", "c", "d"]
    assert load(folder, name=f"{topic}-other").sent == 4


@pytest.mark.soak
def test_a_row_that_was_refused_is_sent_once_its_limit_is_raised(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    table = parquet(
        tmp_path / "table.parquet", id=["a", "b"], at=[AT] * 2, target_topic=["t"] * 2, payload=["x", "xxx"]
    )
    kept = str(tmp_path / "refused")
    assert load(table, limits=Limits(2, 100), refused=kept) == LoadSummary(2, 1, 0, 1, kept)
    for sent in (1, 0):
        assert load(table, limits=Limits(3, 100), refused=kept) == LoadSummary(2, sent, 2 - sent, 0, kept)
    assert refused(spark, tmp_path / "refused") == []
    assert [command.id for command in commands(kafka, topic)] == ["a", "b"]


@pytest.mark.soak
def test_a_load_that_fails_half_way_goes_on_where_it_was(
    spark: SparkSession, load: Load, kafka: Kafka, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import light_scheduler.pipeline.load as job

    count = 1_000
    table = parquet(
        tmp_path / "table.parquet",
        id=[f"{number:04}" for number in range(count)],
        target_topic=["t"] * count,
        payload=["x" * 100] * 900 + ["x" * 2_000_000] + ["x" * 100] * 99,
    )
    monkeypatch.setitem(job._CONFIGS, "spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    with pytest.raises(Exception, match="Message size too large"):
        load(table, cluster=Cluster(kafka.bootstrap_servers, {"message.max.bytes": "1000000"}))
    assert len(commands(kafka, topic)) == 900
    limits = Limits(1_000_000, 100)
    assert load(table, limits=limits) == LoadSummary(count, 99, 900, 1, None)
    assert len({command.id for command in commands(kafka, topic)}) == len(commands(kafka, topic)) == 999
