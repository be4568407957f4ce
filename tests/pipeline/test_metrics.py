"""Metrics of jobs in tables: a row for each run, whatever columns the table had before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from light_scheduler.cli import cli
from light_scheduler.errors import JobError
from light_scheduler.pipeline.metrics import COLUMNS, JobName, JobRun, Places, Volume, write_metrics

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

RUN = JobRun(JobName("load", "orders"), 1_767_225_600_000, 30.0, succeeded=True, cores=2, volume=Volume(4, None))


@pytest.mark.usefixtures("this_session")
@pytest.mark.soak
def test_a_command_adds_a_row_for_each_run(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"id": "a", "payload": "xyz"}, {"id": "b", "at": "soon"}]
    (tmp_path / "rows.json").write_text(
        "".join(json.dumps({"at": "2030-01-01T00:00:00Z", **row}) + "\n" for row in rows)
    )
    command = [
        "pipeline",
        "load",
        str(tmp_path / "rows.json"),
        "--format",
        "json",
        "--set",
        "target-topic=t",
        "--dry-run",
    ]
    places = ["--metrics-table", str(tmp_path / "metrics"), "--metrics-file", str(tmp_path / "load.prom")]
    for _ in range(2):
        ran = CliRunner().invoke(cli, [*command, *places, "--app-id", "orders"])
        assert ran.exit_code == 1, ran.output
    found = spark.read.parquet(str(tmp_path / "metrics")).collect()
    assert [(row.command, row.app_id, row.succeeded, row.rows, row.bytes, row.cores) for row in found] == [
        ("load", "orders", False, 2, 4, 2)
    ] * 2
    for row in found:
        assert row.core_seconds_per_million_rows == pytest.approx(row.seconds * 2 * 1_000_000 / 2)
    assert (
        'light_scheduler_pipeline_last_run_rows{app_id="orders",command="load"} 2.0'
        in (tmp_path / "load.prom").read_text()
    )


@pytest.mark.usefixtures("this_session")
def test_what_a_job_came_to_is_told_even_if_its_metrics_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text('{"id": "a"}\n')
    (tmp_path / "metrics").write_text("no table")
    command = ["load", str(tmp_path / "rows.json"), "--format", "json", "--set", "target-topic=t", "--set", "after=1h"]
    ran = CliRunner().invoke(
        cli, ["pipeline", *command, "--dry-run", "--json", "--metrics-table", str(tmp_path / "metrics")]
    )
    assert json.loads(ran.stdout)["rows"] == 1
    assert isinstance(ran.exception, JobError)
    assert "the job is done, but its metrics cannot be written" in str(ran.exception)


@pytest.mark.soak
def test_a_delta_table_of_an_earlier_version_gets_the_columns_that_it_lacks(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = str(tmp_path / "metrics")
    spark.sql(f"CREATE TABLE delta.`{table}` (command STRING, app_id STRING, seconds DOUBLE) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES ('load', 'orders', 1.0)")
    write_metrics(spark, RUN, Places(table, "delta"))
    found = spark.read.format("delta").load(table).orderBy("seconds").collect()
    assert [(row.seconds, row.started_at and row.started_at.year, row.rows, row.bytes) for row in found] == [
        (1.0, None, None, None),
        (30.0, 2026, 4, None),
    ]
    assert len(found[0]) == COLUMNS.count(",") + 1
