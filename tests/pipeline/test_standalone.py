"""Jobs on a Spark cluster come to what they come to on one machine, whatever is killed meanwhile."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from support.cluster_jobs import ClusterJob, Kill, Ran
from support.job_results import CASES, Case, Place, application, export, first_audit, last_hour, write_rows
from support.standalone import Standalone, standalone

from light_scheduler.cli import cli
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline import session
from light_scheduler.testing import Kafka

pytestmark = [
    pytest.mark.pipeline,
    pytest.mark.integration,
    pytest.mark.soak,
    pytest.mark.timeout(3_600),
]

WITH_SOAKS = {("load", Kill.EXECUTOR)}
"""Those of the combinations that run with `--soak`: the commonest kill, of a job that writes what must not be twice."""

COMBINATIONS = [
    pytest.param(
        *each,
        marks=[] if each in WITH_SOAKS else pytest.mark.every_case,
        id=f"{each[0].replace(' ', '')}-{each[1] or 'nothing'}",
    )
    for each in product(CASES, [None, *Kill])
]


class Result(NamedTuple):
    """How a job has ended, and what it has written."""

    ran: Ran
    data: Any


@pytest.fixture(scope="module", autouse=True)
def two_threads(spark: SparkSession) -> Iterator[None]:
    """Let jobs without a cluster use the session of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "spark_session", lambda *_: nullcontext(spark))
        yield


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shared(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The application for all runs, its export, an audit of its first hour, and rows to load."""
    folder, end = tmp_path_factory.mktemp("shared"), last_hour()
    ledger = application(f"test-{uuid.uuid4().hex[:8]}", end)
    ledger.produce(kafka.bootstrap_servers)
    create_topic(kafka.bootstrap_servers, ledger.names.results, 1)
    write_rows(folder / "rows")
    place = Place(kafka, ledger, end, folder, folder, ledger.names.app_id)
    for words in (export(place), first_audit(place)):
        run_here(words)
    return place


@pytest.fixture(scope="module")
def here() -> dict[str, Result]:
    """What jobs have come to in two threads so far."""
    return {}


@pytest.mark.parametrize(("job", "kill"), COMBINATIONS)
def test_a_job_on_a_cluster_that_loses_a_process_comes_to_what_it_comes_to_in_two_threads(
    job: str,
    kill: Kill | None,
    cluster: Standalone,
    shared: Place,
    here: dict[str, Result],
    spark: SparkSession,
    prefix: str,
    tmp_path: Path,
) -> None:
    case = CASES[job]
    if job not in here:
        place = place_for(shared, tmp_path / "here", f"{prefix}-here", case)
        here[job] = Result(run_here(case.words(place)), case.data(spark, place))
    there = place_for(shared, tmp_path / "there", f"{prefix}-there", case)
    command = ClusterJob(cluster, tmp_path / "driver", case.words(there))
    cluster.complete()

    ran = (None if kill is None else command.killed(kill, case.after)) or command.run()

    continues = kill is Kill.DRIVER
    assert ran.exit_code == here[job].ran.exit_code
    assert case.told(ran.summary, continues=continues) == case.told(here[job].ran.summary, continues=continues)
    assert case.data(spark, there) == here[job].data


def place_for(shared: Place, own: Path, app_id: str, case: Case) -> Place:
    """Return a place for a run, with what the job needs."""
    own.mkdir()
    place = replace(shared, own=own, app_id=app_id)
    case.prepare(place)
    return place


def run_here(words: list[str]) -> Ran:
    """Run a job in two threads."""
    ran = CliRunner().invoke(cli, ["pipeline", *words, "--json"])
    assert ran.stdout, ran.output
    return Ran(ran.exit_code, json.loads(ran.stdout))
