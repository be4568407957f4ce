"""`export` and `import`: a table of all that is pending, from which the same schedules fire at the same times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.application import Application
from support.clocks import HOUR
from support.exporting import ALL, IMPORTED, NOW, PARTITIONS, TARGET, Write, defined, export_to, options_of, pending
from support.kafka_records import committed_records
from support.reading import read_until

from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic
from light_scheduler.pipeline import importing
from light_scheduler.pipeline.import_decisions import adopted
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire.state import decode_entry

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]


@pytest.mark.soak
def test_the_table_has_what_counts_in_words_and_in_full(spark: SparkSession, exported: importing.ImportOptions) -> None:
    rows = {row.id: row for row in spark.read.parquet(exported.table).collect()}
    assert [decode_entry(bytes(rows[stored.schedule.id].record)) for stored in ALL] == ALL
    once, cron, rate, backoff = (rows[name] for name in ("once", "cron", "rate", "backoff"))
    assert (once.partition, cron.partition, rate.partitions) == (0, 1, PARTITIONS)
    assert (once.tenant, cron.tenant) == ("default", "other")
    assert once.at.timestamp() * 1_000 == once.next_due.timestamp() * 1_000 == NOW + 1
    assert (once.labels, once.ttl, once.priority) == ({"team": "billing", "kind": "r"}, 3_600_000, 7)
    assert [(header.key, header.value) for header in once.headers] == [("trace", b"\x00"), ("none", None)]
    assert (cron.cron, cron.timezone, cron.payload) == ("0 9 * * *", "Europe/Berlin", b"\x00\xff")
    assert (rate.every, rate.jitter, rate.max_firings, rate.payload) == (900_000, 60_000, 9, None)
    assert (rate.sequence, rate.paused, rate.next_due) == (5, True, None)
    assert (backoff.attempt, backoff.backoff) == (3, "initial=5000 factor=2.5 max=3600000 attempts=50 jitter=0.1")


@pytest.mark.soak
@pytest.mark.usefixtures("compiled_plans")
def test_schedules_are_restored_where_they_were_and_as_they_were(
    spark: SparkSession, kafka: Kafka, applications: tuple[Settings, Settings], exported: importing.ImportOptions
) -> None:
    assert importing.main(spark, exported) == importing.ImportSummary(4, 4)
    wanted = list(zip((1, 1, 0, 0), IMPORTED, strict=True))
    assert pending(kafka, applications[1]) == wanted
    assert importing.main(spark, exported) == importing.ImportSummary(4, 0)
    assert pending(kafka, applications[1]) == wanted


@pytest.mark.parametrize("format", ["json", "delta"])
@pytest.mark.soak
@pytest.mark.every_case
def test_other_formats_lose_nothing(
    spark: SparkSession,
    kafka: Kafka,
    write: Write,
    applications: tuple[Settings, Settings],
    tmp_path: Path,
    format: str,
) -> None:
    old, new = applications
    write(old, 1, *map(defined, ALL))
    export_to(spark, old, tmp_path / "table", format)
    assert importing.main(spark, options_of(new, tmp_path / "table", format)).written == 4
    assert pending(kafka, new) == [(1, stored) for stored in IMPORTED]


@pytest.mark.soak
def test_an_import_that_was_interrupted_writes_what_is_missing_and_topics_get_other_names(
    spark: SparkSession,
    kafka: Kafka,
    write: Write,
    applications: tuple[Settings, Settings],
    exported: importing.ImportOptions,
    prefix: str,
) -> None:
    old, new = applications
    create_topic(kafka.bootstrap_servers, f"{prefix}-target", 1)
    names = {TARGET: f"{prefix}-target", old.topics.commands: new.topics.commands}
    aimed = [adopted(stored, names) for stored in ALL]
    assert {stored.schedule.target.topic for stored in aimed} == {f"{prefix}-target"}
    write(new, 1, defined(aimed[0]))
    assert importing.main(spark, replace(exported, topics=names)) == importing.ImportSummary(4, 3)
    assert [stored for _, stored in pending(kafka, new)] == aimed


@pytest.mark.soak
async def test_schedules_of_a_real_worker_move_to_another_application_and_fire_on_time(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    applications = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        applications.append(await Application.create(kafka.bootstrap_servers, tmp_path / name))
    old, new = applications
    old.drive_clock(behind=HOUR)  # so that nothing is due there, however long it takes
    count = 50
    try:
        worker = await old.start_worker()
        due = SystemClock().now() + 25_000
        async with old.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": f"s-{number}", "payload": b"%d" % number, "topic": old.target, "at": due + number}
                for number in range(count)
            ]
            await client.schedule_many(requests, wait=True)
        assert await worker.end() == 0
        export_to(spark, old.settings, tmp_path / "table")
        options = replace(options_of(new.settings, tmp_path / "table"), topics={old.target: new.target})
        running = await new.start_worker()
        with pytest.raises(JobError, match=r"run \(1\): stop them"):
            importing.main(spark, options)
        assert await running.end() == 0
        assert importing.main(spark, options).written == count
        running.start()
        fired = await read_until(kafka.bootstrap_servers, [new.target], lambda records: len(records) >= count, 120)
    finally:
        for application in applications:
            for each in application.workers:
                each.kill()
    assert committed_records(kafka, old.target) == []
    assert sorted(record.value for record in fired) == sorted(b"%d" % number for number in range(count))
    for record in fired:
        headers = dict(record.headers)
        assert int(headers["schedule-due"]) == due + int(record.value) <= record.timestamp
