"""Schedules that are cleared without a replay: what is found is the same as with one, whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.ledger import Ledger
from support.tries import tries

from light_scheduler.engine import FiringRules
from light_scheduler.model import EventType, Headers, Once, ScheduleCommand, Target
from light_scheduler.pipeline.audit import claims, clearing, messages
from light_scheduler.pipeline.audit.bounds import Bounds, Horizon
from light_scheduler.pipeline.audit.claims import NOTHING, Claim, claim_of_command, claim_of_event
from light_scheduler.pipeline.audit.clearing import COLUMNS
from light_scheduler.pipeline.audit.commands_topics import CommandsTopics
from light_scheduler.pipeline.audit.evidence import (
    COMMAND,
    HISTORY,
    MOVED,
    SCHEMA,
    SEEN,
    Row,
    decode_asked,
    digest_as_headers,
    encode_asked,
    headers_digest,
)
from light_scheduler.pipeline.audit.handled import Queue
from light_scheduler.pipeline.audit.lane_order import offsets_in
from light_scheduler.pipeline.audit.readings import ROWS
from light_scheduler.pipeline.audit.terms import Terms
from light_scheduler.pipeline.audit.verdict_table import (
    CARRIED_OUT,
    COUNT,
    HANDLED,
    LATENESS,
    LEFT,
    MINUTE,
    clear_rows,
    judge_rows,
)
from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.pipeline.schemas import arrow_schema
from light_scheduler.wire import decode_history

from .conftest import claim_of_message, evidence, order_of
from .test_audit import HOUR, PLANTED, STEPS, M, again, busy, firing_of, late, told
from .test_audit import MINUTE as MINUTE_MS

__all__ = ["busy"]

DUE = M + HOUR + 3
"""Of once-3, in which faults are planted."""


def terms_of(ledger: Ledger, *, end: int = M + 2 * HOUR, patience: int = MINUTE_MS, **given: Any) -> Terms:
    defaults: dict[str, Any] = {"rules": ledger.rules, "horizon": Horizon({ledger.target: 0}, 0), "continues": True}
    return Terms(**{**defaults, "bounds": Bounds(0, end, patience), **given}, topics=CommandsTopics(""))


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.tenant, row.id, row.lane, row.kind, *row[4:7]))


def batch_of(rows: Iterable[Row]) -> pa.RecordBatch:
    made = [row._replace(headers=[{"key": name, "value": value} for name, value in row.headers]) for row in rows]  # type: ignore[misc]
    return pa.RecordBatch.from_pylist([row._asdict() for row in made], arrow_schema(SCHEMA))


def claim_of(row: Row) -> Claim:
    """Return what a row of evidence claims."""
    if row.kind == COMMAND:
        return claim_of_command(row, decode_asked(row.value or b""))
    if row.kind == HISTORY:
        return claim_of_event(decode_history(row.value))
    return claim_of_message(batch_of([row])) if row.kind == SEEN else NOTHING


def left_of(rows: Iterable[Row], terms: Terms, size: int) -> tuple[list[Any], list[Row]]:
    """Return the findings of batches of so many rows without a replay, and the rows of schedules that are left."""
    ordered = in_order(rows)
    claimed = [row._asdict() | claim_of(row)._asdict() for row in ordered]
    schema = arrow_schema(ROWS)
    compared = pa.schema([schema.field(name) for name in COLUMNS])
    batches = [
        pa.RecordBatch.from_pylist(claimed[first : first + size], compared) for first in range(0, len(claimed), size)
    ]
    findings = [row for batch in clear_rows(terms)(iter(batches)) for row in batch.to_pylist()]
    left = {(row["tenant"], row["id"]) for row in findings if row["what"] == LEFT}
    others = [row for row in findings if row["what"] != LEFT]
    return others, [row for row in ordered if (row.tenant, row.id) in left]


def found(rows: Iterable[Row], terms: Terms, size: int = 10_000) -> Any:
    """Return all findings; numbers of one kind are added up, and pieces of commands that were carried out united."""
    findings, left = ([], in_order(rows)) if terms.replays_all else left_of(rows, terms, size)
    left.sort(key=lambda row: (row.tenant, row.id, *order_of(row)))
    batches = [batch_of(left[first : first + size]) for first in range(0, len(left), size)]
    findings = findings + [row for batch in judge_rows(terms)(iter(batches)) for row in batch.to_pylist()]
    counted: dict[Any, int] = {}
    others = []
    for row in findings:
        key = row["what"], row["name"], row["at"]
        if row["what"] == HANDLED:
            key = HANDLED, row["topic"], (row["lane"], row["tenant"])
            counted[key] = max(row["offset"], counted.get(key, -1))
        elif row["what"] == CARRIED_OUT:
            told_of = Queue(row["topic"], row["lane"], row["tenant"]), row["number"]
            for line, offset in offsets_in(row["value"]).tolist():
                counted[CARRIED_OUT, told_of, (line, offset)] = 1
        elif row["what"] not in (COUNT, LATENESS, MINUTE):
            others.append(sorted(row.items(), key=str))
        elif row["number"]:
            counted[key] = counted.get(key, 0) + row["number"]
    return counted, sorted(others, key=str)


def cleared(rows: Iterable[Row], terms: Terms, size: int = 10_000) -> int:
    """Return how many schedules need no replay."""
    return sum(row["number"] for row in left_of(rows, terms, size)[0] if row["name"] == "schedules")


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


def source(name: str, value: bytes, place: int) -> Callable[[Ledger], None]:
    """Change where a message says that its command is; its delivery id agrees."""

    def plant(ledger: Ledger) -> None:
        record = firing_of(ledger, "once-3")
        parts = (record.header("schedule-delivery-id") or b"").split(b":")
        delivery_id = b":".join([*parts[:place], value, *parts[place + 1 :]])
        changed = record.with_header(f"schedule-{name}", value).with_header("schedule-delivery-id", delivery_id)
        ledger.change(record, changed)

    return plant


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


def asked_otherwise(**different: Any) -> Callable[[Row], Row]:
    """Change a command."""

    def changed(row: Row) -> Row:
        if row.kind != COMMAND:
            return row
        return row._replace(value=encode_asked(msgspec.structs.replace(decode_asked(row.value or b""), **different)))

    return changed


def of_lane(lane: int, event: EventType) -> Callable[[Row], Row]:
    """Say that another lane wrote a line of history."""

    def changed(row: Row) -> Row:
        is_meant = row.kind == HISTORY and decode_history(row.value).event is event
        return row._replace(lane=lane) if is_meant else row

    return changed


FAULTS: dict[str, Fault] = {
    "no other record": Fault(again),
    "command": Fault(PLANTED["another payload"][0]),
    "due": Fault(changed=asked_otherwise(timing=Once(DUE - 1))),
    "scheduled": line(EventType.SCHEDULED, b"app-target", b"app-other!"),
    "due of scheduled": line(EventType.SCHEDULED, b'"due":%d' % DUE, b'"due":%d' % (DUE + 1)),
    "fired": line(EventType.FIRED, b"app-target", b"app-other!"),
    "due of fired": line(EventType.FIRED, b'"due":%d' % DUE, b'"due":%d' % (DUE + 1)),
    "at of fired": line(EventType.FIRED, b'"at":%d' % DUE, b'"at":%d' % (DUE + 1)),
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

OF_COMMANDS = {
    "not passed on": Fault(changed=moved),
    "plain": Fault(late, asked_otherwise(ttl=1), terms=lambda _: {"patience": HOUR}, id="late"),
}

OF_MESSAGES = {
    "names": Fault(renamed),
    "no more": Fault(changed=ours_among_the_users),
    "firing-id": header("firing-id", b"other@1"),
    "sequence": header("sequence", b"2"),
    "attempt": header("attempt", b"2"),
    "version": header("version", b"2"),
    "delivery-id": header("delivery-id", b"other"),
}

COMPARED = {
    "payload": Fault(PLANTED["another payload"][0]),
    "headers": Fault(PLANTED["another header"][0]),
    "topic": Fault(changed=asked_otherwise(target=Target("another", b"once-3"))),
    "source_topic": Fault(source("source-topic", b"other", 0)),
    "partition": Fault(source("source-partition", b"00", 1)),
    "offset": Fault(source("source-offset", b"77", 2)),
    "key": Fault(PLANTED["another key"][0]),
}
"""The same, of the parts of commands and messages that are compared as one digest."""

OTHERS = {
    **{name: Fault(plant) for name, (plant, _) in PLANTED.items()},
    "a lane with a space": Fault(changed=padded),
    "scheduled by another lane": Fault(changed=of_lane(77, EventType.SCHEDULED)),
    "fired by another lane": Fault(changed=of_lane(77, EventType.FIRED)),
}


ALL = {**FAULTS, **OF_COMMANDS, **OF_MESSAGES, **COMPARED, **OTHERS}


@pytest.mark.parametrize("fault", ALL.values(), ids=ALL)
def test_what_is_wrong_is_found_as_by_a_replay(fault: Fault, busy: Ledger) -> None:
    rows = fault.rows(busy)
    terms = terms_of(busy, **fault.terms(busy))
    assert found(rows, terms) == found(rows, replace(terms, replays_all=True))


MUTANTS = [
    *((FAULTS, clearing.CHECKS, check) for check in clearing.CHECKS),
    *((OF_COMMANDS, claims.OF_COMMANDS, check) for check in claims.OF_COMMANDS),
    *((OF_MESSAGES, messages.CHECKS, check) for check in messages.CHECKS),
    *((COMPARED, claims.COMPARED, part) for part in claims.COMPARED),
]


@pytest.mark.parametrize(("faults", "checks", "check"), MUTANTS, ids=[check for _, _, check in MUTANTS])
def test_without_a_check_its_fault_is_overlooked(
    faults: dict[str, Fault], checks: Any, check: str, busy: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = faults[check]
    rows = fault.rows(busy)
    terms = terms_of(busy, **fault.terms(busy))
    if isinstance(checks, dict):
        monkeypatch.delitem(checks, check)
    else:
        monkeypatch.setattr(claims, "COMPARED", [part for part in checks if part != check])
    assert found(rows, terms) != found(rows, replace(terms, replays_all=True))
