"""A ledger, and its verdicts without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest
from support.ledger import Ledger, Record

from light_scheduler.model import DEFAULT_TENANT, EventType
from light_scheduler.pipeline.audit.bounds import Bounds, Horizon
from light_scheduler.pipeline.audit.case import Case
from light_scheduler.pipeline.audit.cases import ORDER, cases
from light_scheduler.pipeline.audit.changes import NO_CHANGES, Changes, ToldChange
from light_scheduler.pipeline.audit.claims import NOTHING, Claim
from light_scheduler.pipeline.audit.commands_topics import CommandsTopics
from light_scheduler.pipeline.audit.evidence import (
    COMMAND,
    DEAD_LETTER,
    HISTORY,
    SEEN,
    TRACED,
    Row,
    asked_of,
    encode_asked,
    payload_digest,
    standing_row,
    traced_row,
)
from light_scheduler.pipeline.audit.faults import Fault, FaultKind
from light_scheduler.pipeline.audit.forwarding import Forwarding
from light_scheduler.pipeline.audit.handled import Queue
from light_scheduler.pipeline.audit.header_lists import HeaderLists
from light_scheduler.pipeline.audit.messages import Messages, claims_of, usual_headers
from light_scheduler.pipeline.audit.owners import OtherDialects, native_owner
from light_scheduler.pipeline.audit.stops import TenantStops
from light_scheduler.pipeline.audit.verdict import Verdict, judge
from light_scheduler.wire import decode_dead_letter, decode_history, dialect_named, parse_firing

SECOND, MINUTE = 1_000, 60_000

Verdicts = Callable[..., dict[str, Verdict]]


def order_of(row: Row) -> tuple[Any, ...]:
    """Return what rows are sorted by as those of a schedule are."""
    return row.kind == HISTORY, *(getattr(row, column) for column in ORDER)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def verdicts() -> Verdicts:
    return judged


def judged(
    ledger: Ledger,
    *,
    end: int,
    start: int = 0,
    patience: int = MINUTE,
    whole_since: int = 0,
    targets: Sequence[str] = (),
    imported: Sequence[Row] = (),
    history: Mapping[int, int] | None = None,
    compacted: bool = False,
    written: Mapping[str, Mapping[int, int]] | None = None,
) -> dict[str, Verdict]:
    """Judge every schedule of a ledger, by id; `history` is as of a `Horizon`, `written` as of `Bounds`.

    If commands are `compacted`, they are not whole before its end.
    """
    bounds = Bounds(start, end, patience, written=written or {})
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in [*imported, *evidence(ledger, targets)]:
        if row.kind not in (SEEN, TRACED) or row.timestamp >= bounds.first_read:
            rows[row.tenant, row.id].append(row)
    of_history = ledger.topics[ledger.names.history]
    horizon = Horizon({ledger.target: bounds.first_read}, 0, history, of_history)
    found: dict[str, Verdict] = {}
    queues: dict[str, Queue] = {}
    for (tenant, id), of_one in rows.items():
        of_one.sort(key=order_of)
        for lane, case in cases(of_one, topics_of(ledger, whole_since, compacted=compacted)):
            assert isinstance(case, Case)
            terms = bounds, horizon, stops_of(ledger).of(tenant), forwarding_of(ledger), others_of(ledger)
            verdict = judge(case, ledger.rules, *terms)
            name = f"{id} of lane {lane}" if id in found else id
            found[name], queues[name] = verdict, Queue(case.commands_topic, lane, tenant)
    return {name: with_overlooked(verdict, queues[name], found, queues) for name, verdict in found.items()}


def with_overlooked(
    verdict: Verdict, queue: Queue, verdicts: Mapping[str, Verdict], queues: Mapping[str, Queue]
) -> Verdict:
    """Add the faults that the other schedules of its queue show, as `overlooking` does."""
    carried_out = [each for name, of in verdicts.items() if queues[name] == queue for each in of.carried_out]
    faults = [
        Fault(FaultKind.IGNORED, None, passed.recorded_at, passed.command, passed.detail)
        for passed in verdict.passed_over
        for line, offset in carried_out
        if line.partition == passed.line.partition
        and line.offset < passed.line.offset
        and offset > passed.command.offset
    ]
    return verdict._replace(faults=[*verdict.faults, *dict.fromkeys(faults)])


def judged_in_parts(
    ledger: Ledger, cuts: Sequence[int], patience: int = MINUTE, targets: Sequence[str] = ()
) -> list[tuple[str, Fault]]:
    """Judge a ledger as increments do, one up to each instant; return their faults by id.

    Topics are read one after the other, so what ends a schedule may be read in another increment than what begins it.
    """
    horizon, told, everything = Horizon({ledger.target: 0}, 0), set[tuple[Any, ...]](), evidence(ledger, targets)
    found: list[tuple[str, Fault]] = []
    carried: dict[tuple[str, str], list[Row]] = {}
    before: dict[tuple[str, str], list[Row]] = defaultdict(list)
    handled_by: defaultdict[tuple[str, int], int] = defaultdict(lambda: -1)
    ends = dict.fromkeys(ledger.records, 0)
    for number, cut in enumerate(cuts):
        bounds = Bounds(0, cut, patience, cuts[number - 1] + 1 if number else 0, read_up_to(ends) if number else {})
        starts, ends = ends, {log: _end(ledger, log, cut) if cut < cuts[-1] else 1 << 40 for log in ledger.records}
        new: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in everything:
            if starts[row.topic, row.partition] <= row.offset < ends[row.topic, row.partition]:
                new[row.tenant, row.id].append(row)
        rows = {who: carried.get(who, []) + new[who] for who in sorted(carried.keys() | new.keys())}
        verdicts = {who: judged_rows(ledger, of_one, bounds, horizon) for who, of_one in rows.items()}
        for (tenant, _), of_lanes in verdicts.items():
            for lane, verdict in of_lanes:
                handled = -1 if verdict.handled is None else verdict.handled
                handled_by[tenant, lane] = max(handled_by[tenant, lane], handled)
        carried = {}
        for who, of_one in rows.items():
            if _fresh(who, verdicts[who], handled_by, told):
                of_one = before[who] + new[who]
                verdicts[who] = judged_rows(ledger, of_one, bounds, horizon)
            for fault in _fresh(who, verdicts[who], handled_by, told):
                found.append((who[1], fault))
                told.add(key_of(who, fault))
                if fault.kind is FaultKind.MISSING and not fault.is_told:
                    told.add((*who, fault.due, fault.place))
            if left := carried_over(ledger.names.commands, who, verdicts[who], of_one):
                carried[who] = left
            before[who] += new[who]
        undecided = {(row.tenant, row.lane) for left in carried.values() for row in left if row.kind == COMMAND}
        for queue in handled_by.keys() - undecided:
            del handled_by[queue]
    return found


def read_up_to(ends: Mapping[tuple[str, int], int]) -> dict[str, dict[int, int]]:
    """Return what an audit has read that ended there."""
    read: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for (topic, partition), offset in ends.items():
        read[topic][partition] = offset
    return read


def changes_of(ledger: Ledger) -> Changes:
    """Return what history tells of changes."""
    events = [decode_history(record.value) for record in ledger.of(ledger.names.history)]
    told = [ToldChange(event.tenant, event.at, event.reason or "") for event in events if event.event == "changed"]
    return NO_CHANGES.after(told)


def stops_of(ledger: Ledger) -> TenantStops:
    """Return when tenants were stopped, as history tells it."""
    return TenantStops(changes_of(ledger).stops)


def forwarding_of(ledger: Ledger) -> Forwarding:
    """Return what delay rules do, as history tells it."""
    return Forwarding(chain.from_iterable(changes_of(ledger).routes.values()))


def others_of(ledger: Ledger) -> OtherDialects:
    """Return the commands topics of a ledger, and those beside it, that are in dialects of other schedulers."""
    return OtherDialects.among({each.commands: each.dialect for each in (ledger, *ledger.others)})


def topics_of(ledger: Ledger, whole_since: int = 0, *, compacted: bool = False) -> CommandsTopics:
    """Return the commands topics of a ledger."""
    topics = frozenset({ledger.commands})
    since = dict.fromkeys(topics, whole_since)
    return CommandsTopics(ledger.commands, others_of(ledger), since, topics if compacted else frozenset())


def _fresh(
    who: tuple[str, str],
    judged_now: Sequence[tuple[int, Verdict]],
    handled: Mapping[tuple[str, int], int],
    told: set[Any],
) -> list[Fault]:
    return [
        fault
        for lane, verdict in judged_now
        for fault in verdict.faults
        if key_of(who, fault) not in told and (*who, fault.due, fault.asked_by) not in told
        if fault.kind is not FaultKind.IGNORED or fault.place.offset <= handled.get((who[0], lane), -1)
    ]


def key_of(who: tuple[str, str], fault: Fault) -> tuple[Any, ...]:
    due = None if fault.kind is FaultKind.DUPLICATE else fault.due
    return (*who, fault.kind, due, fault.told_at, None if fault.kind is FaultKind.MISSING else fault.place)


def carried_over(
    topic: str, who: tuple[str, str], judged_now: Sequence[tuple[int, Verdict]], rows: list[Row]
) -> list[Row]:
    if any(verdict.standing is None for _, verdict in judged_now):
        return rows
    left = (
        standing_row(*who, lane, topic, verdict.standing)
        for lane, verdict in judged_now
        if verdict.standing is not None
    )
    return [row for row in left if row is not None]


def judged_rows(ledger: Ledger, rows: list[Row], bounds: Bounds, horizon: Horizon) -> list[tuple[int, Verdict]]:
    rows.sort(key=order_of)
    stops, forwarding = stops_of(ledger).of(rows[0].tenant), forwarding_of(ledger)
    return [
        (lane, judge(case, ledger.rules, bounds, horizon, stops, forwarding, others_of(ledger)))
        for lane, case in cases(rows, topics_of(ledger))
        if isinstance(case, Case)
    ]


def _end(ledger: Ledger, log: tuple[str, int], cut: int) -> int:
    late = {ledger.names.history: 0, ledger.names.commands: 1}.get(log[0], 2) * SECOND
    # A lane that is behind writes after records of later instants: with what it has written these were read, too.
    return max((record.offset + 1 for record in ledger.records[log] if record.timestamp <= cut + late), default=0)


def evidence(ledger: Ledger, targets: Sequence[str] = ()) -> list[Row]:
    names = ledger.names
    rows = [
        *(_command(ledger, record) for record in ledger.of(names.commands)),
        *(row for record in ledger.of(names.history) for row in _told(record)),
        *(row for topic in (*targets, ledger.target) for record in ledger.of(topic) for row in _seen(ledger, record)),
        *(_dead_letter(record) for record in ledger.of(names.dead_letters)),
    ]
    schedules = {(row.tenant, row.id, row.lane) for row in rows if row.kind == COMMAND and not row.id.endswith("*")}
    kinds = (COMMAND, DEAD_LETTER) if not others_of(ledger) else ()  # others take no bulk commands
    many = [row for row in rows if row.kind in kinds and row.id.endswith("*")]
    rows += [
        row._replace(id=id)
        for tenant, id, lane in schedules
        for row in many
        if (tenant, lane) == (row.tenant, row.lane) and id.startswith(row.id.removesuffix("*"))
    ]
    return rows


def _command(ledger: Ledger, record: Record) -> Row:
    tenant, id, asked, origin = asked_of(record, dialect_named(ledger.dialect), ledger.limits)
    return _row(tenant, id, record.partition, COMMAND, record, encode_asked(asked))._replace(key=origin)


def _told(record: Record) -> Iterator[Row]:
    event = decode_history(record.value)
    if event.version is not None or event.event in (EventType.REJECTED, EventType.MOVED):
        yield _row(event.tenant, event.id or "", event.partition, HISTORY, record, record.value)


def _seen(ledger: Ledger, record: Record) -> Iterator[Row]:
    others = others_of(ledger)
    if owner := others.owner(record.key, record.value, record.headers):
        yield traced_row(_row("", "", 0, SEEN, record, record.value), owner, by_sender=record.by_sender)
    elif native_owner(record.headers):
        firing = parse_firing(record)
        yield _row(firing.tenant, firing.id, firing.source_partition, SEEN, record, payload_digest(record.value))


def _dead_letter(record: Record) -> Row:
    letter, _ = decode_dead_letter(record)
    return _row(
        letter.tenant or DEFAULT_TENANT, letter.id or "", letter.source_partition, DEAD_LETTER, record, record.value
    )


def _row(tenant: str, id: str, lane: int, kind: int, record: Record, value: bytes | None) -> Row:
    place = record.topic, record.partition, record.offset, record.timestamp
    return Row(tenant, id, lane, kind, *place, record.key, value, record.headers)


def claim_of_message(row: pa.RecordBatch) -> Claim:
    """Return what a message claims; `row` is its evidence."""
    lists = HeaderLists.of(row.column("headers"))
    is_usual, last = usual_headers(lists)
    if not is_usual.all():
        return NOTHING
    return Claim(*(column[0].as_py() for column in claims_of(Messages(row, lists, last))))
