"""`load` as a command, killed wherever it happens to be."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, TopicPartition
from support.kafka_records import committed_records

from light_scheduler.devkit.pytest_plugin import Kafka
from light_scheduler.worker.topic_admin import create_topic

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak]

PARTITIONS = 2
FILES = 6
START_TIMEOUT_S = 120.0


class Load:
    """The command on a table, in a session of its own, so that a kill takes driver, JVM and workers at once."""

    def __init__(self, kafka: Kafka, topic: str, folder: Path) -> None:
        self._kafka = kafka
        self._topic = topic
        self._command = [
            *(sys.executable, "-c", "from light_scheduler.cli import main; main()", "pipeline", "load"),
            *(str(folder / "tables"), "--set", "target-topic=t", "--refused", str(folder / "refused")),
            *("--broker", f"kafka://{kafka.bootstrap_servers}", "--commands-topics", topic),
            *("--master", "local[2]", "--memory", "1g", "--json"),
        ]
        self._folder = folder

    def run(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self._command, capture_output=True, text=True, cwd=self._folder, check=False)

    def killed_after(self, records: int) -> None:
        """Run until the topic has so many offsets, then kill; or to the end if that comes first."""
        consumer = Consumer({"bootstrap.servers": self._kafka.bootstrap_servers, "group.id": f"{self._topic}-looks"})
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(self._command, stdout=log, stderr=log, cwd=self._folder, start_new_session=True)
        deadline = time.monotonic() + START_TIMEOUT_S
        try:
            while process.poll() is None and self._offsets(consumer) < records:
                assert time.monotonic() < deadline, (self._folder / "log").read_text(errors="replace")[-4_000:]
                time.sleep(0.02)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            consumer.close()

    def _offsets(self, consumer: Consumer) -> int:
        parts = [TopicPartition(self._topic, partition) for partition in range(PARTITIONS)]
        return sum(consumer.get_watermark_offsets(part, timeout=15, cached=False)[1] for part in parts)


@pytest.mark.timeout(900)
def test_a_load_that_is_killed_anywhere_and_run_again_sends_every_row_once(
    kafka: Kafka, prefix: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows, kills = request.config.getoption("--load-rows"), request.config.getoption("--load-kills")
    create_topic(kafka.bootstrap_servers, prefix, PARTITIONS)
    (tmp_path / "tables").mkdir()
    for file in range(FILES):
        ids = [f"{number:08}" for number in range(file, rows, FILES)]
        table = pa.table({"id": [*ids, ""], "at": pa.repeat(1_900_000_000_000, len(ids) + 1)})
        pq.write_table(table, tmp_path / "tables" / f"{file}.parquet")
    load = Load(kafka, prefix, tmp_path)
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
    found = Counter(record.key for record in committed_records(kafka, prefix))
    assert len(found) == rows
    assert set(found.values()) == {1}
