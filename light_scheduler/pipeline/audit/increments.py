"""An audit that continues where the last one ended.

It judges the rows of a day and those that were carried over (`standing`). Most schedules are clean, and nothing else is
needed. What is wrong with one that is not may depend on what it was before, as with a second copy of a message: it is
judged once more, with everything that was ever read of it, if that is all still there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.pipeline.exclusion import only_audit
from light_scheduler.pipeline.job import Progress
from light_scheduler.pipeline.schemas import spark_types
from light_scheduler.pipeline.tables import located
from light_scheduler.pipeline.topics import require_topic

from . import rates
from .bounds import Bounds
from .changes import NO_CHANGES
from .continuing import ContinuedTopics
from .evidence import COMMAND, IMPORTED
from .gathering import CARRIED, COLUMNS
from .handled import Handled, Queue
from .options import AuditOptions
from .overlooking import overlooked
from .owners import OtherDialects
from .period import require_past
from .reading import Evidence
from .reporting import reported, without_waiting
from .seeking import lacking
from .sources import Source
from .state import AuditState
from .summary import AuditSummary
from .terms import Terms
from .verdict_table import HANDLED, OPEN, STANDS, UNJUDGED, findings, kept
from .watermark import Watermark

_WHOSE = ["tenant", "id"]


class Judged(NamedTuple):
    """Rows of evidence, those of them that were replayed, the findings in them, the number of series that Spark
    expanded, and faults not yet reported.
    """

    rows: DataFrame
    replayed: DataFrame
    found: DataFrame
    expanded: int
    faults: DataFrame
    waiting: int


def audit_since_last(spark: SparkSession, path: str, options: AuditOptions, progress: Progress) -> AuditSummary:
    """Audit what has come since the last audit of the state at a path. Raises JobError if it cannot continue."""
    path, topic = located(spark, path), next(iter(options.inputs))
    require_topic(options.cluster, topic)
    with only_audit(options.cluster, options.names.app_id, path, topic):
        return _continue(spark, AuditState(spark, path), options, progress)


def _continue(spark: SparkSession, state: AuditState, options: AuditOptions, progress: Progress) -> AuditSummary:
    last = state.last()
    run = 1 if last is None else last.run + 1
    now = options.clock.now()
    bounds = Bounds(0, now - options.settle if options.end is None else options.end, options.patience)
    names = options.names
    own = {*options.inputs, names.history, names.dead_letters}
    require_past(bounds, now)
    if last is not None:
        last.check(names.app_id, list(options.inputs), bounds.end)
        bounds = bounds._replace(counted=last.end + 1, read=last.read)
        options = replace(options, targets=tuple({*options.targets, *(last.read.keys() - own)}))
    with ExitStack() as stack:
        source = ContinuedTopics(spark, options.cluster, last, own)
        evidence = Evidence(spark, source, options, now, stack, NO_CHANGES if last is None else last.changes)
        # What is behind these ends is of no line of the history that is read.
        others = OtherDialects.among(options.inputs)
        written = source.written_after(names.history, options.targets) if others else {}
        carried = None if last is None else state.carried(last.run)
        with progress.phase("Reading commands and history"):
            promised = evidence.promised(carried)
            bounds = evidence.readable(bounds, bounds.counted)
            terms = replace(evidence.terms(bounds), continues=True)
        with progress.phase("Reading what was delivered"):
            new = state.keep_evidence(run, reduce(DataFrame.unionByName, [promised, *evidence.delivered(bounds)]))
            terms = replace(terms, bounds=bounds._replace(written=source.read_as_far(written)))
        with progress.phase("Judging"):
            rows = new if carried is None else _united(new, carried)
            # Records without those before them explain less than the entry that was carried over.
            looks_up = last is not None and state.has_all_evidence(run)
            first_terms = _suspecting(terms, source) if looks_up else terms
            judged = _judged(rows, source, first_terms, state, last, "first", stack)
            if looks_up and not judged.faults.isEmpty():
                judged = _judged(_whole(judged, state.evidence(run)), source, terms, state, last, "second", stack)
        with progress.phase("Reporting"):
            summary = reported(options, bounds, judged.found, judged.faults, judged.waiting, judged.expanded)
        with progress.phase("Saving the state"):
            state.carry(run, _left(judged))
            state.keep_faults(run, judged.faults)
            watermark = Watermark(
                run,
                names.app_id,
                tuple(options.inputs),
                bounds.end,
                source.reached(),
                {**({} if last is None else last.whole_since), **evidence.whole_since},
                _handled(judged.found, state.carried(run)),
                evidence.changes,
            )
            state.finish(watermark)
            return summary


def _suspecting(terms: Terms, source: ContinuedTopics) -> Terms:
    """Return terms by which every topic counts as read before.

    Another scheduler's messages are faults then, until all is looked up that was ever read of their schedules.
    """
    topics: dict[str, Mapping[int, int]] = {topic: {} for topic, _ in source.reached().offsets}
    return replace(terms, bounds=terms.bounds._replace(read={**topics, **terms.bounds.read}))


def _judged(
    rows: DataFrame,
    source: Source,
    terms: Terms,
    state: AuditState,
    last: Watermark | None,
    name: str,
    stack: ExitStack,
) -> Judged:
    found, replayed = findings(rows, terms, stack)
    found = kept(found, stack)
    series = kept(rates.series(replayed, terms.topics.compacted), stack)
    parts = [found]
    if (faults := lacking(found, source, stack) if terms.topics.others else None) is not None:
        parts.append(faults)
    if (faults := overlooked(found)) is not None:
        parts.append(faults)
    if expanded := series.count():
        parts.append(rates.disagreements(rates.events(replayed, series), series, terms.bounds))
    if last is not None and last.handled:
        before = [(HANDLED, *queue, offset) for queue, offset in last.handled.items()]
        columns = "what string, topic string, partition int, tenant string, offset bigint"
        parts.append(rows.sparkSession.createDataFrame(before, columns))
    # Written and read back: what comes next is planned on a table, and not on all that led to it.
    found = state.scratch(f"{name}-findings", reduce(_united, parts))
    faults, waiting = without_waiting(found)
    unreported = faults if last is None else state.unreported(last.run, faults)
    return Judged(rows, replayed, found, expanded, state.scratch(f"{name}-faults", unreported), waiting)


def _united(some: DataFrame, others: DataFrame) -> DataFrame:
    return some.unionByName(others, allowMissingColumns=True)


def _whole(judged: Judged, evidence: DataFrame) -> DataFrame:
    """Return the rows that were judged, and for schedules with faults all that was ever read of them."""
    faulty = judged.faults.select(*_WHOSE).distinct()
    return judged.rows.join(faulty, _WHOSE, "left_anti").unionByName(
        evidence.join(faulty, _WHOSE, "left_semi"), allowMissingColumns=True
    )


def _left(judged: Judged) -> DataFrame:
    """Return the evidence that the next audit needs."""
    of_kind = {what: judged.found.where(F.col("what") == what).select(*_WHOSE) for what in (OPEN, UNJUDGED)}
    replayed = judged.replayed.select(*spark_types(COLUMNS))
    whole = replayed.join(of_kind[OPEN], _WHOSE, "left_semi")
    commands = replayed.where(F.col("kind") <= COMMAND).join(of_kind[UNJUDGED], _WHOSE, "left_semi")
    return _standing(judged.found).unionByName(whole).unionByName(commands)


def _standing(found: DataFrame) -> DataFrame:
    """Return the rows of schedules that stand as they are, as evidence."""
    types = spark_types(COLUMNS)
    series = F.split(F.col("key").cast("string"), ":")
    made = {
        "kind": F.lit(IMPORTED),
        "timestamp": F.col("at"),
        "headers": F.array(),
        "asks": F.lit(CARRIED),
        "interval": series[0],
        "start": series[1],
        "prefix": F.lit(None),
        "target": F.lit(None),
    }
    columns = [made.get(name, F.col(name)).cast(types[name]).alias(name) for name in types]
    return found.where(F.col("what") == STANDS).select(*columns)


def _handled(found: DataFrame, carried: DataFrame) -> Handled:
    """Return how far those queues were handled that have commands among what is `carried` over.

    Of others it makes no difference any more: all that was read is decided, and what comes is behind it.
    """
    undecided = carried.where(F.col("kind") == COMMAND).select("topic", F.col("lane").alias("partition"), "tenant")
    handled = found.where(F.col("what") == HANDLED).join(undecided.distinct(), list(Queue._fields), "left_semi")
    rows = handled.groupBy(*Queue._fields).agg(F.max("offset").alias("offset")).collect()
    return {Queue(row.topic, row.partition, row.tenant): row.offset for row in rows}
