"""Verdicts as a table: schedules are cleared, or their rows of evidence go through `judge`, where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain, groupby, islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (everybody's name for it)

from light_scheduler.engine.firing_rules import MINUTE_MS
from light_scheduler.pipeline.schemas import arrow_schema

from .bounds import Bounds
from .case import Case
from .cases import ORDER, cases
from .clearing import COLUMNS as COMPARED
from .clearing import Cleared, without_cleared
from .deliveries import lateness_step
from .evidence import ANY_LANE, HISTORY, Row, batch_of, evidence_rows, standing_row
from .faults import RecordId
from .handled import Queue
from .header_lists import Numbers
from .lane_order import CarriedOutCommands, PassedOver
from .terms import Terms
from .verdict import Verdict, judge

FAULT, COUNT, LATENESS, MINUTE, HANDLED, LEFT = "fault", "count", "lateness", "minute", "handled", "left"
SOUGHT, PASSED_OVER, CARRIED_OUT = "sought", "passed over", "carried out"
STANDS, OPEN, UNJUDGED = "stands", "open", "unjudged"

FINDINGS = (
    "what string, name string, tenant string, id string, lane int, due bigint, at bigint, topic string, "
    "partition int, offset bigint, number bigint, detail string, key binary, value binary"
)
"""A row is a FAULT (`key` is when history told of a firing that is missing, as text, and `value` then the place of its
command, as `topic:partition:offset`); or a `number` of what is counted:
COUNT by `name`, firings by LATENESS (`at`, in ms) and by MINUTE (`at`, UTC epoch ms); or HANDLED: up to which `offset`
a lane has surely carried out the commands of a tenant; or LEFT: a schedule that is still to be replayed; or SOUGHT: a
message that should be in a target topic (`detail`), by the digest of its content (`key`), with `value` as in a FAULT.

Commands and lines, by partition of the history (`number`): a command was PASSED_OVER at the line with the offset `due`;
or lines tell which commands of a lane and a tenant were CARRIED_OUT (`value` is a piece of `lane_order`).

