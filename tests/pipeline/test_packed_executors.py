"""Executors whose Python has none of our packages run jobs with the file that `pipeline pack` makes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.jobs import quick_environment
from support.standalone import HOST, SMALL, standalone

from light_scheduler.pipeline.packing import pack, python_name

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.every_case, pytest.mark.timeout(3_600)]

ROWS = 100
BARE = Path(sys.base_prefix) / "bin"
"""Where the Python is that this environment was made from."""


def test_a_packed_file_is_all_that_the_python_of_executors_needs(tmp_path: Path) -> None:
    bare = [str(BARE / python_name()), "-c", "import light_scheduler"]
    assert subprocess.run(bare, env={}, cwd=tmp_path, stderr=subprocess.DEVNULL, check=False).returncode == 1
    packed = pack(tmp_path / "environment.pex")
    ids = [f"id-{number}" for number in range(ROWS - 1)]
    rows = pa.table({"id": [*ids, ""], "target_topic": ["t"] * ROWS, "payload": ["x"] * ROWS})
    pq.write_table(rows, tmp_path / "rows.parquet")
    configs = {
        **SMALL,
        "spark.files": str(packed.path),
        "spark.executorEnv.PEX_ROOT": "./pex",
        "spark.executorEnv.PATH": f"{BARE}:/usr/bin:/bin",
    }
    of_workers = {"PATH": f"{BARE}:/usr/bin:/bin", "PYTHONPATH": ""}
    with standalone(tmp_path, workers=1, environment=of_workers) as cluster:
        ran = subprocess.run(
            [
                *(sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", "load"),
                *(str(tmp_path / "rows.parquet"), "--dry-run", "--json", "--master", cluster.url, "--memory", "700m"),
                *(word for item in configs.items() for word in ("--spark-conf", "=".join(item))),
            ],
            env={
                **quick_environment(),
                "SPARK_LOCAL_IP": HOST,
                "PYSPARK_PYTHON": "./environment.pex",
                "PYTHONPATH": ":".join(filter(None, sys.path)),
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 1, ran.stderr[-4_000:]
    summary = json.loads(ran.stdout)
    assert (summary["rows"], summary["refused"]) == (ROWS, 1)
