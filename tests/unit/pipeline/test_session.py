"""Where sessions run, and what of this machine they take there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from light_scheduler.pipeline.session import SessionOptions, configs_of, environment_of

OF_THIS_MACHINE = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
CLUSTERS = ("spark://master:7077", "yarn", "k8s://https://api:443")


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_a_local_session_is_bound_to_this_machine(master: str) -> None:
    options = SessionOptions(master=master)
    assert configs_of(options, (), is_submitted=False).items() >= OF_THIS_MACHINE.items()
    assert environment_of(options) == {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.parametrize("master", CLUSTERS)
def test_executors_on_other_machines_can_call_back_and_have_their_own_python(master: str) -> None:
    options = SessionOptions(master=master, memory="5g", delta=True)
    configs = configs_of(options, (Path("/jars/delta.jar"),), is_submitted=False)
    assert OF_THIS_MACHINE.keys().isdisjoint(configs)
    assert "spark.sql.shuffle.partitions" not in configs
    assert (configs["spark.driver.memory"], configs["spark.jars"]) == ("5g", "/jars/delta.jar")
    assert "spark.sql.extensions" in configs
    assert environment_of(options) == {}


def test_delta_lake_does_not_cut_its_work_for_a_cluster_on_one_machine() -> None:
    configs = configs_of(SessionOptions(master="local[2]", delta=True), (), is_submitted=False)
    assert int(configs["spark.databricks.delta.snapshotPartitions"]) < 50
    assert int(configs["spark.sql.sources.parallelPartitionDiscovery.parallelism"]) < 10_000


def test_under_spark_submit_only_what_jobs_rely_on_is_set() -> None:
    configs = configs_of(SessionOptions(), (), is_submitted=True)
    assert OF_THIS_MACHINE.keys().isdisjoint(configs)
    assert not any(name.startswith("spark.driver.") for name in configs)
    assert configs["spark.sql.session.timeZone"] == "UTC"


@pytest.mark.parametrize("is_submitted", [False, True])
def test_files_that_cannot_be_read_are_errors_whatever_the_defaults_of_a_cluster_are(is_submitted: bool) -> None:
    names = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
    configs = configs_of(SessionOptions(master="yarn"), (), is_submitted=is_submitted)
    assert [configs[name] for name in names] == ["false", "false"]
    asked = SessionOptions(master="yarn", configs={names[0]: "true"})
    assert configs_of(asked, (), is_submitted=is_submitted)[names[0]] == "true"


@pytest.mark.parametrize("master", ["local[2]", *CLUSTERS])
def test_a_property_that_is_given_has_the_last_word(master: str) -> None:
    options = SessionOptions(master=master, configs={"spark.driver.host": "10.0.0.1"})
    assert configs_of(options, (), is_submitted=False)["spark.driver.host"] == "10.0.0.1"