For the next audit, if one is to continue this one, a schedule STANDS as `value` says (`key` is its series, `at` the
timestamp of its evidence); or it is OPEN, and all its rows are needed again; or UNJUDGED, and its commands say why.
"""

MOST_CARRIED_OUT = 100_000
"""Commands that were carried out of which a task keeps the offsets before it passes them on."""

_ROWS = 2_000
_SCHEDULE = ("tenant", "id")


def findings(evidence: DataFrame, terms: Terms, stack: ExitStack) -> tuple[DataFrame, DataFrame]:
    """Return what is found in evidence, columns FINDINGS, and the evidence that was replayed for it.

    Most schedules need no replay, so first a few columns of their evidence are brought together, and only then all of
    the evidence of those that are left.
    """
    if terms.replays_all:
        return _replayed(evidence, terms), evidence
    cleared = kept(_by_schedule(evidence.select(*COMPARED)).mapInArrow(clear_rows(terms), FINDINGS), stack)
    cleared.count()  # so that Spark knows how few are left
    left = cleared.where(F.col("what") == LEFT).select(*_SCHEDULE)
    rest = settled(evidence.join(left, list(_SCHEDULE), "left_semi"), stack)
    return cleared.where(F.col("what") != LEFT).unionByName(_replayed(rest, terms)), rest


def _replayed(evidence: DataFrame, terms: Terms) -> DataFrame:
    in_order = _by_schedule(evidence.select(*Row._fields), F.col("kind") == HISTORY)
    return in_order.mapInArrow(judge_rows(terms), FINDINGS)


def kept(table: DataFrame, stack: ExitStack) -> DataFrame:
    """Return a table that is computed once."""
    stack.callback(table.unpersist)
    return table.persist(StorageLevel.DISK_ONLY)


def settled(table: DataFrame, stack: ExitStack) -> DataFrame:
    """Return a table that is computed now, and once.

    On one machine Spark forgets how it came about: it would plan each question to it on all of that, which takes longer
    than most answers. On a cluster executors are lost, and then it has to know.
    """
    if (table.sparkSession.conf.get("spark.master", None) or "").partition("[")[0] == "local":
        return table.localCheckpoint(eager=True, storageLevel=StorageLevel.DISK_ONLY)
    found = kept(table, stack)
    found.count()
    return found


def _by_schedule(evidence: DataFrame, *first: Column) -> DataFrame:
    """Return rows sorted by schedule; those of one by other columns `first`."""
    order: tuple[Column | str, ...] = (*_SCHEDULE, *first, *ORDER)
    # Ids begin alike, and Spark sorts by a prefix first: that of a hash tells nearly all schedules apart.
    return evidence.repartition(*_SCHEDULE).sortWithinPartitions(F.xxhash64(*_SCHEDULE), *order)


def clear_rows(terms: Terms) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what makes findings of sorted rows of evidence, of their columns COMPARED, without a replay."""
    schema = arrow_schema(FINDINGS)

    def cleared(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally = _Tally()
        for left, clear in without_cleared(batches, terms):
            tally.add_cleared(clear, terms.bounds)
            if pieces := list(tally.carried_out()):
                yield batch_of(pieces, schema)
            given = {"what": pa.repeat(LEFT, left.num_rows), **dict(zip(left.schema.names, left.columns, strict=True))}
            columns = [given.get(field.name, pa.nulls(left.num_rows, field.type)) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
        yield batch_of(list(tally.rows()), schema)

    return cleared


def judge_rows(terms: Terms) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what makes findings of rows of evidence, sorted by ORDER, by a replay of every schedule."""
    schema = arrow_schema(FINDINGS)

    def judged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _judged(chain.from_iterable(map(evidence_rows, batches)), terms)
        while some := list(islice(rows, _ROWS)):
            yield batch_of(some, schema)

    return judged


def _judged(evidence: Iterator[Row], terms: Terms) -> Iterator[tuple[Any, ...]]:
    """Yield findings."""
    tally = _Tally()
    for (tenant, id), of_one in groupby(evidence, key=lambda row: (row.tenant, row.id)):
        left = _Left(tenant, id)
        for lane, case in cases(of_one, terms.topics):
            tally.counts["schedules"] += lane != ANY_LANE
            if not isinstance(case, Case):
                tally.counts[case] += 1
                left.is_unjudged = True
                continue
            stops = terms.stops.of(tenant)
            verdict = judge(
                case, terms.rules, terms.bounds, terms.horizon, stops, terms.forwarding, terms.topics.others
            )
            tally.add(verdict, Queue(case.commands_topic, lane, tenant))
            left.add(lane, case.commands_topic, verdict)
            for fault in verdict.faults:
                named = fault.kind.value, tenant, id, lane, fault.due, fault.at
                told_at = None if fault.told_at is None else b"%d" % fault.told_at
                yield FAULT, *named, *fault.place, 1, fault.detail, told_at, _shown(fault.asked_by)
            for sought in verdict.sought:
                when = sought.due, sought.at
                asked = _shown(sought.asked_by)
                yield SOUGHT, None, tenant, id, lane, *when, *sought.place, 1, sought.topic, sought.content, asked
            for command, at, line in verdict.passed_over:
                detail = PassedOver(command, at, line).detail
                yield PASSED_OVER, None, tenant, id, lane, line.offset, at, *command, line.partition, detail, None, None
            yield from tally.carried_out()
        if terms.continues:
            yield from left.rows()
    yield from tally.rows()


def _shown(place: RecordId | None) -> bytes | None:
    return None if place is None else b"%b:%d:%d" % (place.topic.encode(), place.partition, place.offset)


class _Left:
    """The rest of a schedule for the next audit."""

    def __init__(self, tenant: str, id: str) -> None:
        self._whose = tenant, id
        self._standing: list[Row] = []
        self._is_open = False
        self.is_unjudged = False

    def add(self, lane: int, topic: str, verdict: Verdict) -> None:
        """Add the rest that a lane leaves."""
        if verdict.standing is None:
            self._is_open = True
        elif row := standing_row(*self._whose, lane, topic, verdict.standing):
            self._standing.append(row)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield it as findings."""
        if self.is_unjudged or self._is_open:
            what = UNJUDGED if self.is_unjudged else OPEN
            yield what, None, *self._whose, None, None, None, None, None, None, 1, None, None, None
            return
        for row in self._standing:
            place = row.topic, row.partition, row.offset
            yield STANDS, None, *self._whose, row.lane, None, row.timestamp, *place, 1, None, row.key, row.value


class _Tally:
    """Counts of a partition of the evidence: a few rows instead of one for each firing."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._lateness: Counter[int] = Counter()
        self._minutes: Counter[int] = Counter()
        self._handled: dict[Queue, int] = {}
        self._carried_out = CarriedOutCommands()

    def add(self, verdict: Verdict, queue: Queue) -> None:
        self.counts.update(verdict.counts)
        self.counts["delivered"] += verdict.deliveries.number
        self._minutes.update(verdict.deliveries.minutes)
        self._lateness.update(verdict.deliveries.lateness)
        if verdict.handled is not None:
            self._handled[queue] = max(verdict.handled, self._handled.get(queue, -1))
        carried_out = iter(verdict.carried_out)
        while some := list(islice(carried_out, _ROWS)):  # arrays are smaller than these
            for partition in {line.partition for line, _ in some}:
                offsets = [(line.offset, offset) for line, offset in some if line.partition == partition]
                self._carried_out.add(queue, partition, np.array(offsets))

    def add_cleared(self, cleared: Cleared, bounds: Bounds) -> None:
        self.counts["schedules"] += len(cleared.fired_at)
        counted = [bounds.count(at) for at in cleared.fired_at.tolist()]
        self.counts["delivered"] += sum(counted)
        self._minutes.update(_frequencies(cleared.fired_at[counted] // MINUTE_MS * MINUTE_MS))
        for late, number in _frequencies(cleared.late[counted]).items():
            self._lateness[lateness_step(late)] += number
        for queue, offset in cleared.handled.items():
            self._handled[queue] = max(offset, self._handled.get(queue, -1))
        for (queue, partition), offsets in cleared.carried_out.items():
            self._carried_out.add(queue, partition, offsets)

    def carried_out(self, least: int = MOST_CARRIED_OUT) -> Iterator[tuple[Any, ...]]:
        """Remove and yield the rows for commands that were carried out, if there are so many."""
        for (topic, lane, tenant), partition, offsets in self._carried_out.pieces(least):
            place = None, None, topic, lane, None
            yield CARRIED_OUT, None, tenant, None, lane, *place, partition, None, None, offsets

    def rows(self) -> Iterator[tuple[Any, ...]]:
        yield from self.carried_out(0)
        for name, number in self.counts.items():
            yield COUNT, name, None, None, None, None, None, None, None, None, number, None, None, None
        for what, numbers in ((LATENESS, self._lateness), (MINUTE, self._minutes)):
            for at, number in numbers.items():
                yield what, None, None, None, None, None, at, None, None, None, number, None, None, None
        for (topic, lane, tenant), offset in self._handled.items():
            yield HANDLED, None, tenant, None, lane, None, None, topic, lane, offset, 1, None, None, None


def _frequencies(numbers: Numbers) -> dict[int, int]:
    values, counts = np.unique(numbers, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
