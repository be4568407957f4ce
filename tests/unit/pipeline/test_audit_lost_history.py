"""Messages of which the history may have told in lines that retention has deleted are not called unexpected."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.ledger import Ledger, Record

from light_scheduler.pipeline.audit.faults import FaultKind
from light_scheduler.pipeline.lag import LAG_MS

from .conftest import judged

M = 1_767_225_600_000
"""2026-01-01T00:00Z."""
MINUTE, HOUR = 60_000, 3_600_000
END = M + 4 * HOUR


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    for number in range(30):
        ledger.send(f"s-{number}", M, ("at", M + (number + 1) * 5 * MINUTE))
    ledger.send("rate", M, ("every", "10m"), ("end", M + 3 * HOUR))
    ledger.run(M)
    ledger.run_until(END)
    return ledger


def forget_history(ledger: Ledger, until: int, lanes: int = 2) -> dict[int, int]:
    """Delete what history told until an instant; return since when its partitions are whole."""
    begins = {}
    for lane in range(lanes):
        log = ledger.records[ledger.names.history, lane]
        log[:] = [record for record in log if record.timestamp > until]
        begins[lane] = log[0].timestamp
    return begins


def copied(ledger: Ledger, record: Record, at: int, **headers: int) -> None:
    for name, value in headers.items():
        record = record.with_header(f"schedule-{name.replace('_', '-')}", b"%d" % value)
    ledger.append(record.topic, record.partition, at, record.key, record.value, record.headers)


def of_id(ledger: Ledger, id: bytes) -> Record:
    return next(record for record in ledger.of(ledger.target) if record.header("schedule-id") == id)


def kinds(ledger: Ledger, begins: dict[int, int]) -> dict[str, list[FaultKind]]:
    found = judged(ledger, end=END, whole_since=max(begins.values(), default=0), history=begins)
    return {id: [fault.kind for fault in verdict.faults] for id, verdict in found.items() if verdict.faults}


def test_a_message_older_than_the_history_is_no_fault_and_is_counted(ledger: Ledger) -> None:
    begins = forget_history(ledger, M + HOUR)
    found = judged(ledger, end=END, whole_since=max(begins.values()), history=begins)
    assert [fault for verdict in found.values() for fault in verdict.faults] == []
    gone = [record for record in ledger.of(ledger.target) if record.timestamp <= M + HOUR]
    assert sum(verdict.counts["unjudged"] for verdict in found.values()) >= len(gone) == 18


def test_what_nobody_asked_for_since_then_is_found_and_so_is_a_copy_made_later(ledger: Ledger) -> None:
    like, old = of_id(ledger, b"s-29"), of_id(ledger, b"s-0")
    begins = forget_history(ledger, M + HOUR)
    since = max(begins.values()) + LAG_MS + 1
    copied(ledger, replace(old, key=old.key), M + 3 * HOUR)
    copied(ledger, like, since, due=since, fired_at=since)
    copied(ledger, of_id(ledger, b"s-1"), M + 11 * MINUTE, due=M + 20 * MINUTE, fired_at=M + 11 * MINUTE)
    expected = {"s-0": [FaultKind.UNEXPECTED], "s-29": [FaultKind.UNEXPECTED], "s-1": [FaultKind.EARLY]}
    assert kinds(ledger, begins) == expected


def test_a_lane_whose_history_is_whole_is_judged_by_it(ledger: Ledger) -> None:
    whole = next(number for number in range(30) if ledger.lane_of(f"s-{number}") == 1)
    like = of_id(ledger, b"s-%d" % whole)
    begins = forget_history(ledger, M + HOUR, lanes=1)
    copied(ledger, like, M + 7 * MINUTE, due=M + 7 * MINUTE, fired_at=M + 7 * MINUTE)
    assert kinds(ledger, begins) == {f"s-{whole}": [FaultKind.UNEXPECTED]}


def test_commands_of_whose_effect_nothing_is_left_are_counted(ledger: Ledger) -> None:
    begins = forget_history(ledger, M + HOUR)
    gone = {f"s-{number}" for number in range(12)}
    found = judged(ledger, end=END, whole_since=max(begins.values()), history=begins)
    assert {id: found[id].counts["unjudged"] for id in gone} == dict.fromkeys(gone, 2), "the command and its message"
