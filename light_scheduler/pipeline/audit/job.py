"""The job: read the topics, judge every schedule, say what was found."""

from __future__ import annotations

from contextlib import ExitStack
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.model import EventType
from light_scheduler.pipeline.job import SILENT, Progress
from light_scheduler.pipeline.replacing import require_replaceable
from light_scheduler.pipeline.topics import require_topic
from light_scheduler.wire import history_key

from . import rates
from .bounds import Bounds
from .increments import audit_since_last
from .options import AuditOptions
from .overlooking import overlooked
from .period import require_period
from .reading import Evidence
from .reporting import reported, without_waiting
from .seeking import lacking
from .sources import Archive, Source, Topics
from .summary import AuditSummary
from .verdict_table import findings, kept, settled

_OF_NO_ID = history_key("", None).decode()
"""Ends the key of each line of history that names no id."""


def main(spark: SparkSession, options: AuditOptions, progress: Progress = SILENT) -> AuditSummary:
    """Audit an application. Raises JobError if its topics cannot be read, or if the audit cannot continue the last."""
    require_replaceable(spark, options.faults)
    if options.archive is None:  # which has no topic without records
        for target in options.targets:
            require_topic(options.cluster, target)
    if options.since_last is not None:
        return audit_since_last(spark, options.since_last, options, progress)
    source: Source = Topics(spark, options.cluster) if options.archive is None else Archive(spark, options.archive)
    with ExitStack() as stack:
        now = options.clock.now() if options.archive is None else _last_recorded(source.read([options.names.history]))
        bounds = Bounds(options.start, now - options.settle if options.end is None else options.end, options.patience)
        if options.archive is None:
            require_period(bounds, is_archive=False)
        evidence = Evidence(spark, source, options, now, stack)
        if options.archive is not None:  # after it is clear that it is one of this application
            require_period(bounds, is_archive=True)
        with progress.phase("Reading commands and history"):
            promised = evidence.promised()
            bounds = evidence.readable(bounds, bounds.start)
            terms = evidence.terms(bounds)
        with progress.phase("Judging"):
            delivered = [kept(table, stack) for table in evidence.delivered(bounds)]
            found, replayed = findings(reduce(DataFrame.unionByName, [promised, *delivered]), terms, stack)
            found = settled(found, stack)
            if (faults := lacking(found, source, stack) if terms.topics.others else None) is not None:
                found = settled(found.unionByName(faults, allowMissingColumns=True), stack)
            if (faults := overlooked(found)) is not None:
                found = settled(found.unionByName(faults, allowMissingColumns=True), stack)
        with progress.phase("Expanding series with Spark"):
            series = kept(rates.series(replayed, terms.topics.compacted), stack)
            expanded = series.count()
            if expanded:
                differing = rates.disagreements(rates.events(replayed, series), series, bounds)
                found = settled(found.unionByName(differing, allowMissingColumns=True), stack)
        with progress.phase("Reporting"):
            faults, waiting = without_waiting(found)
            faults = kept(faults, stack)
            return reported(options, bounds, found, faults, waiting, expanded)


def _last_recorded(history: DataFrame) -> int:
    """Return the instant (UTC epoch ms) of the last line of a schedule's history; 0 if there is none.

    A change of a tenant, a token or a delay rule is no evidence: whoever makes one may have another clock than workers.
    """
    names_an_id = ~F.coalesce(F.col("key").cast("string"), F.lit("")).endswith(_OF_NO_ID)
    event = F.coalesce(F.get_json_object(F.col("value").cast("string"), "$.event"), F.lit(""))
    of_schedules = names_an_id | (event != EventType.CHANGED.value)  # nearly no value is parsed
    last = history.where(of_schedules).agg(F.unix_millis(F.max("timestamp")).alias("at")).first()
    return 0 if last is None or last["at"] is None else int(last["at"])
