"""A table that a job writes in the place of what is there deletes nothing but an earlier table."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from light_scheduler.errors import JobError
from light_scheduler.pipeline import replacing
from light_scheduler.pipeline.replacing import foreign, require_replaceable
from light_scheduler.pipeline.tables import write_table

pytestmark = [pytest.mark.pipeline]

PART = "part-00000-4ebd2a0e-7a5f-4f5b-9c11-3d53a8a5a6f1-c000.snappy.parquet"
"""As Spark names the files of a table."""


def test_what_a_job_wrote_is_replaced_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "back ups {1}"
    require_replaceable(spark, str(folder))
    folder.mkdir()
    require_replaceable(spark, str(folder))
    (folder / "one.parquet").write_bytes(b"")
    with pytest.raises(JobError, match=r"one\.parquet is a file\. It would be deleted"):
        require_replaceable(spark, str(folder / "one.parquet"))
    with pytest.raises(JobError, match=r"back ups \{1\} has other files in it .*one\.parquet\. They would be deleted"):
        require_replaceable(spark, str(folder))
    require_replaceable(spark, str(folder), "delta")
    (folder / "one.parquet").unlink()
    for _ in range(2):
        require_replaceable(spark, str(folder / "monday"))
        write_table(spark.range(3).repartition(2), str(folder / "monday"), "parquet")
    with pytest.raises(JobError, match="monday/part-"):
        require_replaceable(spark, str(folder))


@pytest.mark.parametrize(
    "file",
    [
        "_backup/rows.csv",
        ".git/HEAD",
        "_notes",
        ".notes",
        f"day=1/{PART}",
        f"{PART}/part-0",
        "_backup/in/it/rows",
        "notes/.git/config",
        "notes/.config",
        f"old/_2025/{PART}",
        f"old/.{PART}.crc",
        "old/_SUCCESS",
        f"old/_temporary/0/{PART}",
        f"_SUCCESS/{PART}",
        f".{PART}.crc/rows",
        "_temporary",
        "_temporary/notes",
        "part-2026-accounts.xlsx",
        "part-00000",
        ".important.crc",
    ],
)
def test_files_that_readers_pass_over_are_not_replaced(spark: SparkSession, tmp_path: Path, file: str) -> None:
    path = tmp_path / "report" / file
    path.parent.mkdir(parents=True)
    (tmp_path / "report" / "empty").mkdir()
    path.touch()
    with pytest.raises(JobError, match=f"such as .*report/{file}"):
        require_replaceable(spark, f"{tmp_path}/week/../report")
    with pytest.raises(JobError, match=f"such as .*report/{file}"):
        require_replaceable(spark, f"file://{tmp_path}/report/")
    path.unlink()
    require_replaceable(spark, str(tmp_path / "report"))


@pytest.mark.parametrize("link", ["other", "_backup", "_temporary", PART, "old/other", ".git/other"])
def test_links_to_folders_are_not_replaced(spark: SparkSession, tmp_path: Path, link: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "report" / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(JobError, match=f"such as .*report/{link}"):
        require_replaceable(spark, str(tmp_path / "report"))
    path.unlink()
    require_replaceable(spark, str(tmp_path / "report"))


def test_a_folder_that_cannot_be_looked_at_is_not_replaced(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    above = os.open(folder, os.O_RDONLY)
    for _ in range(17):  # until the path is longer than Linux allows
        os.mkdir("_" * 255, dir_fd=above)
        below = os.open("_" * 255, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    os.close(above)
    with pytest.raises(JobError, match=r"cannot be searched for other files: .*File name too long"):
        require_replaceable(spark, f"{tmp_path}/{'_' * 256}")
    with pytest.raises(JobError, match=r"report cannot be searched for other files: .*File name too long"):
        require_replaceable(spark, str(folder))


def test_a_folder_above_by_two_dots_is_not_replaced(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / PART).touch()
    (tmp_path / "rows.csv").touch()
    for path in (f"{tmp_path}/week/..", f"{tmp_path}/week/../", f"file:{tmp_path}/a/b/../.."):
        with pytest.raises(JobError, match=r"such as .*rows\.csv"):
            require_replaceable(spark, path)


@pytest.mark.parametrize("is_local", [True, False])
def test_a_delta_table_is_not_replaced_by_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_local: bool
) -> None:
    if not is_local:
        monkeypatch.setattr(replacing, "_local", lambda _: None)
    table = str(tmp_path / "table")
    write_table(spark.range(3).coalesce(1), table, "delta")
    with pytest.raises(JobError, match=r"such as .*table/_delta_log"):
        require_replaceable(spark, table)
    require_replaceable(spark, table, "delta")


def test_what_jobs_left_that_were_killed_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    for name in (f"_temporary/0/{PART}", "_SUCCESS", f".{PART}.crc", PART):
        (tmp_path / "table" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "table" / name).touch()
    require_replaceable(spark, str(tmp_path / "table"))


@pytest.mark.parametrize(
    ("folder", "file", "is_other"),
    [
        ("/data/table", f"file:///data/table/{PART}", False),
        ("/data/week/../table", f"file:///data/table/{PART}", False),
        ("s3a://bucket/a/b/../..", "s3a://bucket/rows.csv", True),
        ("/data/week/../table", "file:///data/table/rows.csv", True),
        (f"/data/{PART}", f"file:///data/{PART}", True),
        ("/data/table", f"file:///data/table/{PART}/part-0", True),
        ("s3a://bucket", f"s3a://bucket/{PART}", False),
    ],
)
def test_a_file_that_spark_names_is_known_as_one_of_the_table(folder: str, file: str, is_other: bool) -> None:
    assert (foreign(folder, [file]) is not None) is is_other
