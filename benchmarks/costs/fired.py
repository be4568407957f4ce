"""`archive`, `audit` and `report` of schedules that have fired, with commands, history and firings as lanes write
them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from light_scheduler.clock import SystemClock
from light_scheduler.engine import FiringRules
from light_scheduler.kafka.topic_admin import create_topic, create_topics
from light_scheduler.pipeline import archive, audit, report
from light_scheduler.pipeline.job import configured
from light_scheduler.pipeline.schedule_table import IN_PYTHON
from light_scheduler.settings import Settings

from .cost import PARTITIONS, TARGET, Cost, Workspace, cost_of
from .lanes import CHUNK, CHUNK_MS, LIMITS, SERIES, LaneTask


def costs(place: Workspace, rows: int, *, replay: bool = False) -> Iterator[Cost]:
    """Yield the costs of archiving the commands of `rows` schedules, of auditing them, and of the report.

    An audit reads four records per schedule: its command, two history events, and its firing; a report reads two. With
    `replay`, a second audit replays every schedule.
    """
    settings = Settings(broker=f"kafka://{place.bootstrap_servers}", partitions=PARTITIONS)
    create_topics(settings)
    create_topic(place.bootstrap_servers, TARGET, PARTITIONS)
    names = settings.topics
    _live_through(place, settings, rows)
    archiving = archive.ArchiveOptions(place.cluster, [names.commands], place.table("lake"))
    yield cost_of("archive", rows, lambda: archive.main(place.spark, archiving).records)
    auditing = audit.AuditOptions(
        cluster=place.cluster,
        names=names,
        inputs={names.commands: "native"},
        rules=FiringRules(),
        limits=LIMITS,
        page=str(place.folder / "audit.html"),
    )
    yield cost_of("audit", rows, lambda: _audited(place, auditing, rows))
    if replay:
        replaying = replace(auditing, replays_all=True)
        yield cost_of("audit-replay", rows, lambda: _audited(place, replaying, rows))
    reporting = report.ReportOptions(place.cluster, names, page=str(place.folder / "report.html"))
    yield cost_of("report", rows, lambda: report.main(place.spark, reporting).firings - _series(rows))


def _live_through(place: Workspace, settings: Settings, rows: int) -> None:
    chunks = rows // (CHUNK * PARTITIONS) + 2
    task = LaneTask(place.bootstrap_servers, settings.topics, SystemClock().now() - chunks * CHUNK_MS)
    with configured(place.spark, IN_PYTHON):
        lanes = place.spark.range(0, rows, 1, PARTITIONS).mapInArrow(task, "commands bigint").collect()
    assert sum(lane.commands for lane in lanes) == rows, lanes


def _audited(place: Workspace, options: audit.AuditOptions, rows: int) -> int:
    summary = audit.main(place.spark, options)
    assert not summary.failed, summary.lines()
    assert (summary.firings, summary.expanded_by_spark) == (rows + _series(rows), _series(rows))
    return summary.schedules


def _series(rows: int) -> int:
    """Return how many of the schedules fire twice."""
    return -(-rows // SERIES)
