"""Columns in the names of folders: those below the folder that is loaded."""

from __future__ import annotations

import pytest

from light_scheduler.pipeline.load.folder_columns import values_between, without_folders


@pytest.mark.parametrize(
    ("root", "file", "values"),
    [
        ("/in", "file:///in/tenant=007/at=8/a.csv", {"tenant": "007", "at": "8"}),
        ("/in/tenant=007", "file:///in/tenant=007/a.csv", {}),
        ("/in/tenant=007/a=b.csv", "file:///in/tenant=007/a=b.csv", {}),
        ("file:/in/", "file:///in/tenant=007/a=b.csv", {"tenant": "007"}),
        ("s3a://bucket/in", "s3a://bucket/in/tenant=007/a.csv", {"tenant": "007"}),
        ("hdfs:/in", "hdfs://node:8020/in/tenant=007/a.csv", {"tenant": "007"}),
        ("/in/tenant=*", "file:///in/tenant=007/day=1/a.csv", {"day": "1"}),
        ("/in", "file:///in/a%20folder/ten%61nt=0%2507/a.csv", {"tenant": "0\x07"}),
        ("/in", "file:///in/tenant=__HIVE_DEFAULT_PARTITION__/a.csv", {"tenant": None}),
        ("/in", "file:///in/priority=1/x/tenant=a/f.json", {"tenant": "a"}),
        ("/in", "file:///in/tenant=a/day=1/x/y/f.json", {"tenant": "a", "day": "1"}),
        ("/in", "file:///in/a.csv", {}),
        ("/other/../in", "file:///in/tenant=a/f.json", {"tenant": "a"}),
    ],
)
def test_columns_are_in_the_lowest_names_of_folders_below_the_root(
    root: str, file: str, values: dict[str, str | None]
) -> None:
    assert values_between(root, file) == values


@pytest.mark.parametrize("base", ["basePath", "BASEPATH"])
def test_columns_of_files_are_read_whatever_is_said_of_folders(base: str) -> None:
    reading = {base: "/in", "recursivefilelookup": "false", "pathGlobFilter": "*.json"}
    assert without_folders(reading) == {"pathGlobFilter": "*.json", "recursiveFileLookup": "true"}
