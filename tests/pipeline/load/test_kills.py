"""`load` as a command, killed wherever it happens to be."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.jobs import Job
from support.kafka_records import committed_records, decided_records

from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.testing import Kafka

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak]

PARTITIONS = 2
FILES = 6


@pytest.mark.timeout(7_200)
def test_a_load_that_is_killed_anywhere_and_run_again_sends_every_row_once(
    kafka: Kafka, prefix: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows, kills = request.config.getoption("--load-rows"), request.config.getoption("--load-kills")
    create_topic(kafka.bootstrap_servers, prefix, PARTITIONS)
    create_topic(kafka.bootstrap_servers, f"{prefix}-loads", 1, configs={"cleanup.policy": "compact"})
    (tmp_path / "tables").mkdir()
    for file in range(FILES):
        ids = [f"{number:08}" for number in range(file, rows, FILES)]
        table = pa.table({"id": [*ids, ""], "at": pa.repeat(1_900_000_000_000, len(ids) + 1)})
        pq.write_table(table, tmp_path / "tables" / f"{file}.parquet")
    options = (
        "--set",
        "target-topic=t",
        "--refused",
        str(tmp_path / "refused"),
        "--commands-topics",
        prefix,
        "--app-id",
        prefix,
    )
    load = Job(kafka, prefix, tmp_path, "load", str(tmp_path / "tables"), *options)
    chance = random.Random(prefix)
    sent = 0
    for _ in range(kills):
        load.killed_after(sent + chance.randrange(1, max(2, rows - sent)))
        sent = len(committed_records(kafka, prefix))
    done = load.run()
    assert done.returncode == 1, done.stderr  # the rows without an id are refused
    summary = json.loads(done.stdout)
    assert summary["rows"] == rows + FILES
    assert summary["refused"] == FILES
    assert summary["sent"] + summary["sent_before"] == rows
    assert summary["sent_before"] >= sent  # what lies behind an open transaction was not to be seen then
    found = Counter(record.key for record in decided_records(kafka, prefix))
    assert len(found) == rows
    assert set(found.values()) == {1}
