"""A job as a script of `spark-submit`, in a Spark of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.jobs import quick_environment

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.soak
def test_a_dry_run_as_a_script_of_spark_submit_needs_no_broker(tmp_path: Path) -> None:
    table = tmp_path / "table.parquet"
    pq.write_table(pa.table({"id": ["a", ""], "target_topic": ["t", "t"], "payload": ["x", "x"]}), table)
    ran = subprocess.run(
        [
            *(Path(sys.executable).with_name("spark-submit"), "--master", "local[1]", "--driver-memory", "1g"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.driver.host=127.0.0.1"),
            *(EXAMPLES / "spark_job.py", "pipeline", "load", table, "--broker", "kafka://127.0.0.1:1"),
            *("--dry-run", "--json"),
        ],
        env={**quick_environment(), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1, ran.stderr[-4_000:]
    summary = json.loads(ran.stdout)
    assert (summary["rows"], summary["refused"]) == (2, 1)
