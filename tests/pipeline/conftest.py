"""Fixtures of the pipeline's tests: one Spark session for the run, and topics of their own."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two threads with Delta, shared by all tests of the run."""
    from light_scheduler.pipeline.session import SessionOptions, java_is_here, spark_session

    if not java_is_here():
        pytest.skip("Spark needs a Java 17 or newer: there is none on the path or in JAVA_HOME")
    if "PYTEST_XDIST_WORKER" in os.environ:  # what all processes of a run have in common is the folder above
        (tmp_path_factory.getbasetemp().parent / "the one session").touch(exist_ok=False)
    configs = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # Jobs of a second each are over before the second compiler's work is worth its processor time.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    options = SessionOptions(master="local[2]", memory="2g", delta=True, configs=configs)
    with spark_session("tests", options) as session:
        yield session


@pytest.fixture
def prefix() -> str:
    """What the names of a test's topics begin with."""
    return f"test-{uuid.uuid4().hex[:8]}"
