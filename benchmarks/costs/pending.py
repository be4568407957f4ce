"""`import`, `export` and `forecast`, of schedules that wait: nine of ten fire once, within a day, and others again.

One in twenty fires each hour, one in twenty by cron at nine in the morning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from light_scheduler.clock import SystemClock
from light_scheduler.engine import decide
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.model import Entry
from light_scheduler.pipeline import export, forecast, importing
from light_scheduler.pipeline.job import configured
from light_scheduler.pipeline.schedule_table import COLUMNS, IN_PYTHON, rows_of
from light_scheduler.settings import Settings
from light_scheduler.wire import UnsentRecord, partition_for
from light_scheduler.wire.native import NATIVE

from .cost import PARTITIONS, PAYLOAD, TARGET, Cost, Workspace, cost_of

DAY_MS = 86_400_000


def costs(place: Workspace, rows: int) -> Iterator[Cost]:
    """Yield what it costs to import schedules into an empty application, to export them, and to look ahead a day."""
    settings = Settings(broker=f"kafka://{place.bootstrap_servers}", partitions=PARTITIONS)
    create_topics(settings)
    create_topic(place.bootstrap_servers, TARGET, PARTITIONS)
    commands, table = settings.topics.commands, place.table("schedules")
    with configured(place.spark, IN_PYTHON):
        schedules = place.spark.range(0, rows, 1, PARTITIONS).mapInArrow(
            _pending(commands, SystemClock().now()), COLUMNS
        )
        schedules.write.parquet(table)
    whose: dict[str, Any] = {"cluster": place.cluster, "app_id": settings.app_id, "commands_topics": (commands,)}
    imported = importing.ImportOptions(table=table, **whose)
    yield cost_of("import", rows, lambda: importing.main(place.spark, imported).written)
    exporting = export.ExportOptions(table=place.table("exported"), **whose)
    yield cost_of("export", rows, lambda: export.main(place.spark, exporting).schedules)
    looking = forecast.ForecastOptions(
        place.cluster,
        settings.topics,
        (commands,),
        page=str(place.folder / "forecast.html"),
        table=place.table("forecast"),
    )
    yield cost_of("forecast", rows, lambda: forecast.main(place.spark, looking).schedules)


def _pending(commands: str, now: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pending(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            entries = [_entry(number, now) for number in batch.column("id").to_pylist()]
            places = [entry.schedule.source_partition for entry in entries]
            yield rows_of(entries, commands, pa.array(places), PARTITIONS)

    return pending


def _entry(number: int, now: int) -> Entry:
    """Return what a worker stores for a new schedule."""
    key = b"order-%010d" % number
    if number % 20 == 0:
        timing = ("schedule-every", b"1h")
    elif number % 20 == 1:
        timing = ("schedule-cron", b"0 9 * * *")
    else:
        timing = ("schedule-at", b"%d" % (now + DAY_MS * (number % 9_973) // 9_973 + 1))
    headers = [timing, ("schedule-target-topic", TARGET.encode())]
    record = UnsentRecord(key, PAYLOAD, headers, now, partition_for(key, PARTITIONS), number)
    entry = decide(NATIVE.decode(record), None, now, NO_LIMITS).entry
    assert entry is not None, "it is new, and nothing is wrong with it"
    return entry
