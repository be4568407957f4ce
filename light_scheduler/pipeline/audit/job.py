"""The job: read the topics, judge every schedule, say what was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.errors import JobError
from light_scheduler.model import TopicNames
from light_scheduler.pipeline.adoption import adopting_topics
from light_scheduler.pipeline.job import SILENT, Cluster, Progress
from light_scheduler.pipeline.pages import write_page
from light_scheduler.pipeline.percentiles import percentiles
from light_scheduler.pipeline.schedule_table import COLUMNS as TABLE_COLUMNS
from light_scheduler.pipeline.tables import read_table

from . import gathering, rates
from .faults import FaultKind
from .judging import COUNT, FAULT, HANDLED, LATENESS, MINUTE, Terms, findings
from .sources import Archive, Log, Source, Topics
from .summary import MOST_TOLD, AuditSummary, Figures, FoundFault, audit_page
from .verdict import Bounds, Horizon

MOST_LISTED = 1_000
"""Faults of each kind that a page lists."""

_BARS = 200
_MINUTE_MS = 60_000
_KINDS = [kind.value for kind in FaultKind]


@dataclass(frozen=True)
class Imported:
    """A table that `export` wrote and that was imported into the application; `topics` has new names of topics."""

    table: str
    format: str = "parquet"
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditOptions:
    """What is audited. Instants are UTC epoch ms, durations ms.

    `inputs` maps the commands topics to their dialects; `rules` and `limits` are those of the workers. Without `end` it
    is `settle` before now: what is newer may not be visible in every topic yet. What is later than `patience` is late,
    counted from when only the scheduler was in its way. `targets` are read besides those that history names. With
    `archive` all is read from that table, up to `settle` before the last line of history in it. `imported` is what the
    application began with. `page` is where the report goes, `faults` the folder of a Parquet table of all faults.
    """

    cluster: Cluster
    names: TopicNames
    inputs: Mapping[str, str]
    rules: FiringRules
    limits: Limits
    start: int = 0
    end: int | None = None
    patience: int = 60_000
    settle: int = 10_000
    targets: tuple[str, ...] = ()
    archive: str | None = None
    imported: Imported | None = None
    page: Path | None = None
    faults: str | None = None
    clock: Clock = field(default_factory=SystemClock)


def main(spark: SparkSession, options: AuditOptions, progress: Progress = SILENT) -> AuditSummary:
    """Audit an application. Raises JobError if its topics cannot be read."""
    source: Source = Topics(spark, options.cluster) if options.archive is None else Archive(spark, options.archive)
    with ExitStack() as stack:
        now = options.clock.now() if options.archive is None else _last_told(source.read([options.names.history]))
        bounds = Bounds(options.start, now - options.settle if options.end is None else options.end, options.patience)
        evidence = _Evidence(spark, source, options, now, stack)
        with progress.phase("Reading commands and history"):
            promised = evidence.promised()
            terms = evidence.terms(bounds)
        with progress.phase("Judging"):
            found = _kept(findings(reduce(DataFrame.unionByName, [promised, *evidence.delivered()]), terms), stack)
            found.count()
        with progress.phase("Expanding series with Spark"):
            series = _kept(rates.series(promised), stack)
            expanded = series.count()
            if expanded:
                found = _kept(found.unionByName(rates.disagreements(promised, series, bounds)), stack)
        with progress.phase("Reporting"):
            faults, waiting = _without_waiting(found)
            faults = _kept(faults, stack)
            if options.faults is not None:
                _as_told(faults).write.mode("overwrite").parquet(options.faults)
            return _reported(options, bounds, found, faults, waiting, expanded)


def _last_told(history: DataFrame) -> int:
    """Return the instant (UTC epoch ms) of the last line of history; 0 if there is none."""
    last = history.agg(F.unix_millis(F.max("timestamp")).alias("at")).first()
    return 0 if last is None or last["at"] is None else int(last["at"])


class _Evidence:
    """Reads an application's topics, those first whose records promise what those after them must hold."""

    def __init__(self, spark: SparkSession, source: Source, options: AuditOptions, now: int, stack: ExitStack) -> None:
        self._spark = spark
        self._source = source
        self._options = options
        self._now = now
        self._stack = stack
        self._targets: Sequence[str] = ()
        self._inputs = list(options.inputs)
        self._history, self._dead_letters = options.names.history, options.names.dead_letters
        self._logs = source.logs([*self._inputs, self._history, self._dead_letters])
        for topic in (*self._inputs, self._history):
            if topic not in self._logs:
                raise JobError(f"there is no topic {topic}: is {options.names.app_id} the id of the application?")

    def promised(self) -> DataFrame:
        """Return history and commands."""
        options = self._options
        history = _kept(gathering.history(self._source.read([self._history])), self._stack)
        # History first: all that it tells of is among the commands that are read after it, and in the targets.
        named = history.where("target is not null").select("target").distinct().collect()
        self._targets = sorted({row.target for row in named} | set(options.targets))
        self._logs = {**self._logs, **self._source.logs(self._targets)}
        commands = gathering.commands(self._source.read(self._inputs), options.inputs, options.limits)
        if options.imported is not None:
            commands = commands.unionByName(self._imported(options.imported))
        commands = _kept(commands, self._stack)
        if not commands.where("prefix is not null").isEmpty():
            commands = commands.unionByName(_kept(gathering.for_many(commands), self._stack))
        return history.unionByName(commands)

    def _imported(self, imported: Imported) -> DataFrame:
        table = read_table(self._spark, imported.table, imported.format, schema=TABLE_COLUMNS)
        if "record" not in table.columns:
            raise JobError(f"{imported.table} was not written by export: it has no column record")
        sources = [row.commands_topic for row in table.select("commands_topic").distinct().collect()]
        return gathering.imported(table, adopting_topics(sources, self._inputs, imported.topics), imported.topics)

    def terms(self, bounds: Bounds) -> Terms:
        """Return what holds for all schedules."""
        whole_since = max(self._whole_since(topic) for topic in (*self._inputs, self._history))
        dead_letters = self._whole_since(self._dead_letters) if self._dead_letters in self._logs else None
        there = [topic for topic in self._targets if topic in self._logs and not self._logs[topic].is_compacted]
        horizon = Horizon({topic: self._whole_since(topic) for topic in there}, dead_letters)
        return Terms(self._options.rules, bounds, horizon, self._inputs[0], whole_since)

    def delivered(self) -> list[DataFrame]:
        """Return what is in the target topics and among the dead letters, as far as they are there."""
        there = [topic for topic in self._targets if topic in self._logs]
        tables = []
        if there:
            tables.append(gathering.firings(self._source.read(there, self._options.start or None)))
        if self._dead_letters in self._logs:
            tables.append(gathering.dead_letters(self._source.read([self._dead_letters])))
        return tables

    def _whole_since(self, topic: str) -> int:
        """Return since when (UTC epoch ms) a topic has all that was written to it."""
        log: Log = self._logs[topic]
        if not log.truncated:
            return 0
        left = self._source.read([topic]).where(F.col("partition").isin(*log.truncated)).groupBy("partition")
        firsts = [row.first for row in left.agg(F.unix_millis(F.min("timestamp")).alias("first")).collect()]
        return max(firsts) if len(firsts) == len(log.truncated) else self._now


