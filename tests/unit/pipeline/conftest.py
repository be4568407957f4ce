"""A ledger, and its verdicts without Spark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import pytest
from support.ledger import Ledger, Record

from light_scheduler.model import DEFAULT_TENANT, EventType
from light_scheduler.pipeline.audit.evidence import (
    BURIED,
    COMMAND,
    SEEN,
    TOLD,
    Row,
    asked_of,
    cases,
    encode_asked,
    payload_digest,
)
from light_scheduler.pipeline.audit.verdict import Bounds, Case, Horizon, Verdict, judge
from light_scheduler.wire import decode_dead_letter, decode_history, dialect_named, parse_firing

MINUTE = 60_000

Verdicts = Callable[..., dict[str, Verdict]]


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
) -> dict[str, Verdict]:
    """Judge every schedule of a ledger, by id."""
    rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
    seen = [_seen(record) for topic in targets for record in ledger.of(topic)]
    for row in [*imported, *seen, *evidence(ledger)]:
        rows[row.tenant, row.id].append(row)
    horizon = Horizon({ledger.target: 0}, 0)
    found: dict[str, Verdict] = {}
    for (_, id), of_one in rows.items():
        of_one.sort(key=lambda row: (row.lane, row.kind, row.topic, row.partition, row.offset))
        for lane, case in cases(of_one, ledger.names.commands, whole_since):
            assert isinstance(case, Case)
            found[f"{id} of lane {lane}" if id in found else id] = judge(
                case, ledger.rules, Bounds(start, end, patience), horizon
            )
    return found


def evidence(ledger: Ledger) -> list[Row]:
    names = ledger.names
    rows = [
        *(_command(ledger, record) for record in ledger.of(names.commands)),
        *(row for record in ledger.of(names.history) for row in _told(record)),
        *(_seen(record) for record in ledger.of(ledger.target)),
        *(_buried(record) for record in ledger.of(names.dead_letters)),
    ]
    schedules = {(row.tenant, row.id, row.lane) for row in rows if row.kind == COMMAND and not row.id.endswith("*")}
    many = [row for row in rows if row.kind == COMMAND and row.id.endswith("*")]
    rows += [
        row._replace(id=id)
        for tenant, id, lane in schedules
        for row in many
        if (tenant, lane) == (row.tenant, row.lane) and id.startswith(row.id.removesuffix("*"))
    ]
    return rows


def _command(ledger: Ledger, record: Record) -> Row:
    tenant, id, asked, origin = asked_of(record, dialect_named("native"), ledger.limits)
    return _row(tenant, id, record.partition, COMMAND, record, encode_asked(asked))._replace(key=origin)


def _told(record: Record) -> Iterator[Row]:
    event = decode_history(record.value)
    if event.version is not None or event.event in (EventType.REJECTED, EventType.MOVED):
        yield _row(event.tenant, event.id or "", event.partition, TOLD, record, record.value)


def _seen(record: Record) -> Row:
    firing = parse_firing(record)
    return _row(firing.tenant, firing.id, firing.source_partition, SEEN, record, payload_digest(record.value))


def _buried(record: Record) -> Row:
    letter, _ = decode_dead_letter(record)
    return _row(letter.tenant or DEFAULT_TENANT, letter.id or "", letter.source_partition, BURIED, record, record.value)


def _row(tenant: str, id: str, lane: int, kind: int, record: Record, value: bytes | None) -> Row:
    place = record.topic, record.partition, record.offset, record.timestamp
    return Row(tenant, id, lane, kind, *place, record.key, value, record.headers)
