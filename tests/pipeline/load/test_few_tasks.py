"""What a load looks up in many small files takes a few tasks, and finds what is there."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)
from support.loading import parquet
from support.waiting import eventually_blocking

from light_scheduler.errors import JobError
from light_scheduler.pipeline.job import configured
from light_scheduler.pipeline.load import _CONFIGS, few_tasks
from light_scheduler.pipeline.load.commits import Commit, CommitLog
from light_scheduler.pipeline.load.copies import copies

pytestmark = [pytest.mark.pipeline, pytest.mark.soak]

FILES = 40
MOST = 8
"""Tasks of a stage: four for each of the two cores."""


def await_counted(spark: SparkSession) -> None:
    """Wait until Spark tells of all jobs so far: it counts them beside their work, one after another."""
    context, last = spark.sparkContext, uuid.uuid4().hex
    context.setJobGroup(last, "counted last")
    spark.range(1).collect()
    tracker = context.statusTracker()

    def is_told() -> bool:
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(last)]
        return any(job is not None and job.status == "SUCCEEDED" for job in jobs)

    eventually_blocking(is_told, what="the job that was counted last")


@contextmanager
def counted_tasks(spark: SparkSession) -> Iterator[list[int]]:
    """Give the numbers of the tasks of all stages within the block, when it has ended."""
    context, group, tasks = spark.sparkContext, uuid.uuid4().hex, list[int]()
    context.setJobGroup(group, "counted")
    try:
        yield tasks
    finally:
        await_counted(spark)
        tracker = context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
        stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
        tasks += [stage.numTasks for stage in stages if stage is not None]
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # which takes it away


def test_copies_among_many_files_are_told_by_a_few_tasks(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(FILES):
        parquet(tmp_path / f"{number:02}.parquet", id=[f"{min(number, FILES - 2):02}"])  # the last two are alike
    with configured(spark, _CONFIGS):
        table = spark.read.parquet(str(tmp_path))
        rows = table.select("id", F.col("_metadata.file_path").alias("_file"))
        files = rows.inputFiles()
        with counted_tasks(spark) as tasks:
            found = copies(rows, ["id"], files)
    assert [Path(file).name for file in found] == [f"{FILES - 1:02}.parquet"]
    assert tasks, "they were counted"
    assert max(tasks) <= MOST


def test_files_of_many_bytes_are_compared_by_more_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_tasks, "_TASK_BYTES", 1)
    for number in range(2 * MOST):
        parquet(tmp_path / f"{number:02}.parquet", id=[f"{number:02}"])
    with configured(spark, _CONFIGS):
        table = spark.read.parquet(str(tmp_path))
        rows = table.select("id", F.col("_metadata.file_path").alias("_file"))
        with counted_tasks(spark) as tasks:
            assert copies(rows, ["id"], rows.inputFiles()) == []
    assert max(tasks) > MOST


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> CommitLog:
    """The log of a table that got a file in each version, lost one in the last, and was restored in the one before."""
    (folder := tmp_path / "a table {1}" / "_delta_log").mkdir(parents=True)
    for version in range(FILES):
        lines: list[dict[str, Any]] = [{"commitInfo": {"operation": "RESTORE" if version == FILES - 2 else "WRITE"}}]
        lines += [{"metaData": {"id": f"id-{version}"}}] if version in (0, 5) else []
        lines += [{"add": {"path": f"{version}%20a", "dataChange": True}}]
        lines += [{"remove": {"path": "0%20a", "dataChange": True}}] if version == FILES - 1 else []
        (folder / f"{version:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / f"{3:020}.checkpoint.{uuid.UUID(int=1)}.json").write_text('{"metaData": {"id": "of a checkpoint"}}\n')
    (folder / f"{2:020}.{4:020}.compacted.json").write_text('{"metaData": {"id": "of several"}}\n')
    return CommitLog(spark, str(folder.parent), "/t")


def test_the_log_of_a_delta_table_is_read_by_a_few_tasks(spark: SparkSession, log: CommitLog) -> None:
    with configured(spark, _CONFIGS), counted_tasks(spark) as tasks:
        commits = log.commits(0, FILES - 1)
        assert log.ids() == ["id-5", "id-0"]
        assert [log.restores(0, FILES - 1), log.restores(0, FILES - 3)] == [True, False]
    assert list(commits) == list(range(1, FILES))
    assert commits[1] == Commit({"/t/1 a"}, set(), {})
    assert commits[FILES - 1] == Commit({f"/t/{FILES - 1} a"}, {"/t/0 a"}, {"/t/0 a": ""})
    assert tasks, "they were counted"
    assert max(tasks) <= MOST
    assert len(tasks) <= 10, "no job for each version"


def test_a_version_that_is_missing_in_the_log_is_named(log: CommitLog, tmp_path: Path) -> None:
    (tmp_path / "a table {1}" / "_delta_log" / f"{7:020}.json").unlink()
    assert list(log.commits(7, 9)) == [8, 9]
    with pytest.raises(JobError, match="no longer has the log of its version 7"):
        log.commits(5, 9)