def _kept(table: DataFrame, stack: ExitStack) -> DataFrame:
    """Return a table that is computed once."""
    stack.callback(table.unpersist)
    return table.persist(StorageLevel.DISK_ONLY)


def _without_waiting(found: DataFrame) -> tuple[DataFrame, int]:
    """Return the faults, and how many commands have had no effect because no worker has come to them yet."""
    of_lane = ["topic", "partition"]
    handled = found.where(F.col("what") == HANDLED).groupBy(*of_lane).agg(F.max("offset").alias("handled"))
    faults = found.where(F.col("what") == FAULT).join(F.broadcast(handled), of_lane, "left")
    is_waiting = (F.col("name") == FaultKind.IGNORED.value) & (F.col("offset") > F.coalesce("handled", F.lit(-1)))
    return faults.where(~is_waiting), faults.where(is_waiting).count()


def _as_told(faults: DataFrame) -> DataFrame:
    return faults.withColumnRenamed("name", "kind").select(*FoundFault.__dataclass_fields__)


def _reported(
    options: AuditOptions, bounds: Bounds, found: DataFrame, faults: DataFrame, waiting: int, expanded: int
) -> AuditSummary:
    counted = found.where(F.col("what") == COUNT).groupBy("name").agg(F.sum("number").alias("number")).collect()
    counts = {row.name: row.number for row in counted}
    by_kind = {row.name: row["count"] for row in faults.groupBy("name").count().collect()}
    in_order = Window.partitionBy("name").orderBy("at", "tenant", "id", "due")
    first = faults.withColumn("place", F.row_number().over(in_order)).where(F.col("place") <= MOST_LISTED)
    listed = [FoundFault(**row.asDict()) for row in _as_told(first).collect()]
    listed.sort(key=lambda fault: (_KINDS.index(fault.kind), fault.at, fault.tenant, fault.id))
    lateness = _numbers(found, LATENESS)
    summary = AuditSummary(
        start=bounds.start,
        end=bounds.end,
        schedules=counts.get("schedules", 0),
        firings=counts.get("delivered", 0),
        unjudged=counts.get("unjudged", 0),
        ambiguous=counts.get("ambiguous", 0),
        moved=counts.get("moved", 0),
        unreadable=counts.get("unreadable", 0),
        waiting=waiting,
        expanded_by_spark=expanded,
        lateness_ms=percentiles(lateness),
        fault_counts={kind: by_kind[kind] for kind in _KINDS if kind in by_kind},
        faults=listed[:MOST_TOLD],
    )
    if options.page is not None:
        minutes = (
            found.where(F.col("what") == MINUTE).agg(F.min("at").alias("first"), F.max("at").alias("last")).first()
        )
        span = 0 if minutes is None or minutes["first"] is None else minutes["last"] - minutes["first"]
        width = (span // _BARS // _MINUTE_MS + 1) * _MINUTE_MS
        figures = Figures(lateness, _numbers(found, MINUTE, width), _numbers(faults, FAULT, width), width)
        write_page(options.page, audit_page(summary, figures, listed))
    return summary


def _numbers(found: DataFrame, what: str, width: int = 1) -> list[tuple[int, int]]:
    """Return how many there are of something by `at`, in steps of a width (ms)."""
    of_kind = found.where(F.col("what") == what).groupBy((F.floor(F.col("at") / width) * width).alias("at"))
    return sorted((int(row.at), int(row.number)) for row in of_kind.agg(F.sum("number").alias("number")).collect())
