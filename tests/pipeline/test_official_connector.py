"""Jobs that read through Spark's own Kafka connector: what they find is what they find through ours."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.jobs import quick_environment
from support.ledger import Ledger
from support.spark_kafka import jars

from light_scheduler.clock import SettableClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline import archive, audit, export, forecast, report
from light_scheduler.pipeline.job import Cluster, configured
from light_scheduler.pipeline.kafka import FORMAT
from light_scheduler.pipeline.topics import FORMAT_CONFIG, OFFICIAL_FORMAT, kafka_format, official_is_here, read_topics
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(600)]

M = 1_767_225_600_000
MINUTE, HOUR = 60_000, 3_600_000
COUNT = 200
AHEAD = 4_102_444_800_000
"""2100-01-01T00:00Z."""


@pytest.fixture
def through(spark: SparkSession) -> Callable[[str], Any]:
    """Have jobs read through a format within a block."""
    if not official_is_here(spark):
        pytest.skip("Spark's own Kafka connector is not here: `make sparkkafka` gets it, where there is Maven Central")
    return lambda kind: configured(spark, {FORMAT_CONFIG: kind})


@pytest.fixture
def ledger(kafka: Kafka, prefix: str) -> Ledger:
    """An application that has delivered, with a duplicate and a firing that is missing."""
    ledger = Ledger(prefix)
    for number in range(COUNT):
        ledger.send(f"s-{number}", M, ("at", M + HOUR + number), value=b"payload %d" % number)
    ledger.send("ahead", M, ("at", AHEAD))
    ledger.run(M)
    ledger.run_until(M + 2 * HOUR)
    first, second = [record for record in ledger.of(ledger.target) if record.header("schedule-id") in (b"s-1", b"s-2")]
    ledger.append(first.topic, 0, first.timestamp, first.key, first.value, first.headers)
    ledger.remove(second)
    ledger.produce(kafka.bootstrap_servers)
    create_topic(kafka.bootstrap_servers, ledger.names.results, 1)
    return ledger


def audited(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, at: int = M + 3 * HOUR, **options: Any
) -> audit.AuditSummary:
    names = ledger.names
    return audit.main(
        spark,
        audit.AuditOptions(
            Cluster(kafka.bootstrap_servers),
            names,
            inputs={names.commands: "native"},
            rules=FiringRules(),
            limits=Limits(1_000_000, 512),
            clock=SettableClock(at),
            **options,
        ),
    )


@pytest.mark.every_case
def test_the_topics_are_the_same(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, through: Callable[[str], Any]
) -> None:
    rows = {}
    for kind in (FORMAT, OFFICIAL_FORMAT):
        with through(kind):
            assert kafka_format(spark) == kind
            read = read_topics(spark, kafka.bootstrap_servers, sorted(ledger.topics))
            rows[kind] = read.withColumn("headers", read["headers"].cast("string"))
    assert rows[FORMAT].exceptAll(rows[OFFICIAL_FORMAT]).count() == 0
    assert rows[OFFICIAL_FORMAT].exceptAll(rows[FORMAT]).count() == 0
    assert rows[OFFICIAL_FORMAT].count() == sum(len(ledger.of(topic)) for topic in ledger.topics)


@pytest.mark.every_case
def test_an_audit_finds_the_same_faults_at_once_and_in_two_steps(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, through: Callable[[str], Any], tmp_path: Path
) -> None:
    with through(OFFICIAL_FORMAT):
        whole = audited(spark, kafka, ledger)
        step = audited(spark, kafka, ledger, since_last=str(tmp_path / "audits"))
        again = audited(spark, kafka, ledger, M + 4 * HOUR, since_last=str(tmp_path / "audits"))
    assert sorted((fault.id, fault.kind) for fault in whole.faults) == [("s-1", "duplicate"), ("s-2", "missing")]
    assert step.faults == whole.faults
    assert again.faults == []


@pytest.mark.every_case
def test_an_archive_is_filled_and_continued(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, through: Callable[[str], Any], tmp_path: Path
) -> None:
    topics = sorted(ledger.topics)
    options = archive.ArchiveOptions(Cluster(kafka.bootstrap_servers), topics, str(tmp_path / "archive"))
    with through(OFFICIAL_FORMAT):
        first = archive.main(spark, options)
        ledger.send("more", M + 3 * HOUR, ("after", 0))
        ledger.run(M + 3 * HOUR)
        ledger.produce(kafka.bootstrap_servers)
        second = archive.main(spark, options)
    total = sum(len(ledger.of(topic)) for topic in topics)
    assert 0 < second.records < first.records
    assert first.records + second.records == total
    assert archive.read_archive(spark, options.path).count() == total


@pytest.mark.every_case
def test_tables_and_figures_are_the_same(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, through: Callable[[str], Any], tmp_path: Path
) -> None:
    cluster, names = Cluster(kafka.bootstrap_servers), ledger.names
    summaries: dict[str, list[Any]] = {}
    for kind in (FORMAT, OFFICIAL_FORMAT):
        with through(kind):
            exported = export.ExportOptions(
                table=str(tmp_path / kind), cluster=cluster, app_id=names.app_id, commands_topics=(names.commands,)
            )
            ahead = forecast.ForecastOptions(
                cluster=cluster, names=names, inputs=[names.commands], ahead=HOUR, clock=SettableClock(AHEAD - MINUTE)
            )
            punctual = report.ReportOptions(cluster, names)
            found: list[Any] = [export.main(spark, exported), forecast.main(spark, ahead), report.main(spark, punctual)]
            assert found[1].firings == 1
            summaries[kind] = [dataclasses.asdict(each) for each in found]
    for ours, theirs in zip(*summaries.values(), strict=True):
        assert without_bytes(ours) == without_bytes(theirs)


def without_bytes(summary: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in summary.items() if name not in ("bytes", "files", "table")}


@pytest.mark.every_case
def test_the_command_line_takes_its_jars_and_uses_it(kafka: Kafka, ledger: Ledger, tmp_path: Path) -> None:
    if not jars():
        pytest.skip("`make sparkkafka` gets the jars, where there is Maven Central")
    words = ["audit", "--json", "--kafka-format", OFFICIAL_FORMAT, "--master", "local[2]", "--memory", "1g"]
    words += ["--app-id", ledger.names.app_id, "--broker", f"kafka://{kafka.bootstrap_servers}"]
    for jar in jars():
        words += ["--jar", str(jar)]
    command = [sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", *words]
    ran = run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=quick_environment())
    assert ran.returncode == 1, ran.stderr
    assert {fault["id"] for fault in json.loads(ran.stdout)["faults"]} == {"s-1", "s-2"}
