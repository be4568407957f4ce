"""Audits that continue one another: together they find what one audit of everything finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.ledger import Ledger
from support.tries import tries

from light_scheduler.model import EventType
from light_scheduler.pipeline.audit.evidence import Row
from light_scheduler.pipeline.audit.standing import Series
from light_scheduler.wire import decode_history

from . import conftest
from .conftest import judged, judged_in_parts
from .test_audit import HOUR, MINUTE, PLANTED, SECOND, STEPS, M, again, busy, firing_of, lost, told

__all__ = ["busy"]

WAITING = "a schedule that got lost between two partitions"
"""Until its lane has carried out a later command, its command may just be waiting."""

CUTS = {
    "in the middle of what is due at one time": [M + HOUR + 5],
    "often": [M + 1, M + 30 * MINUTE, M + HOUR, M + HOUR + 3, M + 65 * MINUTE, M + 2 * HOUR - 1],
}


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("name", [name for name in PLANTED if name != WAITING])
def test_increments_find_what_one_audit_finds(name: str, cuts: list[int], busy: Ledger) -> None:
    plant, expected = PLANTED[name]
    plant(busy)
    found = judged_in_parts(busy, [*cuts, M + 2 * HOUR])
    assert [(id, fault.kind.value, fault.due) for id, fault in found] == expected


def test_a_copy_that_comes_when_its_schedule_is_long_over_is_a_duplicate(busy: Ledger) -> None:
    record = firing_of(busy, "once-3")
    busy.append(busy.target, 1, M + 110 * MINUTE, record.key, record.value, record.headers)
    ((id, fault),) = judged_in_parts(busy, [M + 90 * MINUTE, M + 100 * MINUTE, M + 2 * HOUR])
    assert (id, fault.kind.value, fault.place.partition) == ("once-3", "duplicate", 1)


def test_a_fault_is_told_once_though_its_schedule_goes_on(busy: Ledger) -> None:
    lost_at = firing_of(busy, "series", 2)
    busy.remove(lost_at)
    found = judged_in_parts(busy, [M + HOUR, M + 70 * MINUTE, M + 100 * MINUTE, M + 2 * HOUR])
    assert [(id, fault.kind.value, fault.due) for id, fault in found] == [("series", "missing", M + 30 * MINUTE)]


def test_what_was_missing_and_comes_late_is_told_as_both() -> None:
    ledger = Ledger()
    ledger.send("once", M, ("at", M + HOUR))
    ledger.run(M)
    ledger.run(M + 2 * HOUR)
    found = judged_in_parts(ledger, [M + 90 * MINUTE, M + 3 * HOUR])
    assert [fault.kind.value for _, fault in found] == ["missing", "late"]


@pytest.mark.parametrize("headers", [[("at", M + HOUR)], [("every", "1h"), ("max-firings", 1)]], ids=["once", "series"])
def test_what_was_missing_and_is_lost_when_it_comes_late_is_told_once(headers: list[Any]) -> None:
    ledger = Ledger()
    ledger.send("a", M, *headers)
    ledger.run(M)
    ledger.run(M + 110 * MINUTE)
    ledger.remove(firing_of(ledger, "a"))
    found = judged_in_parts(ledger, [M + 90 * MINUTE, M + 3 * HOUR, M + 4 * HOUR])
    assert [(fault.kind.value, fault.due, fault.is_told) for _, fault in found] == [("missing", M + HOUR, False)]


@pytest.mark.parametrize("command", [[], [("command", "reschedule")]], ids=["sent again", "rescheduled"])
def test_what_was_missing_and_asked_for_again_and_is_lost_is_told_again(command: list[Any]) -> None:
    ledger = Ledger()
    ledger.send("once", M, ("at", M + HOUR))
    ledger.run(M)
    ledger.send("once", M + 100 * MINUTE, *command, ("at", M + HOUR))
    ledger.run(M + 100 * MINUTE)
    ledger.remove(firing_of(ledger, "once"))
    found = judged_in_parts(ledger, [M + 90 * MINUTE, M + 3 * HOUR])
    assert [(fault.kind.value, fault.due, fault.is_told) for _, fault in found] == [
        ("missing", M + HOUR, False),
        ("missing", M + HOUR, True),
    ]


def test_what_was_missing_and_sent_again_and_is_missing_again_is_told_again() -> None:
    """Who is told of a missing message may send its command again: it is due at the same time."""
    ledger = Ledger()
    for at in (M, M + 90 * MINUTE):
        ledger.send("once", at, ("at", M + HOUR))
        ledger.run(at)
        ledger.run_until(at + HOUR)
        ledger.remove(firing_of(ledger, "once"))
    found = judged_in_parts(ledger, [M + 70 * MINUTE, M + 2 * HOUR, M + 3 * HOUR])
    assert [(fault.kind.value, fault.at) for _, fault in found] == [
        ("missing", M + HOUR),
        ("missing", M + 90 * MINUTE),
    ]


def test_a_firing_that_history_does_not_tell_of_is_told_once_though_its_schedule_is_paused_and_resumed() -> None:
    ledger = Ledger()
    ledger.send("once", M, ("at", M + HOUR))
    ledger.run(M)
    for minutes, command in ((80, "pause"), (90, "resume")):
        ledger.send("once", M + minutes * MINUTE, ("command", command))
        ledger.run(M + minutes * MINUTE)
    for record in (told(ledger, "once", EventType.FIRED), firing_of(ledger, "once")):
        assert record.timestamp == M + 90 * MINUTE
        ledger.remove(record)
    found = judged_in_parts(ledger, [M + 70 * MINUTE, M + 85 * MINUTE, M + 95 * MINUTE, M + 2 * HOUR])
    assert [(fault.kind.value, fault.at) for _, fault in found] == [("missing", M + HOUR)]


def test_what_was_lost_and_sent_again_and_has_not_fired_is_told_again() -> None:
    ledger = Ledger()
    for at in (M, M + 90 * MINUTE):
        ledger.send("once", at, ("at", M + HOUR))
        ledger.run(at)
        ledger.run_until(at + HOUR)
        ledger.remove(firing_of(ledger, "once"))
    ledger.remove(told(ledger, "once", EventType.FIRED, 1))
    found = judged_in_parts(ledger, [M + 70 * MINUTE, M + 2 * HOUR, M + 3 * HOUR])
    assert [(fault.kind.value, fault.at) for _, fault in found] == [
        ("missing", M + HOUR),
        ("missing", M + 90 * MINUTE),
    ]


def test_what_is_missing_since_a_series_was_resumed_is_told_once() -> None:
    ledger, resumed_at = Ledger(), M + 95 * MINUTE
    ledger.send("series", M, ("every", "10m"))
    ledger.run_until(M + HOUR)
    for at, command in ((M + HOUR, "pause"), (resumed_at, "resume")):
        ledger.send("series", at, ("command", command))
        ledger.run(at)
    ledger.run_until(M + 3 * HOUR)
    for event in (EventType.SKIPPED, EventType.FIRED):  # what was due while it was paused
        lines = [line for line in ledger.of(ledger.names.history) if line.timestamp == resumed_at]
        ledger.remove(next(line for line in lines if decode_history(line.value).event is event))
    ledger.remove(next(record for record in ledger.of(ledger.target) if record.timestamp == resumed_at))
    found = judged_in_parts(ledger, [M + 97 * MINUTE, M + 2 * HOUR, M + 3 * HOUR])
    assert [((fault.due or 0) - M) // MINUTE for _, fault in found if fault.kind == "missing"] == [70, 80, 90]


def test_a_series_leaves_one_row_however_often_it_has_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, left = Ledger(), list[list[Row]]()
    ledger.send("series", M + 1, ("every", "1m"), ("end", M + 90 * MINUTE))
    ledger.send("once", M, ("at", M + 10 * MINUTE))
    ledger.run(M + 1)
    ledger.run_until(M + 2 * HOUR)
    carry = conftest.carried_over

    def noted(*args: Any) -> list[Row]:
        left.append(carry(*args))
        return left[-1]

    monkeypatch.setattr(conftest, "carried_over", noted)
    cuts = [M + 30 * MINUTE + 30 * SECOND, M + HOUR + 30 * SECOND, M + 2 * HOUR]
    assert not judged_in_parts(ledger, cuts)
    assert [len(rows) for rows in left] == [0, 1, 1, 0]
    keys = [Series.decode(rows[0].key or b"") for rows in left if rows]
    assert keys == [Series(MINUTE, M + 1 + 31 * MINUTE), Series(MINUTE, M + 1 + 61 * MINUTE)]


@settings(max_examples=tries(100))
@given(STEPS, st.lists(st.integers(0, 200), max_size=4))
@example(
    [
        (0, False, 1, [("at", M + HOUR)]),
        (1_001, True, None, [("bulk-count", "0:1:1:" + "0" * 32)]),
        (730, False, None, [("command", "reschedule"), ("every", "15m"), ("id", "*")]),
    ],
    [0],
)
def test_increments_of_what_lanes_did_find_nothing(steps: list[Any], cuts: list[int]) -> None:
    ledger, now = Ledger(), M
    for pause, is_down, partition, headers in steps:
        if not is_down:
            ledger.run_until(now + pause)
        now += pause
        ledger.send("a", now, *headers, partition=partition)
    ledger.run(now)
    ledger.run_until(now + HOUR)
    instants = sorted({M + (now + HOUR - M) * cut // 200 for cut in cuts} - {now + HOUR})
    found = judged_in_parts(ledger, [*instants, now + HOUR], patience=24 * HOUR)
    assert not found
    assert not any(verdict.faults for verdict in judged(ledger, end=now + HOUR, patience=24 * HOUR).values())


@settings(max_examples=tries(50))
@given(st.lists(st.integers(0, 120), max_size=4, unique=True), st.sampled_from([lost, again]))
def test_wherever_increments_end_a_fault_is_found_once(cuts: list[int], plant: Any) -> None:
    ledger = Ledger()
    for each in range(20):
        ledger.send(f"once-{each}", M + each * MINUTE, ("at", M + HOUR + each * MINUTE))
    ledger.run_until(M + 2 * HOUR)
    plant(ledger)
    found = judged_in_parts(ledger, [*(M + cut * MINUTE for cut in sorted(cuts) if cut < 120), M + 2 * HOUR])
    assert [id for id, _ in found] == ["once-3"]
