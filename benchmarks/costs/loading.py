"""`load` of one-shots, and for comparison a worker that accepts what was loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator

from light_scheduler.bench.looks import follow, span_of
from light_scheduler.bench.progress import Progress
from light_scheduler.clock import SystemClock
from light_scheduler.devkit.worker_process import WorkerProcess
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.pipeline import load
from light_scheduler.settings import Settings

from .cost import PARTITIONS, PAYLOAD, TARGET, WORKER, Cost, Workspace, cost_of

AT = 1_900_000_000_000


def costs(place: Workspace, rows: int, *, ingest: bool) -> Iterator[Cost]:
    """Yield the cost of a load, and with `ingest` that of a worker that accepts the same commands."""
    settings = Settings(
        broker=f"kafka://{place.bootstrap_servers}",
        partitions=PARTITIONS,
        data_dir=place.folder / "state",
        web_port=free_port(),
    )
    create_topics(settings)
    create_topic(place.bootstrap_servers, TARGET, PARTITIONS)
    table = place.table("commands")
    _write(place, table, rows)
    options = load.LoadOptions(
        table=table,
        cluster=place.cluster,
        commands_topic=settings.topics.commands,
        marks_topic=settings.topics.loads,
        name=str(rows),
    )
    yield cost_of("load", rows, lambda: load.main(place.spark, options).sent)
    if ingest:
        yield _ingest(settings, place, rows)


def _ingest(settings: Settings, place: Workspace, rows: int) -> Cost:
    """Measure from the first look with an accepted command to the first look with the last one."""
    worker = WorkerProcess(settings, place.folder / "worker.log")
    worker.start()
    try:
        looks = follow(worker, lambda seen: seen.carried_out, rows, Progress())
    finally:
        worker.stop()
    span = span_of(looks, lambda seen: seen.accepted)
    assert looks[-1].accepted == rows, f"the worker accepted {looks[-1].accepted} of {rows}"
    cpu_s, load = round(span.cpu_s or 0.0, 2), round(os.getloadavg()[0], 2)
    return Cost(WORKER, rows, round(span.seconds, 3), round(span.per_s), cpu_s, 0, load, SystemClock().now())


def _write(place: Workspace, path: str, rows: int) -> None:
    table = place.spark.range(0, rows, 1, PARTITIONS).selectExpr(
        "format_string('order-%010d', id) as id",
        f"{AT} + id as at",
        f"'{TARGET}' as target_topic",
        f"'{PAYLOAD.decode()}' as payload",
    )
    table.write.parquet(path)
