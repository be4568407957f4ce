"""`export` and `import`: a table of all that is pending, from which the same schedules fire at the same times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from support.application import Application
from support.kafka_records import committed_records
from support.ordering import ordered_producer
from support.reading import read_until

from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.pytest_plugin import Kafka
from light_scheduler.engine.commands import decide
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.errors import JobError
from light_scheduler.model import Awaited, Entry
from light_scheduler.pipeline import export, restore
from light_scheduler.pipeline.job import Cluster
from light_scheduler.settings import Settings
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    decode_entry,
    encode_entry,
    encode_position,
    encode_progress,
    identity_of,
)
from light_scheduler.worker.topic_admin import create_topic, create_topics

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

PARTITIONS = 2
NOW = 1_900_000_000_000
TARGET = "target-of-exports"

Write = Callable[..., None]


def entry(id: str, payload: bytes | None = b"x", **fields: str) -> Entry:
    """Return what a new schedule is stored as."""
    asked = {"id": id, "target-topic": TARGET, **{name.replace("_", "-"): text for name, text in fields.items()}}
    headers = [(f"schedule-{name}", text.encode()) for name, text in asked.items()]
    record = UnsentRecord(b"key", payload, [*headers, ("trace", b"\x00"), ("none", None)], NOW, 1, 7)
    stored = decide(NATIVE.decode(record), None, NOW, NO_LIMITS).entry
    assert stored is not None
    return stored


def with_progress(stored: Entry, **changes: Any) -> Entry:
    return Entry(stored.schedule, msgspec.structs.replace(stored.progress, **changes))


ONCE = entry("once", at=str(NOW + 1), labels="team=billing,kind=r", ttl="1h", priority="7")
CRON = entry("cron", b"\x00\xff", cron="0 9 * * *", timezone="Europe/Berlin", tenant="other")
RATE = with_progress(
    entry("rate", None, every="15m", jitter="1m", max_firings="9", window="5s"), sequence=5, paused=True
)
BACKOFF = with_progress(
    entry("backoff", backoff="initial=5s factor=2.5 max=1h attempts=50 jitter=0.1"),
    attempt=3,
    sequence=3,
    first_due=NOW - 5,
    awaited=(Awaited(NOW - 5, 2, 2, NOW + 9, NOW - 4),),
)
ALL = [BACKOFF, CRON, ONCE, RATE]


@pytest.fixture
def write(kafka: Kafka) -> Write:
    """Write records to a partition of a changelog: values by key."""
    producer = ordered_producer(kafka.bootstrap_servers)

    def write(settings: Settings, partition: int, *records: tuple[bytes, bytes | None]) -> None:
        changelog = settings.topics.changelog(settings.topics.commands)
        for key, value in records:
            producer.produce(changelog, value, key, partition=partition)
        assert producer.flush(15) == 0

    return write


def defined(stored: Entry) -> tuple[bytes, bytes]:
    return SCHEDULE_KIND + identity_of(stored), encode_entry(stored)


def moved(stored: Entry) -> tuple[bytes, bytes]:
    return PROGRESS_KIND + identity_of(stored), encode_progress(stored.progress)


def ended(stored: Entry) -> tuple[bytes, None]:
    return SCHEDULE_KIND + identity_of(stored), None


@pytest.fixture
def applications(kafka: Kafka, prefix: str) -> tuple[Settings, Settings]:
    """Two applications on the same broker, with the topic that schedules go to."""
    create_topic(kafka.bootstrap_servers, TARGET, 1)
    made = []
    for name in ("old", "new"):
        app_id, broker = f"{prefix}-{name}", f"kafka://{kafka.bootstrap_servers}"
        made.append(Settings(app_id=app_id, broker=broker, partitions=PARTITIONS))
        create_topics(made[-1])
    return made[0], made[1]


@pytest.fixture
def exported(
    spark: SparkSession, write: Write, applications: tuple[Settings, Settings], tmp_path: Path
) -> restore.RestoreOptions:
    """Export four schedules of the first application; return how to import them into the second one."""
    old, new = applications
    first = with_progress(RATE, sequence=1, paused=False)
    write(
        old, 0, defined(first), defined(ONCE), (POSITION_KEY, encode_position(3)), defined(entry("done", at=str(NOW)))
    )
    write(old, 0, moved(with_progress(RATE, sequence=2)), moved(RATE), ended(entry("done", at=str(NOW))))
    write(old, 1, moved(with_progress(CRON, sequence=9)), defined(CRON), defined(BACKOFF), ended(ONCE))
    assert export_to(spark, old, tmp_path / "table").schedules == 4
    return options_of(new, tmp_path / "table")


def export_to(spark: SparkSession, settings: Settings, table: Path, format: str = "parquet") -> export.ExportSummary:
    return export.main(
        spark,
        export.ExportOptions(
            table=str(table),
            cluster=Cluster(settings.bootstrap_servers),
            app_id=settings.app_id,
            commands_topics=(settings.topics.commands,),
            format=format,
        ),
    )


def options_of(settings: Settings, table: Path, format: str = "parquet") -> restore.RestoreOptions:
    return restore.RestoreOptions(
        table=str(table),
        cluster=Cluster(settings.bootstrap_servers),
        app_id=settings.app_id,
        commands_topics=(settings.topics.commands,),
        internal_topics=settings.internal_topics,
        format=format,
    )


def pending(kafka: Kafka, settings: Settings) -> list[tuple[int, Entry]]:
    """Return what a worker would restore: the partition and the schedule, by id."""
    found: dict[tuple[int, bytes], Entry | None] = {}
    for record in committed_records(kafka, settings.topics.changelog(settings.topics.commands)):
        assert record.key is not None
        if record.key[:1] == SCHEDULE_KIND:
            found[record.partition, record.key] = None if record.value is None else decode_entry(record.value)
    there = [(partition, stored) for (partition, _), stored in found.items() if stored is not None]
    return sorted(there, key=lambda place: place[1].schedule.id)


def test_the_table_has_what_counts_in_words_and_in_full(spark: SparkSession, exported: restore.RestoreOptions) -> None:
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


def test_schedules_are_restored_where_they_were_and_as_they_were(
    spark: SparkSession, kafka: Kafka, applications: tuple[Settings, Settings], exported: restore.RestoreOptions
) -> None:
    assert restore.main(spark, exported) == restore.RestoreSummary(4, 4)
    wanted = [(1, BACKOFF), (1, CRON), (0, ONCE), (0, RATE)]
    assert pending(kafka, applications[1]) == wanted
    assert restore.main(spark, exported) == restore.RestoreSummary(4, 0)
    assert pending(kafka, applications[1]) == wanted


@pytest.mark.parametrize("format", ["json", "delta"])
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
    assert restore.main(spark, options_of(new, tmp_path / "table", format)).written == 4
    assert pending(kafka, new) == [(1, stored) for stored in ALL]


def test_an_import_that_was_interrupted_writes_what_is_missing_and_topics_get_other_names(
    spark: SparkSession,
    kafka: Kafka,
    write: Write,
    applications: tuple[Settings, Settings],
    exported: restore.RestoreOptions,
    prefix: str,
) -> None:
    old, new = applications
    create_topic(kafka.bootstrap_servers, f"{prefix}-target", 1)
    names = {TARGET: f"{prefix}-target", old.topics.commands: new.topics.commands}
    aimed = [
        Entry(
            msgspec.structs.replace(
                stored.schedule, target=msgspec.structs.replace(stored.schedule.target, topic=f"{prefix}-target")
            ),
            stored.progress,
        )
        for stored in ALL
    ]
    write(new, 1, defined(aimed[0]))
    assert restore.main(spark, replace(exported, topics=names)) == restore.RestoreSummary(4, 3)
    assert [stored for _, stored in pending(kafka, new)] == aimed


class TestGuards:
    def test_nothing_is_added_to_schedules_that_are_there_unless_it_is_asked_for(
        self,
        spark: SparkSession,
        kafka: Kafka,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: restore.RestoreOptions,
    ) -> None:
        new = applications[1]
        other = entry("another", at=str(NOW))
        write(new, 0, defined(other))
        with pytest.raises(JobError, match="has 1 schedules that the table has not"):
            restore.main(spark, exported)
        assert pending(kafka, new) == [(0, other)]
        assert restore.main(spark, replace(exported, replace=True)).written == 4
        assert [stored for _, stored in pending(kafka, new)] == [other, *ALL]

    def test_what_was_imported_and_fired_since_is_not_imported_again(
        self,
        spark: SparkSession,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: restore.RestoreOptions,
    ) -> None:
        write(applications[1], 0, defined(ONCE), ended(ONCE))
        with pytest.raises(JobError, match=r"1 schedules of the table are in .* and went on since"):
            restore.main(spark, exported)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"topics": {TARGET: "not-there"}}, "topics that are not there: make not-there"),
            ({"commands_topics": ("one", "two")}, "map it to one, two"),
            ({"internal_topics": frozenset({TARGET})}, f"aim at {TARGET}, which only workers write"),
            ({"table": "/not/there"}, "/not/there cannot be read as parquet"),
            ({"app_id": "nobody"}, "topic .* cannot be used"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_what_to_do(
        self, spark: SparkSession, exported: restore.RestoreOptions, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(JobError, match=message):
            restore.main(spark, replace(exported, **changes))

    def test_another_number_of_partitions_is_refused(
        self, spark: SparkSession, kafka: Kafka, exported: restore.RestoreOptions, prefix: str
    ) -> None:
        other = Settings(
            app_id=f"{prefix}-more", broker=f"kafka://{kafka.bootstrap_servers}", partitions=PARTITIONS + 1
        )
        create_topics(other)
        with pytest.raises(JobError, match=f"make the topics of {prefix}-more with {PARTITIONS}"):
            restore.main(spark, options_of(other, Path(exported.table)))


async def test_schedules_of_a_real_worker_move_to_another_application_and_fire_on_time(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    applications = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        applications.append(await Application.create(kafka.bootstrap_servers, tmp_path / name))
    old, new = applications
    count = 50
    due = SystemClock().now() + 25_000
    try:
        worker = await old.start_worker()
        async with old.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": f"s-{number}", "payload": b"%d" % number, "topic": old.target, "at": due + number}
                for number in range(count)
            ]
            await client.schedule_many(requests, wait=True)
        assert await worker.stop() == 0
        export_to(spark, old.settings, tmp_path / "table")
        options = replace(options_of(new.settings, tmp_path / "table"), topics={old.target: new.target})
        running = await new.start_worker()
        with pytest.raises(JobError, match=r"run \(1\): stop them"):
            restore.main(spark, options)
        assert await running.stop() == 0
        assert restore.main(spark, options).written == count
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
