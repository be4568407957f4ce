"""Where the tables of jobs are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from light_scheduler.engine import FiringRules
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.errors import JobError
from light_scheduler.model import TopicNames
from light_scheduler.pipeline import audit, forecast, load, metrics
from light_scheduler.pipeline.job import Cluster
from light_scheduler.pipeline.tables import located, require_place


class Spark:
    """What `located` asks of a session."""

    def __init__(self, master: str) -> None:
        self.conf: Any = {"spark.master": master}


LOCAL: Any = Spark("local[2]")
CLUSTER: Any = Spark("yarn")
NO_CLUSTER = Cluster("127.0.0.1:1")
NAMES = TopicNames("app")


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("/data/state", "/data/state"),
        ("/data/state/", "/data/state"),
        ("//data/./state//", "/data/state"),
        ("/", "/"),
        ("/data/a b:c/", "/data/a b:c"),
        ("s3a://bucket/state/", "s3a://bucket/state"),
        ("s3a://bucket", "s3a://bucket"),
        ("s3a://bucket/", "s3a://bucket/"),
        ("hdfs:///state//", "hdfs:///state"),
        ("hdfs://name:8020/a//state/.", "hdfs://name:8020/a/state"),
        ("file:/data/state/", "file:/data/state"),
    ],
)
def test_a_path_is_the_same_however_its_slashes_are_written(path: str, whole: str) -> None:
    assert located(LOCAL, path) == located(CLUSTER, path) == whole


@pytest.mark.parametrize("path", ["state", "state/", "./state", "./state//"])
def test_a_relative_path_is_one_of_the_working_directory(path: str) -> None:
    assert located(LOCAL, path) == str(Path.cwd() / "state")


def test_a_relative_path_means_nothing_on_a_cluster() -> None:
    with pytest.raises(JobError, match="state is a relative path: give an absolute one"):
        located(CLUSTER, "state")


@pytest.mark.parametrize("path", [None, "/data/table", "s3a://bucket/table", "table:lake.refused"])
def test_a_table_can_be_written_at_a_whole_path_or_by_name(path: str | None) -> None:
    require_place(CLUSTER, path)


def to_load() -> object:
    options = load.LoadOptions(table="/rows", cluster=NO_CLUSTER, commands_topic="c", marks_topic="m", refused="state")
    return load.main(CLUSTER, options)


def to_audit() -> object:
    return audit.main(
        CLUSTER, audit.AuditOptions(NO_CLUSTER, NAMES, {"c": "native"}, FiringRules(), NO_LIMITS, faults="state")
    )


def to_forecast() -> object:
    return forecast.main(CLUSTER, forecast.ForecastOptions(NO_CLUSTER, NAMES, ["c"], table="state"))


def to_measure() -> object:
    def never(*_: object) -> Any:
        raise AssertionError("the job has begun")

    return metrics.measured(CLUSTER, metrics.JobName("load", "app"), metrics.Places("state"), never, never)


@pytest.mark.parametrize("job", [to_load, to_audit, to_forecast, to_measure])
def test_a_job_on_a_cluster_refuses_a_relative_path_for_its_table_before_it_does_anything(
    job: Callable[[], object],
) -> None:
    with pytest.raises(JobError, match="state is a relative path: give an absolute one"):
        job()
