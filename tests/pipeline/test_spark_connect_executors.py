"""Jobs in a session of Spark Connect, which has nothing of Java."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.connected import END, M
from support.jobs import quick_environment
from support.kafka_records import decided_records
from support.ledger import Ledger

from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(1_800)]

MINUTE, ONE_SHOTS = 60_000, 50


@pytest.mark.every_case
def test_jobs_forecast_export_load_and_audit_on_spark_connect(kafka: Kafka, prefix: str, tmp_path: Path) -> None:
    ledger = Ledger(prefix)
    for number in range(ONE_SHOTS):
        ledger.send(f"s-{number}", M + number, ("at", M + (number + 1) * MINUTE))
    ledger.send("rate", M, ("every", "10m"))
    ledger.run_until(END)
    ledger.produce(kafka.bootstrap_servers)
    rows = {"id": ["a", "b", ""], "at": [str(END)] * 3, "target_topic": ["t"] * 3}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    create_topic(kafka.bootstrap_servers, f"{prefix}-loaded", 2)
    create_topic(kafka.bootstrap_servers, ledger.names.loads, 1, configs={"cleanup.policy": "compact"})

    ran = subprocess.run(
        [sys.executable, "-m", "support.connected", kafka.bootstrap_servers, prefix, str(tmp_path)],
        env={
            **quick_environment(),
            "PYTHONPATH": ":".join(filter(None, sys.path)),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr[-4_000:]
    said = json.loads(ran.stdout)
    firings = len(ledger.of(ledger.target))
    assert (said["forecast"]["firings"], said["export"]["schedules"]) == (11, 1)
    assert "has no file _SUCCESS" in said["import"]
    assert (said["load"]["sent"], said["load"]["refused"]) == (2, 1)
    assert len(decided_records(kafka, f"{prefix}-loaded")) == 2
    audited = said["audit"]
    assert (audited["firings"], audited["fault_counts"], audited["expanded_by_spark"]) == (firings, {}, 1)
