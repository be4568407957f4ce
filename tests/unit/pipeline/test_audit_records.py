"""Records as evidence: what is read in columns is what is read one by one, and what it claims."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from support.ledger import Ledger, Record
from support.tries import tries

from light_scheduler.model import Requester
from light_scheduler.pipeline.audit.claims import CHANGED, claim_of_event
from light_scheduler.pipeline.audit.evidence import COMMAND, HISTORY, SEEN, Row, payload_digest
from light_scheduler.pipeline.audit.readings import ROWS, Reading
from light_scheduler.pipeline.schemas import HEADERS_TYPE, arrow_schema
from light_scheduler.wire import change_record, decode_history

from .conftest import claim_of_message, evidence
from .test_audit import HOUR, STEPS, M, busy, firing_of

__all__ = ["busy"]

RECORDS = arrow_schema(
    "topic string, partition int, offset bigint, timestamp bigint, timestampType int, key binary, value binary, "
    f"headers {HEADERS_TYPE}"
)
SCHEMA = arrow_schema(ROWS)


def batch_of(records: Iterable[Record]) -> pa.RecordBatch:
    rows: list[dict[str, Any]] = []
    for each in records:
        headers = [{"key": name, "value": value} for name, value in each.headers] or None
        rows.append({name: getattr(each, name) for name in RECORDS.names[:-1]} | {"headers": headers})
    return pa.RecordBatch.from_pylist(rows, RECORDS)


def read(reading: Reading, records: Iterable[Record]) -> list[dict[str, Any]]:
    """Return the rows that a reading makes of records, in the order of the records."""
    rows = [row for batch in reading.rows(batch_of(records), SCHEMA) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def row_of(row: dict[str, Any]) -> Row:
    headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
    return Row(**{name: row[name] for name in Row._fields} | {"headers": headers})


def expected(ledger: Ledger, kind: int) -> list[Row]:
    found = [row for row in evidence(ledger) if row.kind == kind]
    return sorted(found, key=lambda row: (row.topic, row.partition, row.offset))


@settings(max_examples=tries(50))
@given(STEPS)
def test_what_lanes_wrote_is_read_alike(steps: list[Any]) -> None:
    ledger, now = Ledger(), M
    for number, (pause, _, partition, headers) in enumerate(steps):
        ledger.run_until(now + pause)
        now += pause
        ledger.send("a", now, *headers, partition=partition)
        ledger.send(f"b-{number}", now, *headers)
    ledger.run_until(now + HOUR)

    lines = read(Reading("history"), ledger.of(ledger.names.history))
    seen = read(Reading("messages"), ledger.of(ledger.target))

    assert [row_of(row)._replace(key=None) for row in lines] == [
        row._replace(key=None, headers=[]) for row in expected(ledger, HISTORY)
    ]
    for row in lines:
        event = decode_history(row["value"])
        assert (row["claim"], row["due"], row["at"]) == claim_of_event(event)
        assert row["target"] == (event.target_topic if event.event == "fired" else None)
    assert [row_of(row) for row in seen] == expected(ledger, SEEN)


def test_a_command_that_a_lane_has_passed_on_is_as_old_as_when_it_was_sent(ledger: Ledger) -> None:
    home = ledger.lane_of("a")
    ledger.send("a", M, ("every", "10m"), partition=1 - home)
    ledger.run(M + 25)
    rows = read(Reading("commands", {ledger.names.commands: "native"}, ledger.limits), ledger.of(ledger.names.commands))
    assert {row["lane"]: (row["timestamp"], row["key"]) for row in rows} == {
        1 - home: (M, None),
        home: (M, b"%d:0" % (1 - home)),
    }


def test_plain_messages_and_their_commands_claim_the_same(busy: Ledger) -> None:
    inputs = {busy.names.commands: "native"}
    commands = read(Reading("commands", inputs, busy.limits), busy.of(busy.names.commands))
    claims = {row["id"]: row["claim"] for row in commands if row["kind"] == COMMAND}
    seen = {row["id"]: row["claim"] for row in read(Reading("messages"), busy.of(busy.target))}
    for number in range(20):
        assert seen[f"once-{number}"] == claims[f"once-{number}"] is not None


UNUSUAL = {
    "with a header behind": lambda record: replace(record, headers=[*record.headers, ("behind", b"1")]),
    "with headers in another order": lambda record: replace(record, headers=record.headers[::-1]),
    "with a null tenant behind": lambda record: replace(record, headers=[*record.headers, ("schedule-tenant", None)]),
    "with a long lane": lambda record: record.with_header("schedule-source-partition", b" +000000000"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_a_message_with_unusual_headers_is_evidence_that_claims_nothing(name: str, busy: Ledger) -> None:
    record = UNUSUAL[name](firing_of(busy, "once-3"))
    (row,) = read(Reading("messages"), [record])
    assert (row["tenant"], row["id"], row["lane"], row["claim"]) == ("default", "once-3", row["lane"], None)
    assert row["value"] == payload_digest(record.value)
    assert row_of(row).headers == record.headers


FOREIGN = {
    "without headers": lambda record: replace(record, headers=[]),
    "without a tenant": lambda record: replace(
        record, headers=[header for header in record.headers if header[0] != "schedule-tenant"]
    ),
    "of a tenant that is no text": lambda record: record.with_header("schedule-tenant", b"\xff"),
    "of an id that is no text": lambda record: record.with_header("schedule-id", b"\xff"),
    "of a lane that is no number": lambda record: record.with_header("schedule-source-partition", b"one"),
    "of a lane beyond all": lambda record: record.with_header("schedule-source-partition", b"9" * 10),
    "sent again": lambda record: replace(record, headers=[*record.headers, ("schedule-redriven-from", b"0-1")]),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_message_that_is_none_of_the_schedulers_is_left_out(name: str, busy: Ledger) -> None:
    genuine = firing_of(busy, "once-4")
    records = [FOREIGN[name](firing_of(busy, "once-3")), genuine]
    (row,) = read(Reading("messages"), records)
    assert (row["id"], row["claim"] is None) == ("once-4", False)


LINES: dict[str, tuple[bytes | None, bool]] = {
    "null": (None, False),
    "no JSON": (b"x", False),
    "no text": (b"\xff", False),
    "of no schedule": (b'{"event":"fired","at":1}', False),
    "of an event of a newer version": (b'{"event":"melted","tenant":"default","id":"a","version":1}', True),
    "of such an event without a version": (b'{"event":"melted","tenant":"default","id":"a"}', False),
    "of a schedule that moved": (b'{"event":"moved","tenant":"default","id":"a"}', True),
    "of a lane beyond all": (b'{"event":"melted","tenant":"default","version":1,"partition":2147483648}', False),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_that_this_version_cannot_read_is_evidence_if_it_says_whose_it_is(name: str) -> None:
    value, is_evidence = LINES[name]
    rows = read(Reading("history"), [Record("history", 0, 0, M, None, value, [])])
    assert [(row["tenant"], row["claim"]) for row in rows] == [("default", None)] * is_evidence


CHANGES = {
    ("shop", "tenant shop: active -> paused"): True,
    ("shop", "rules of tenant shop: weight none -> 3"): False,
    ("", "delay rule later added: orders -5s-> reminders"): True,
    ("shop", "delay rule later added: orders -5s-> reminders"): False,
    ("", "token ops added"): False,
}


@pytest.mark.parametrize(("tenant", "reason"), CHANGES)
def test_a_change_is_read_if_it_bears_on_schedules(tenant: str, reason: str) -> None:
    key, value = change_record(tenant, reason, Requester("ops", ""), M + 1)
    rows = read(Reading("history"), [Record("history", 0, 0, M, key, value, [])])
    read_as = [(row["tenant"], row["id"], row["claim"], row["at"]) for row in rows]
    assert read_as == [(tenant, "", CHANGED + reason.encode(), M + 1)] * CHANGES[tenant, reason]


def test_messages_claim_among_others_what_each_claims_alone(busy: Ledger) -> None:
    strange = UNUSUAL["with a header behind"](firing_of(busy, "once-3"))
    rows = [*read(Reading("messages"), busy.of(busy.target)), *read(Reading("messages"), [strange])]
    alone = [claim_of_message(pa.RecordBatch.from_pylist([row], SCHEMA)) for row in rows]
    assert alone == [(row["claim"], row["due"], row["at"]) for row in rows]


def test_a_reading_is_an_option_of_a_source(busy: Ledger) -> None:
    reading = Reading("commands", {"a": "native"}, busy.limits)
    assert Reading.decode(reading.encode()) == reading
