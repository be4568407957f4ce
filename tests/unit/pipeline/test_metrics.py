"""Metrics of a job: what Prometheus reads, and what a failure leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyspark.errors import PySparkAttributeError

from light_scheduler.errors import JobError
from light_scheduler.pipeline.metrics import PREFIX, JobName, JobRun, Places, Volume, measured, write_file

NAME = JobName("archive", "orders")
RUN = JobRun(NAME, 1_767_225_600_000, 30.0, succeeded=True, cores=4, volume=Volume(2_000_000, 5_000))


@dataclass(frozen=True)
class Summary:
    rows: int = 7
    failed: bool = False

    def lines(self) -> list[str]:
        return []


class Connected:
    """A session of Spark Connect: nobody knows its cores."""

    @property
    def sparkContext(self) -> Any:  # noqa: N802 (Spark's name)
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": "sparkContext"}
        )


def values(path: Path) -> dict[str, float]:
    """Return the samples of a file, which are all of one job."""
    families = list(text_string_to_metric_families(path.read_text()))
    samples = [sample for family in families for sample in family.samples]
    assert all(sample.labels == {"command": "archive", "app_id": "orders"} for sample in samples)
    assert all(family.type == "gauge" and family.documentation for family in families)
    return {sample.name.removeprefix(PREFIX): sample.value for sample in samples}


def run(path: Path, job: Callable[[], Summary]) -> Summary:
    session: Any = Connected()
    done = measured(session, NAME, Places(file=path), job, lambda summary: Volume(summary.rows, None))
    if done.failure is not None:
        raise done.failure
    return done.summary


def test_a_file_says_what_the_last_run_came_to(tmp_path: Path) -> None:
    write_file(tmp_path / "archive.prom", RUN)
    assert values(tmp_path / "archive.prom") == {
        "run_timestamp_seconds": 1_767_225_600,
        "success_timestamp_seconds": 1_767_225_630,
        "run_success": 1,
        "run_duration_seconds": 30,
        "run_rows": 2_000_000,
        "run_bytes": 5_000,
        "run_core_seconds_per_million_rows": 60,
    }
    assert [path.name for path in tmp_path.iterdir()] == ["archive.prom"]


def test_the_last_success_outlives_runs_that_fail(tmp_path: Path) -> None:
    path = tmp_path / "archive.prom"
    write_file(path, RUN)
    for later in (3_600_000, 7_200_000):
        write_file(path, replace(RUN, started_at=RUN.started_at + later, succeeded=False, volume=None))
        assert values(path) == {
            "run_timestamp_seconds": (RUN.started_at + later) / 1_000,
            "success_timestamp_seconds": 1_767_225_630,
            "run_success": 0,
            "run_duration_seconds": 30,
        }


@pytest.mark.parametrize(("volume", "cores"), [(Volume(0, 0), 4), (Volume(10, 10), None), (None, 4)])
def test_a_cost_that_is_not_known_is_not_told(volume: Volume | None, cores: int | None, tmp_path: Path) -> None:
    run = replace(RUN, volume=volume, cores=cores)
    assert run.core_seconds_per_million_rows is None
    write_file(tmp_path / "archive.prom", run)
    assert "run_core_seconds_per_million_rows" not in values(tmp_path / "archive.prom")


def test_a_summary_that_something_is_wrong_with_is_no_success(tmp_path: Path) -> None:
    path = tmp_path / "archive.prom"
    run(path, lambda: Summary(failed=True))
    told = values(path)
    assert (told["run_success"], told["run_rows"]) == (0, 7)
    assert "success_timestamp_seconds" not in told


@pytest.mark.parametrize("damaged", [b"\xff\xfe", b"no metrics\n", b'light{a="b" 1\n'], ids=["bytes", "text", "half"])
@pytest.mark.parametrize("failed", [True, False])
def test_a_file_that_is_damaged_is_replaced_and_takes_no_summary_with_it(
    damaged: bytes, failed: bool, tmp_path: Path
) -> None:
    path, summary = tmp_path / "archive.prom", Summary(failed=failed)
    path.write_bytes(damaged)
    assert run(path, lambda: summary) is summary
    assert values(path)["run_success"] == (0 if failed else 1)


def test_a_job_that_fails_says_so_and_fails_of_the_same(tmp_path: Path) -> None:
    failure = JobError("no broker")

    def fail() -> Summary:
        raise failure

    for path in (tmp_path / "archive.prom", tmp_path / "nowhere" / "archive.prom"):
        with pytest.raises(JobError) as raised:
            run(path, fail)
        assert raised.value is failure
    assert values(tmp_path / "archive.prom")["run_success"] == 0


def test_metrics_that_cannot_be_written_are_told_apart_from_a_job_that_failed(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="the job is done, but its metrics cannot be written"):
        run(tmp_path / "nowhere" / "archive.prom", Summary)
