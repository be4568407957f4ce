"""Commands that are read as columns: the same as when they are read one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from support.ledger import Ledger, Record
from support.tries import tries

from light_scheduler.engine import Limits
from light_scheduler.model import Headers
from light_scheduler.pipeline.audit.claims import claim_of_command
from light_scheduler.pipeline.audit.evidence import COMMAND, Row, asked_of, encode_asked
from light_scheduler.pipeline.audit.plain_commands import read_plain
from light_scheduler.pipeline.audit.readings import ROWS
from light_scheduler.pipeline.schemas import HEADERS_TYPE, arrow_schema
from light_scheduler.wire import dialect_named

from .test_audit import HOUR, STEPS, M

RECORDS = arrow_schema(
    f"topic string, partition int, offset bigint, timestamp bigint, key binary, value binary, headers {HEADERS_TYPE}"
)
LIMITS = Limits(1_000, 64, frozenset({"internal"}))
TOPIC = "commands"

PLAIN: Headers = [("schedule-at", b"%d" % (M + HOUR)), ("schedule-target-topic", b"reminders")]


def record(headers: Headers, *, key: bytes | None = b"s-1", value: bytes | None = b"x", offset: int = 70_000) -> Record:
    return Record(TOPIC, 3, offset, M, key, value, headers)


def batch_of(records: list[Record]) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = []
    for each in records:
        headers = [{"key": name, "value": value} for name, value in each.headers] or None
        rows.append({name: getattr(each, name) for name in RECORDS.names[:-1]} | {"headers": headers})
    return pa.RecordBatch.from_pylist(rows, RECORDS)


def check(records: list[Record], limits: Limits = LIMITS) -> int:
    """Compare what is read as columns with what is read one by one, and return how many are."""
    plain, others = read_plain(batch_of(records), [TOPIC], limits, arrow_schema(ROWS))
    assert plain.num_rows + others.num_rows == len(records)
    by_place = {(each.partition, each.offset): each for each in records}
    for row in plain.to_pylist():
        of = by_place[row["partition"], row["offset"]]
        tenant, id, asked, origin = asked_of(of, dialect_named("native"), limits)
        place = of.topic, of.partition, of.offset, of.timestamp
        evidence = Row(tenant, id, of.partition, COMMAND, *place, origin, encode_asked(asked), [])
        expected = {**dict.fromkeys(row), **evidence._asdict(), "headers": None, "asks": "schedule"}
        assert row == expected | claim_of_command(evidence, asked)._asdict()
        assert row["claim"] is not None
    return int(plain.num_rows)


USUAL = {
    "plain": record(PLAIN),
    "with a delay": record([("schedule-after", b"90s"), PLAIN[1]]),
    "with no delay": record([("schedule-after", b"0"), PLAIN[1]]),
    "with headers of its user": record([("a", b"1"), *PLAIN, ("b", None), ("a", b"")]),
    "with many headers": record([*PLAIN, *((f"h{number}", b"x" * number) for number in range(300))]),
    "with an id and a tenant": record(
        [*PLAIN, ("schedule-id", b"other id"), ("schedule-tenant", b"acme")], key=b"\xff"
    ),
    "with an empty payload": record(PLAIN, value=b""),
    "with the longest payload": record(PLAIN, value=b"x" * 1_000),
    "with the longest id": record(PLAIN, key=b"x" * 64),
    "with quotes in its id": record(PLAIN, key=b'a "quoted" \\ id'),
    "of another content type": record([*PLAIN, ("content-type", b"text/plain"), ("content-type", None)]),
}
OTHERS = {
    "without a time": record(PLAIN[1:]),
    "without a target": record(PLAIN[:1]),
    "with two times": record([*PLAIN, PLAIN[0]]),
    "with a time as text": record([("schedule-at", b"2026-01-01T00:00:00Z"), PLAIN[1]]),
    "with a null time": record([("schedule-at", None), PLAIN[1]]),
    "with a time and a delay": record([*PLAIN, ("schedule-after", b"1s")]),
    "with a delay that is none": record([("schedule-after", b"soon"), PLAIN[1]]),
    "with a null delay": record([("schedule-after", None), PLAIN[1]]),
    "with another rule": record([*PLAIN, ("schedule-ttl", b"1s")]),
    "that a lane has passed on": record([*PLAIN, ("schedule-forwarded-from", b"1:2:3")]),
    "with a header that nobody knows": record([*PLAIN, ("schedule-wat", b"1")]),
    "in JSON": record([*PLAIN, ("content-type", b"application/vnd.light-scheduler.command+json")]),
    "without a key": record(PLAIN, key=None),
    "with an empty key": record(PLAIN, key=b""),
    "with a key that is not ASCII": record(PLAIN, key="é".encode()),
    "without a payload": record(PLAIN, value=None),
    "with a payload that is too long": record(PLAIN, value=b"x" * 1_001),
    "with an id that is too long": record(PLAIN, key=b"x" * 65),
    "for many": record([*PLAIN, ("schedule-id", b"s*")]),
    "for a tenant of no legal name": record([*PLAIN, ("schedule-tenant", b"-")]),
    "for a topic of no legal name": record([PLAIN[0], ("schedule-target-topic", b"a b")]),
    "for an internal topic": record([PLAIN[0], ("schedule-target-topic", b"internal")]),
    "without headers": record([]),
}


@pytest.mark.parametrize("name", USUAL)
def test_a_plain_command_is_read_as_columns(name: str) -> None:
    assert check([USUAL[name]]) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_another_command_is_left_to_its_dialect(name: str) -> None:
    assert check([OTHERS[name]]) == 0


def test_each_command_of_a_batch_has_its_own_values() -> None:
    records = [*USUAL.values(), *OTHERS.values()]
    numbered = [
        Record(*(each.topic, each.partition, number), *list(_rest(each))) for number, each in enumerate(records)
    ]
    assert check(numbered) == len(USUAL)


def _rest(of: Record) -> tuple[Any, ...]:
    return of.timestamp, of.key, of.value, of.headers


def test_commands_of_other_topics_are_left() -> None:
    plain, others = read_plain(batch_of([record(PLAIN)]), ["another"], LIMITS, arrow_schema(ROWS))
    assert (plain.num_rows, others.num_rows) == (0, 1)


@settings(max_examples=tries(50))
@given(STEPS)
def test_whatever_is_asked_for_is_read_alike(steps: list[Any]) -> None:
    ledger = Ledger()
    for number, (_, _, partition, headers) in enumerate(steps):
        ledger.send("a", M + number, *headers, partition=partition)
    records = [
        Record(TOPIC, each.partition, each.offset, each.timestamp, each.key, each.value, each.headers)
        for each in ledger.of(ledger.names.commands)
    ]
    check(records, ledger.limits)
