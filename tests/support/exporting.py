"""Schedules to export and import, and the changelogs that hold them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from light_scheduler.engine.commands import decide
from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.model import Awaited, Entry
from light_scheduler.model.probe import PROBE_ID, PROBE_TENANT
from light_scheduler.pipeline import export, importing
from light_scheduler.pipeline.import_decisions import adopted
from light_scheduler.pipeline.job import Cluster
from light_scheduler.settings import Settings
from light_scheduler.testing import Kafka
from light_scheduler.wire import UnsentRecord
from light_scheduler.wire.native import NATIVE
from light_scheduler.wire.state import (
    PROGRESS_KIND,
    SCHEDULE_KIND,
    decode_entry,
    encode_entry,
    encode_progress,
    identity_of,
)
from support.kafka_records import committed_records

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


def defined(stored: Entry) -> tuple[bytes, bytes]:
    return SCHEDULE_KIND + identity_of(stored), encode_entry(stored)


def moved(stored: Entry) -> tuple[bytes, bytes]:
    return PROGRESS_KIND + identity_of(stored), encode_progress(stored.progress)


def ended(stored: Entry) -> tuple[bytes, None]:
    return SCHEDULE_KIND + identity_of(stored), None


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
