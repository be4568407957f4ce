"""Schedules that are cleared without a replay: what is found is the same as with one, whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger import Ledger
from support.tries import tries

from light_scheduler.engine import FiringRules
from light_scheduler.model import EventType, Headers, Once, ScheduleCommand, Target
from light_scheduler.pipeline.audit.clearing import CHECKS, without_cleared
from light_scheduler.pipeline.audit.evidence import (
    COMMAND,
    HISTORY,
    MOVED,
    SCHEMA,
    Row,
    digest_as_headers,
    encode_asked,
    headers_digest,
)
from light_scheduler.pipeline.audit.judging import COUNT, HANDLED, LATENESS, MINUTE, judge_rows
from light_scheduler.pipeline.audit.terms import Terms
from light_scheduler.pipeline.audit.verdict import Bounds, Horizon
from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.pipeline.schemas import arrow_schema

from .conftest import evidence
from .test_audit import HOUR, PLANTED, STEPS, M, again, busy, firing_of, late, told
from .test_audit import MINUTE as MINUTE_MS

__all__ = ["busy"]

DUE = M + HOUR + 3
"""Of once-3, in which faults are planted."""


def terms_of(ledger: Ledger, *, end: int = M + 2 * HOUR, patience: int = MINUTE_MS, **given: Any) -> Terms:
    defaults: dict[str, Any] = {"rules": ledger.rules, "horizon": Horizon({ledger.target: 0}, 0), "continues": True}
    return Terms(**{**defaults, "bounds": Bounds(0, end, patience), **given}, commands_topic="", whole_since=0)


def batches_of(rows: Iterable[Row], size: int) -> list[pa.RecordBatch]:
    """Return rows as batches of so many."""
    in_order = sorted(rows, key=lambda row: (row.tenant, row.id, row.lane, row.kind, *row[4:7]))
    made = [row._replace(headers=[{"key": name, "value": value} for name, value in row.headers]) for row in in_order]  # type: ignore[misc]
    schema = arrow_schema(SCHEMA)
    return [
        pa.RecordBatch.from_pylist([row._asdict() for row in made[first : first + size]], schema)
        for first in range(0, len(made), size)
    ]


def found(rows: Iterable[Row], terms: Terms, size: int = 10_000) -> Any:
    """Return all findings; numbers of one kind are added up."""
    findings = [row for batch in judge_rows(terms)(iter(batches_of(rows, size))) for row in batch.to_pylist()]
    counted: dict[Any, int] = {}
    others = []
    for row in findings:
        key = row["what"], row["name"], row["at"]
        if row["what"] == HANDLED:
            key = HANDLED, row["topic"], row["lane"]
            counted[key] = max(row["offset"], counted.get(key, -1))
        elif row["what"] not in (COUNT, LATENESS, MINUTE):
            others.append(sorted(row.items(), key=str))
        elif row["number"]:
            counted[key] = counted.get(key, 0) + row["number"]
    return counted, sorted(others, key=str)


def cleared(rows: Iterable[Row], terms: Terms, size: int = 10_000) -> int:
    """Return how many schedules need no replay."""
    return sum(len(each.late) for _, each in without_cleared(iter(batches_of(rows, size)), terms))


# -- plain schedules ---------------------------------------------------------------------------------------------------


def test_plain_schedules_are_cleared_wherever_batches_end(busy: Ledger) -> None:
    terms, rows = terms_of(busy), evidence(busy)
    expected = found(rows, replace(terms, replays_all=True))
    for size in (3, 7, 64):
        assert cleared(rows, terms, size) == 20
        assert found(rows, terms, size) == expected


def test_a_delay_is_cleared_whenever_its_command_was_read(ledger: Ledger) -> None:
    ledger.send("at-once", M, ("after", 0))
    ledger.send("later", M, ("after", "10m"))
    ledger.run(M + MINUTE_MS // 2)
    ledger.run_until(M + HOUR)
    rows, terms = evidence(ledger), terms_of(ledger)
    assert cleared(rows, terms) == 2
    assert found(rows, terms) == found(rows, replace(terms, replays_all=True))
    is_command = [row.id == "later" and row.kind == COMMAND for row in rows]
    other = [row._replace(timestamp=M + 1) if here else row for row, here in zip(rows, is_command, strict=True)]
    assert cleared(other, terms) == 1, "it would be due later"


def test_only_firings_within_the_bounds_are_counted(busy: Ledger) -> None:
    rows = evidence(busy)
    terms = terms_of(busy, bounds=Bounds(M + HOUR + 3, M + 2 * HOUR, MINUTE_MS, M + HOUR + 6))
    counted, _ = found(rows, terms)
    assert counted == found(rows, replace(terms, replays_all=True))[0]
    assert counted[COUNT, "schedules", None] == 23


@settings(max_examples=tries(30))
@given(STEPS, st.integers(1, 30), st.sampled_from([FiringRules(), FiringRules(lookback_minutes=30)]))
def test_what_lanes_did_is_judged_as_by_a_replay(steps: list[Any], size: int, rules: FiringRules) -> None:
    ledger, now = Ledger(rules=rules), M
    for number, (pause, is_down, partition, headers) in enumerate(steps):
        if not is_down:
            ledger.run_until(now + pause)
        now += pause
        ledger.send("a", now, *headers, partition=partition)
        ledger.send(f"b-{number}", now, *headers)
    ledger.run(now)
    ledger.run_until(now + HOUR)
    terms, rows = terms_of(ledger, end=now + HOUR, patience=10 * MINUTE_MS), evidence(ledger)
    assert found(rows, terms, size) == found(rows, replace(terms, replays_all=True))


# -- faults ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A fault of once-3, planted in the topics, in the rows of evidence, or by the terms of the audit."""

    plant: Callable[[Ledger], object] = lambda _: None
    changed: Callable[[Row], Row] = lambda row: row
    terms: Callable[[Ledger], dict[str, Any]] = lambda _: {}
    id: str = "once-3"

    def rows(self, ledger: Ledger) -> list[Row]:
        self.plant(ledger)
        return [self.changed(row) if row.id == self.id else row for row in evidence(ledger)]


