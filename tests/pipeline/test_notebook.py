"""The notebook does what it says, beside a real worker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.application import Application

from light_scheduler.settings import ENVIRONMENT_PREFIX
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "pipeline.ipynb"


@pytest.mark.soak
@pytest.mark.every_case
async def test_the_notebook_runs_from_top_to_bottom(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    application = await Application.create(kafka.bootstrap_servers, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}APP_ID", application.settings.app_id)
    monkeypatch.setenv(f"{ENVIRONMENT_PREFIX}BROKER", application.settings.broker)
    names: dict[str, Any] = {}
    try:
        await application.start_worker()
        for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    finally:
        application.close()
    assert (names["loaded"].sent, names["loaded"].refused) == (1_000, 1)
    assert (names["again"].sent, names["again"].sent_before) == (0, 1_000)
    assert names["exported"].schedules == 1_000
