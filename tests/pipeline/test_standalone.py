"""Jobs on a Spark cluster come to what they come to on one machine."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from support.jobs import quick_environment
from support.kafka_records import committed_records
from support.ledger import Ledger
from support.standalone import END, HOST, M, results, standalone

from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(3_600)]

MINUTE, FILES, ROWS = 60_000, 3, 1_000


@pytest.fixture
def ledger(prefix: str, kafka: Kafka) -> Ledger:
    """An application with schedules that have fired, one of them altered, and with some that are pending."""
    ledger = Ledger(prefix)
    for number in range(200):
        ledger.send(f"s-{number}", M + number, ("at", M + (number + 1) * MINUTE))
    ledger.send("rate", M, ("every", "10m"))
    ledger.run_until(END)
    firing = ledger.of(ledger.target)[7]
    ledger.change(firing, replace(firing, value=b"other"))
    ledger.produce(kafka.bootstrap_servers)
    return ledger


def rows(folder: Path) -> None:
    folder.mkdir()
    for file in range(FILES):
        ids = [f"{file}-{number}" for number in range(ROWS)]
        at = ["soon" if number == 500 else str(END + number) for number in range(ROWS)]
        table = {"id": ids, "at": at, "target_topic": ["t"] * ROWS, "payload": ids}
        pq.write_table(pa.table(table), folder / f"{file}.parquet")


async def test_a_master_with_two_workers_comes_to_what_two_threads_come_to(
    spark: SparkSession, kafka: Kafka, ledger: Ledger, tmp_path: Path
) -> None:
    rows(tmp_path / "rows")
    app_id, runs = ledger.names.app_id, {name: f"{ledger.names.app_id}-{name}" for name in ("here", "there")}
    for run in runs.values():
        create_topic(kafka.bootstrap_servers, run, 2)
        create_topic(kafka.bootstrap_servers, f"{run}-marks", 1, configs={"cleanup.policy": "compact"})

    here = results(spark, kafka.bootstrap_servers, app_id, runs["here"], tmp_path)
    async with standalone(tmp_path) as url:
        command = [sys.executable, "-m", "support.standalone", url, kafka.bootstrap_servers, app_id, runs["there"]]
        environment = {
            **quick_environment(),
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": HOST,
        }
        ran = await asyncio.to_thread(
            subprocess.run, [*command, str(tmp_path)], env=environment, capture_output=True, text=True, check=False
        )

    assert ran.returncode == 0, ran.stderr[-4_000:]
    assert json.loads(ran.stdout) == json.loads(json.dumps(here))
    assert here["loaded"]["sent"] == FILES * (ROWS - 1)
    assert here["audited"]["fault_counts"] == {"altered": 1}
    assert records(kafka, runs["there"]) == records(kafka, runs["here"])
    assert exported(spark, tmp_path / runs["there"]) == exported(spark, tmp_path / runs["here"])


def records(kafka: Kafka, topic: str) -> list[Any]:
    return sorted((record.partition, record.key, record.value) for record in committed_records(kafka, topic))


def exported(spark: SparkSession, folder: Path) -> list[Any]:
    table = spark.read.parquet(str(folder / "schedules")).select("id", "partition", "next_due", "record")
    return sorted(table.collect())
