"""Pending schedules, imported into an empty application."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from light_scheduler.clock import SystemClock
from light_scheduler.engine import decide
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.model import Entry
from light_scheduler.pipeline import importing
from light_scheduler.pipeline.job import configured
from light_scheduler.pipeline.schedule_table import COLUMNS, IN_PYTHON, rows_of
from light_scheduler.settings import Settings
from light_scheduler.wire import UnsentRecord, partition_for
from light_scheduler.wire.native import NATIVE

from .cost import PARTITIONS, PAYLOAD, TARGET, Workspace

Timing = Callable[[int], list[tuple[str, bytes]]]
"""Returns the headers with the time rule of a schedule, given its number."""


def table_of(place: Workspace, rows: int, timing: Timing) -> importing.ImportOptions:
    """Create an application's topics and a table of schedules. Return the options to import it."""
    settings = Settings(broker=f"kafka://{place.bootstrap_servers}", partitions=PARTITIONS)
    create_topics(settings)
    create_topic(place.bootstrap_servers, TARGET, PARTITIONS)
    commands, table = settings.topics.commands, place.table("schedules")
    with configured(place.spark, IN_PYTHON):
        numbers = place.spark.range(0, rows, 1, PARTITIONS)
        numbers.mapInArrow(_rows(commands, SystemClock().now(), timing), COLUMNS).write.parquet(table)
    return importing.ImportOptions(
        table=table, cluster=place.cluster, app_id=settings.app_id, commands_topics=(commands,)
    )


def _rows(commands: str, now: int, timing: Timing) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            entries = [_entry(number, now, timing) for number in batch.column("id").to_pylist()]
            places = [entry.schedule.source_partition for entry in entries]
            yield rows_of(entries, commands, pa.array(places), PARTITIONS)

    return rows


def _entry(number: int, now: int, timing: Timing) -> Entry:
    """Return the entry that a worker stores for a new schedule."""
    key = b"order-%010d" % number
    headers = [*timing(number), ("schedule-target-topic", TARGET.encode())]
    record = UnsentRecord(key, PAYLOAD, headers, now, partition_for(key, PARTITIONS), number)
    entry = decide(NATIVE.decode(record), None, now, NO_LIMITS).entry
    assert entry is not None, "it is new, and nothing is wrong with it"
    return entry
