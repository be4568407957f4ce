"""`import` as a command, killed while it writes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.jobs import Job
from support.kafka_records import committed_records

from light_scheduler.engine.commands import decide
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.model import Entry
from light_scheduler.pipeline.import_decisions import adopted
from light_scheduler.pipeline.schedule_table import rows_of
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire import UnsentRecord, partition_for
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.state import SCHEDULE_KIND, decode_entry, identity_of

pytestmark = [pytest.mark.pipeline, pytest.mark.integration, pytest.mark.chaos, pytest.mark.soak]

PARTITIONS = 2
BATCH = 5_000
NOW = 1_900_000_000_000


@pytest.mark.timeout(7_200)
def test_an_import_that_is_killed_anywhere_and_run_again_writes_every_schedule_once(
    kafka: Kafka, prefix: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows, kills = request.config.getoption("--imported"), request.config.getoption("--import-kills")
    settings = Settings(app_id=prefix, broker=f"kafka://{kafka.bootstrap_servers}", partitions=PARTITIONS)
    create_topics(settings)
    create_topic(kafka.bootstrap_servers, f"{prefix}-target", 1)
    changelog = settings.topics.changelog(settings.topics.commands)
    wanted = write_table(tmp_path / "table", settings.topics.commands, f"{prefix}-target", rows)
    job = Job(kafka, changelog, tmp_path, "import", str(tmp_path / "table"), "--app-id", prefix)
    chance = random.Random(prefix)
    written = 0
    for number in range(kills):
        left = rows - written
        records = written + chance.randrange(1, 2 + left // (2 * (kills - number)))
        assert job.killed_after(records), "it was too fast: more rows take longer (--imported)"
        written = len(committed_records(kafka, changelog))  # the broker may be about to commit others

    done = job.run()

    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["schedules"] == rows
    assert summary["written"] <= rows - written
    found = committed_records(kafka, changelog)
    assert len(found) == rows, "none is there twice"
    there = {(record.partition, record.key): decode_entry(record.value or b"") for record in found}
    assert there == {(place_of(entry), SCHEDULE_KIND + identity_of(entry)): adopted(entry, {}) for entry in wanted}
    again = json.loads(job.run().stdout)
    assert (again["schedules"], again["written"]) == (rows, 0)


def write_table(folder: Path, commands: str, target: str, rows: int) -> list[Entry]:
    """Write what an export writes of so many schedules, one-shots and series; return them."""
    folder.mkdir()
    entries = [entry(number, target) for number in range(rows)]
    for first in range(0, rows, BATCH):
        some = entries[first : first + BATCH]
        batch = rows_of(some, commands, pa.array(list(map(place_of, some))), PARTITIONS)
        pq.write_table(pa.Table.from_batches([batch]), folder / f"{first}.parquet")
    (folder / "_SUCCESS").touch()
    return entries


def entry(number: int, target: str) -> Entry:
    timing = ("schedule-at", b"%d" % (NOW + number)) if number % 3 else ("schedule-every", b"1h")
    headers = [timing, ("schedule-target-topic", target.encode()), ("number", b"%d" % number)]
    record = UnsentRecord(b"s-%d" % number, b"payload %d" % number, headers, NOW, 0, number)
    stored = decide(NATIVE.decode(record), None, NOW, NO_LIMITS).entry
    assert stored is not None
    return stored


def place_of(entry: Entry) -> int:
    return partition_for(entry.schedule.id.encode(), PARTITIONS)
