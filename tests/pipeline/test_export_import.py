"""`export` and `import`: a table of all that is pending, from which the same schedules fire at the same times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from support.application import Application
from support.kafka_records import committed_records
from support.ordering import ordered_producer
from support.reading import read_until

from light_scheduler.client import ScheduleRequest
from light_scheduler.clock import SystemClock
from light_scheduler.engine.commands import decide
from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.errors import JobError
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.model import Awaited, Entry, HomeKey, Outcome
from light_scheduler.model.probe import PROBE_ID, PROBE_TENANT
from light_scheduler.pipeline import export, importing
from light_scheduler.pipeline.adoption import adopted
from light_scheduler.pipeline.exclusion import only_import
from light_scheduler.pipeline.job import Cluster
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire import UnsentRecord, partition_for
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    bulk_part_key,
    decode_entry,
    encode_entry,
    encode_position,
    encode_progress,
    identity_of,
)

pytestmark = [pytest.mark.pipeline, pytest.mark.integration]

PARTITIONS, MORE = 2, 5
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
PROBE = Entry(msgspec.structs.replace(ONCE.schedule, tenant=PROBE_TENANT, id=PROBE_ID), ONCE.progress)
IMPORTED = [adopted(stored, {}) for stored in ALL]


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
) -> importing.ImportOptions:
    """Export four schedules of the first application, and not its probe; return how to import them into the second."""
    old, new = applications
    first = with_progress(RATE, sequence=1, paused=False)
    write(
        old, 0, defined(first), defined(ONCE), (POSITION_KEY, encode_position(3)), defined(entry("done", at=str(NOW)))
    )
    write(old, 0, moved(with_progress(RATE, sequence=2)), moved(RATE), ended(entry("done", at=str(NOW))))
    write(old, 1, moved(with_progress(CRON, sequence=9)), defined(CRON), defined(BACKOFF), ended(ONCE))
    write(old, 1, defined(PROBE))
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


def options_of(settings: Settings, table: Path, format: str = "parquet") -> importing.ImportOptions:
    return importing.ImportOptions(
        table=str(table),
        cluster=Cluster(settings.bootstrap_servers),
        app_id=settings.app_id,
        commands_topics=(settings.topics.commands,),
        limits=Limits(1_000_000, 512, settings.internal_topics),
        format=format,
        keyed_topics=frozenset({settings.topics.commands}),
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


@pytest.mark.usefixtures("compiled_plans")
def test_schedules_are_restored_where_they_were_and_as_they_were(
    spark: SparkSession, kafka: Kafka, applications: tuple[Settings, Settings], exported: importing.ImportOptions
) -> None:
    assert importing.main(spark, exported) == importing.ImportSummary(4, 4)
    wanted = list(zip((1, 1, 0, 0), IMPORTED, strict=True))
    assert pending(kafka, applications[1]) == wanted
    assert importing.main(spark, exported) == importing.ImportSummary(4, 0)
    assert pending(kafka, applications[1]) == wanted


@pytest.mark.parametrize("format", [pytest.param("json", marks=pytest.mark.soak), "delta"])
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


class TestGuards:
    @pytest.mark.soak
    def test_nothing_is_added_to_schedules_that_are_there_unless_it_is_asked_for(
        self,
        spark: SparkSession,
        kafka: Kafka,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
    ) -> None:
        new = applications[1]
        other = entry("another", at=str(NOW))
        write(new, 0, defined(other))
        with pytest.raises(JobError, match="has 1 schedules that are not in the table"):
            importing.main(spark, exported)
        assert pending(kafka, new) == [(0, other)]
        assert importing.main(spark, replace(exported, replace=True)).written == 4
        assert [stored for _, stored in pending(kafka, new)] == [other, *IMPORTED]

    def test_what_was_imported_and_fired_since_is_not_imported_again(
        self,
        spark: SparkSession,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
    ) -> None:
        write(applications[1], 0, defined(ONCE), ended(ONCE))
        with pytest.raises(
            JobError, match=r"1 schedules of the table are in .* already and have fired or changed since"
        ):
            importing.main(spark, exported)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"topics": {TARGET: "not-there"}}, "target topics are missing: create not-there"),
            ({"commands_topics": ("one", "two")}, "map it to one, two"),
            (
                {"limits": Limits(100, 100, frozenset({TARGET}))},
                f"4 schedules .* such as default/backoff: schedule-target-topic: {TARGET} is an internal topic",
            ),
            (
                {"limits": Limits(1, 100)},
                "1 schedules .* such as other/cron: payload: has 2 bytes; at most 1 .* Nothing was imported",
            ),
            ({"limits": Limits(100, 5)}, "1 schedules .* default/backoff: schedule-id: is longer than 5 bytes"),
            ({"table": "/not/there"}, "/not/there cannot be read as parquet"),
            ({"app_id": "nobody"}, "topic .* cannot be used"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_what_to_do(
        self, spark: SparkSession, exported: importing.ImportOptions, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(JobError, match=message):
            importing.main(spark, replace(exported, **changes))

    def test_what_is_written_is_checked_whatever_the_columns_for_people_say(
        self, spark: SparkSession, exported: importing.ImportOptions, tmp_path: Path
    ) -> None:
        changed = spark.read.parquet(exported.table).withColumn("target_topic", F.lit("elsewhere"))
        changed.write.parquet(str(tmp_path / "changed"))
        options = replace(exported, table=str(tmp_path / "changed"), topics={TARGET: "not-there"})
        with pytest.raises(JobError, match="target topics are missing: create not-there"):
            importing.main(spark, options)
        options = replace(exported, table=str(tmp_path / "changed"), limits=Limits(100, 100, frozenset({TARGET})))
        with pytest.raises(JobError, match="is an internal topic"):
            importing.main(spark, options)

    def test_a_partition_that_the_topic_has_not_is_refused(
        self, spark: SparkSession, exported: importing.ImportOptions, tmp_path: Path
    ) -> None:
        spark.read.parquet(exported.table).withColumn("partition", F.lit(7)).write.parquet(str(tmp_path / "changed"))
        with pytest.raises(JobError, match="partition: 7 is none of 2"):
            importing.main(spark, replace(exported, table=str(tmp_path / "changed")))

    @pytest.mark.soak
    def test_two_commands_topics_become_one_unless_an_id_is_in_both(
        self,
        spark: SparkSession,
        kafka: Kafka,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
        tmp_path: Path,
    ) -> None:
        old, new = applications
        rows = spark.read.parquet(exported.table)
        once = rows.where("id = 'once'")
        both = rows.where("id <> 'once'").unionByName(once.withColumn("commands_topic", F.lit("second")))
        both.write.parquet(str(tmp_path / "both"))
        both.unionByName(once.withColumn("partition", F.lit(1))).write.parquet(str(tmp_path / "clash"))
        names = {old.topics.commands: new.topics.commands, "second": new.topics.commands}
        with pytest.raises(JobError, match=r"1 schedules would replace each other .* such as default/once of"):
            importing.main(spark, replace(exported, table=str(tmp_path / "clash"), topics=names))
        assert pending(kafka, new) == []
        written = importing.main(spark, replace(exported, table=str(tmp_path / "both"), topics=names))
        assert written == importing.ImportSummary(4, 4)
        assert [stored for _, stored in pending(kafka, new)] == IMPORTED

    @pytest.mark.soak
    def test_nothing_is_imported_beside_a_bulk_command_that_is_at_work(
        self,
        spark: SparkSession,
        write: Write,
        applications: tuple[Settings, Settings],
        exported: importing.ImportOptions,
    ) -> None:
        write(applications[1], 0, (bulk_part_key(3), b"at work"))
        with pytest.raises(JobError, match="has 1 bulk commands that are not finished"):
            importing.main(spark, exported)
        write(applications[1], 0, (bulk_part_key(3), None))
        assert importing.main(spark, exported).written == 4

    @pytest.mark.soak
    def test_two_imports_do_not_run_at_once(self, kafka: Kafka, applications: tuple[Settings, Settings]) -> None:
        names = applications[1].topics
        cluster = Cluster(kafka.bootstrap_servers)

        def importing() -> AbstractContextManager[None]:
            return only_import(cluster, names.app_id, names.changelog(names.commands))

        with importing():
            with pytest.raises(JobError, match=f"another import into {names.app_id} runs"), importing():
                pytest.fail("it began")
            with only_import(cluster, f"{names.app_id}-other", names.changelog(names.commands)):
                pass
        with importing():
            pass

    def test_another_number_of_partitions_is_refused_where_keys_do_not_decide(
        self, spark: SparkSession, kafka: Kafka, exported: importing.ImportOptions, prefix: str
    ) -> None:
        other = more_partitions(kafka, prefix)
        with pytest.raises(JobError, match=f"make the topics of {prefix}-more with {PARTITIONS}"):
            importing.main(spark, replace(options_of(other, Path(exported.table)), keyed_topics=frozenset()))

    def test_a_schedule_without_its_key_is_refused_among_another_number_of_partitions(
        self,
        spark: SparkSession,
        kafka: Kafka,
        applications: tuple[Settings, Settings],
        write: Write,
        prefix: str,
        tmp_path: Path,
    ) -> None:
        keyless = Entry(msgspec.structs.replace(ONCE.schedule, home_key=HomeKey.UNKNOWN), ONCE.progress)
        write(applications[0], 0, defined(keyless))
        export_to(spark, applications[0], tmp_path / "keyless")
        with pytest.raises(JobError, match="stored the schedule without its key"):
            importing.main(spark, options_of(more_partitions(kafka, prefix), tmp_path / "keyless"))
        importing.main(spark, options_of(applications[1], tmp_path / "keyless"))


def more_partitions(kafka: Kafka, prefix: str) -> Settings:
    """Make the topics of an application with more partitions than the exported one has."""
    settings = Settings(app_id=f"{prefix}-more", broker=f"kafka://{kafka.bootstrap_servers}", partitions=MORE)
    create_topics(settings)
    return settings


@pytest.mark.soak
async def test_among_another_number_of_partitions_each_schedule_goes_to_that_of_its_key_and_is_found_there(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    applications = []
    for name, partitions in (("old", PARTITIONS), ("new", MORE)):
        (tmp_path / name).mkdir()
        made = await Application.create(kafka.bootstrap_servers, tmp_path / name, partitions=str(partitions))
        applications.append(made)
    old, new = applications
    ids, due = [f"s-{number}" for number in range(20)], SystemClock().now() + 3_600_000
    try:
        worker = await old.start_worker()
        async with old.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": id, "payload": b"x", "topic": old.target, "at": due} for id in ids
            ]
            await client.schedule_many(requests, wait=True)
        assert await worker.end() == 0
        export_to(spark, old.settings, tmp_path / "table")
        options = replace(options_of(new.settings, tmp_path / "table"), topics={old.target: new.target})
        assert importing.main(spark, options).written == len(ids)
        assert importing.main(spark, options).written == 0
        running = await new.start_worker()
        homes = Counter(partition_for(id.encode(), MORE) for id in ids)
        await running.shows(lambda info: {lane["partition"]: lane["pending"] for lane in info["lanes"]} == dict(homes))
        async with new.client() as client:
            cancelled = [await client.cancel(id, wait=True) for id in ids]
        info = await running.get("/info")
    finally:
        for application in applications:
            application.close()
    assert {result.outcome for result in cancelled} == {Outcome.CANCELLED}
    assert sum(lane["forwarded"] for lane in info["lanes"]) == 0


@pytest.mark.soak
async def test_a_bulk_command_reaches_what_was_imported_as_the_first_command_of_the_new_topic(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    applications = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        applications.append(await Application.create(kafka.bootstrap_servers, tmp_path / name, partitions="1"))
    old, new = applications
    count = 50
    due = SystemClock().now() + 3_600_000
    try:
        worker = await old.start_worker()
        async with old.client() as client:
            requests: list[ScheduleRequest] = [
                {"id": f"s-{number}", "payload": b"x", "topic": old.target, "at": due} for number in range(count)
            ]
            await client.schedule_many(requests, wait=True)
            assert (await client.pause_many(id_prefix="s-1")).count == 11
        assert await worker.end() == 0
        export_to(spark, old.settings, tmp_path / "table")
        options = replace(options_of(new.settings, tmp_path / "table"), topics={old.target: new.target})
        assert importing.main(spark, options).written == count
        running = await new.start_worker()
        async with new.client() as client:
            assert (await client.pause_many(everything=True)).count == count - 11
            assert (await client.cancel_many(everything=True)).count == count
        listed = await running.get("/api/v1/tenants/default/schedules")
    finally:
        for application in applications:
            application.close()
    assert listed["schedules"] == []


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
