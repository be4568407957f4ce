"""Where the tables of jobs are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.tables import located


class Spark:
    """What `located` asks of a session."""

    def __init__(self, master: str) -> None:
        self.conf: Any = {"spark.master": master}


LOCAL: Any = Spark("local[2]")
CLUSTER: Any = Spark("yarn")


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
    with pytest.raises(JobError, match="state is a relative path: give a whole one"):
        located(CLUSTER, "state")
