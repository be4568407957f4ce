"""Fixtures of the pipeline's tests: the Spark sessions of the run, and topics of their own.

Spark makes Java code of every plan and compiles it, which costs jobs that are over in a second more than it saves them.
So these sessions interpret plans. What users run is run too: one test of each job, with `compiled_plans`, and all tests
that start a Spark of their own compile them.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import spark_kafka
from support.jobs import QUICK_JAVA
from support.scheduling import SPARK_SESSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent
TIMEOUT_S = 900
"""For a test that names no other: one that is broken off in the middle of a call leaves the session useless."""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""What Spark does unless it is told otherwise."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two threads with Delta and, if it is here, Spark's own Kafka connector, for all of the process."""
    from light_scheduler.pipeline.kafka import FORMAT
    from light_scheduler.pipeline.session import SessionOptions, java_is_here, spark_session
    from light_scheduler.pipeline.topics import FORMAT_CONFIG

    if not java_is_here():
        pytest.skip("Spark needs a Java 17 or newer: there is none on the path or in JAVA_HOME")
    if "PYTEST_XDIST_WORKER" in os.environ:  # what all processes of a run have in common is the folder above
        with (tmp_path_factory.getbasetemp().parent / "sessions").open("ab") as sessions:
            sessions.write(b".")
            sessions.flush()
            assert sessions.tell() <= SPARK_SESSIONS, "a process for each"
    configs = {
        **INTERPRETED,
        FORMAT_CONFIG: FORMAT,  # Spark's own connector is for those tests that ask for it
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.python.authenticate.socketTimeout": "120s",  # in which a worker starts, however busy the machine is
        "spark.driver.extraJavaOptions": QUICK_JAVA,
    }
    options = SessionOptions(master="local[2]", memory="2g", delta=True, jars=spark_kafka.jars(), configs=configs)
    with spark_session("tests", options) as session:
        yield session


@pytest.fixture
def compiled_plans(spark: SparkSession) -> Iterator[None]:
    """Let Spark compile plans while the test runs, as it does for users."""
    from light_scheduler.pipeline.job import configured

    with configured(spark, COMPILED):
        yield


@pytest.fixture
def this_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands use the session of the run: starting Spark takes longer than most jobs."""
    from light_scheduler.pipeline import session

    monkeypatch.setattr(session, "spark_session", lambda *_: nullcontext(spark))


@pytest.fixture
def prefix() -> str:
    """What the names of a test's topics begin with."""
    return f"test-{uuid.uuid4().hex[:8]}"