def header(name: str, value: bytes) -> Fault:
    """Change a header of the message."""

    def plant(ledger: Ledger) -> None:
        record = firing_of(ledger, "once-3")
        changed = record.with_header(f"schedule-{name}", value)
        assert changed != record
        ledger.change(record, changed)

    return Fault(plant)


def padded(row: Row) -> Row:
    """Spark reads the lane of a message from a header with a space, and the parser of messages does not."""
    partition = [(name, b" " + (value or b"")) for name, value in row.headers if name == "schedule-source-partition"]
    return row._replace(headers=[(name, dict(partition).get(name, value)) for name, value in row.headers])


def line(event: EventType, old: bytes, new: bytes) -> Fault:
    """Change a line of history."""

    def plant(ledger: Ledger) -> None:
        record = told(ledger, "once-3", event)
        assert record.value is not None
        assert old in record.value
        ledger.change(record, replace(record, value=record.value.replace(old, new)))

    return Fault(plant)


def renamed(ledger: Ledger) -> None:
    record = firing_of(ledger, "once-3")
    names = {"schedule-firing-id": "schedule-firing-ids"}
    ledger.change(record, replace(record, headers=[(names.get(name, name), value) for name, value in record.headers]))


def fired_early(ledger: Ledger) -> None:
    """History and message agree."""
    header("fired-at", b"%d" % (DUE - 1)).plant(ledger)
    line(EventType.FIRED, b'"at":%d' % DUE, b'"at":%d' % (DUE - 1)).plant(ledger)


def recorded_at(at: int) -> Callable[[Ledger], None]:
    def plant(ledger: Ledger) -> None:
        record = firing_of(ledger, "once-3")
        ledger.change(record, replace(record, timestamp=at))

    return plant


def ours_among_the_users(row: Row) -> Row:
    """A command whose own headers have a name of the scheduler's, which no reader of the message takes for its own."""
    extra: Headers = [("schedule-sequence", b"1")]
    if row.kind == COMMAND:
        user: Headers = [("user", b"once-3"), ("none", None)]
        command = ScheduleCommand(
            row.tenant,
            row.id,
            b"once-3",
            Once(DUE),
            Target(firing_topic(row), b"once-3"),
            PAYLOAD_DIGEST,
            digest_as_headers(headers_digest([*extra, *user])),
            row.partition,
            row.offset,
            row.timestamp,
        )
        return row._replace(value=encode_asked(command))
    return row if row.kind == HISTORY else row._replace(headers=[*extra, *row.headers])


def firing_topic(row: Row) -> str:
    return row.topic.removesuffix("-commands") + "-target"


PAYLOAD_DIGEST = b"239f59ed55e737c77147cf55ad0c1b030b6d7ee748a7426952f9b852d5a935e5"


def moved(row: Row) -> Row:
    return row._replace(key=MOVED) if row.kind == COMMAND else row


FAULTS: dict[str, Fault] = {
    "no other record": Fault(again),
    "not passed on": Fault(changed=moved),
    "command": Fault(PLANTED["another payload"][0]),
    "scheduled": line(EventType.SCHEDULED, b'"due":%d' % DUE, b'"due":%d' % (DUE + 1)),
    "fired": line(EventType.FIRED, b'"sequence":1', b'"sequence":2'),
    "names": Fault(renamed),
    "no more": Fault(changed=ours_among_the_users),
    "firing-id": header("firing-id", b"other@1"),
    "sequence": header("sequence", b"2"),
    "attempt": header("attempt", b"2"),
    "version": header("version", b"2"),
    "source-topic": header("source-topic", b"other"),
    "source-partition": Fault(changed=padded),
    "source-offset": header("source-offset", b"77"),
    "delivery-id": header("delivery-id", b"other"),
    "fired when due": Fault(fired_early),
    "delivered when due": Fault(recorded_at(DUE - 1)),
    "in time": Fault(late, id="late"),
    "lookback": Fault(late, terms=lambda _: {"rules": FiringRules(lookback_minutes=2), "patience": HOUR}, id="late"),
    "over": Fault(terms=lambda _: {"end": M + HOUR}),
    "target": Fault(
        recorded_at(DUE + LAG_MS + 1), terms=lambda ledger: {"horizon": Horizon({ledger.target: DUE + 1}, 0)}
    ),
}
"""What is wrong, by the only check that finds it."""

OTHERS = {name: Fault(plant) for name, (plant, _) in PLANTED.items()}


@pytest.mark.parametrize("fault", [*FAULTS.values(), *OTHERS.values()], ids=[*FAULTS, *OTHERS])
def test_what_is_wrong_is_found_as_by_a_replay(fault: Fault, busy: Ledger) -> None:
    rows = fault.rows(busy)
    terms = terms_of(busy, **fault.terms(busy))
    assert found(rows, terms) == found(rows, replace(terms, replays_all=True))


@pytest.mark.parametrize("check", CHECKS)
def test_without_a_check_its_fault_is_overlooked(check: str, busy: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[check]
    rows = fault.rows(busy)
    terms = terms_of(busy, **fault.terms(busy))
    monkeypatch.delitem(CHECKS, check)
    assert found(rows, terms) != found(rows, replace(terms, replays_all=True))
