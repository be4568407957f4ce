"""Spark sessions for the jobs: that of `spark-submit`, one on the cluster of `--master`, or a local one."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from light_scheduler.errors import ConfigurationError

from .delta_jars import delta_jars

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by `spark-submit`: the JVM already runs, with its own master and sizes."""

_COMMON = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # A cluster's defaults may differ: then rows of unreadable files would be left out silently.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_OF_THIS_PROCESS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    # By default, Delta reads its log with Spark jobs of 50 tasks: too many for one machine.
    "spark.databricks.delta.snapshotPartitions": "2",
    # And it lists files to vacuum with 10,000 tasks, however few files there are.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
}
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


@dataclass(frozen=True)
class SessionOptions:
    """Options of a Spark session. `memory` is the JVM's; Python workers and the page cache need more.

    `master`, `memory` and `jars` have no effect under `spark-submit`, which has its own options for them.
    """

    master: str = "local[*]"
    memory: str = "3g"
    delta: bool = False
    jars: tuple[Path, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether Spark runs only on this machine: `local`, `local[4]`, `local-cluster[...]`."""
        return self.master.startswith("local")


@contextmanager
def spark_session(name: str, options: SessionOptions) -> Iterator[SparkSession]:
    """Yield a session, and stop it at the end. Raises ConfigurationError if there is no Java."""
    spark = start_session(name, options)
    try:
        yield spark
    finally:
        spark.stop()


def start_session(name: str, options: SessionOptions) -> SparkSession:
    """Start a session, or return that of `spark-submit`. Raises ConfigurationError if there is no Java."""
    builder = SparkSession.builder.appName(name)
    jars: tuple[Path, ...] = ()
    if not is_submitted():
        _require_java()
        for variable, value in environment_of(options).items():
            os.environ.setdefault(variable, value)
        jars = (*options.jars, *(delta_jars() if options.delta else ()))
        builder = builder.master(options.master)
    for key, value in configs_of(options, jars, is_submitted=is_submitted()).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def configs_of(options: SessionOptions, jars: Sequence[Path], *, is_submitted: bool) -> dict[str, str]:
    """Return the properties of a session. Only a local one is bound to the loopback address: remote executors connect
    back."""
    configs = {**_COMMON, **(_DELTA if options.delta else {})}
    if not is_submitted:
        configs |= {**_OF_THIS_PROCESS, **(_LOCAL if options.is_local else {}), "spark.driver.memory": options.memory}
        if jars:
            configs["spark.jars"] = ",".join(map(str, jars))
    return {**configs, **options.configs}


def environment_of(options: SessionOptions) -> dict[str, str]:
    """Return the environment variables for a session, without those that are already set.

    On this machine, Spark runs this Python, and binds only to the loopback address; a cluster has its own settings.
    """
    return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"} if options.is_local else {}


def is_submitted() -> bool:
    """Return whether `spark-submit` runs this process."""
    return _SUBMITTED in os.environ


def java_is_here() -> bool:
    """Return whether Spark would find Java."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java") is not None or (home is not None and (Path(home) / "bin" / "java").exists())


def _require_java() -> None:
    if not java_is_here():
        raise ConfigurationError(
            "JAVA_HOME", "Spark needs a Java 17 or newer: install one, or set JAVA_HOME to where it is"
        )
