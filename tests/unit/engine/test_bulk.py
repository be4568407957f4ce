"""What a bulk command does to each schedule: which it concerns, what becomes of them, and how it is answered."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import pytest

from light_scheduler.engine import check_bulk, concerns, decide_bulk, event_of, result_of
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    After,
    Bounds,
    BulkCommand,
    BulkPart,
    BulkTotal,
    ControlCommand,
    ControlName,
    Entry,
    EventType,
    FixedRate,
    HistoryEvent,
    Once,
    Outcome,
    Progress,
    RescheduleCommand,
    Result,
    Schedule,
    Selection,
    Target,
)
from light_scheduler.model.bulk import lacking

replace = msgspec.structs.replace

AT = 1_767_225_600_000
HOUR = 3_600_000
OFFSET = 100


def entry(id: str = "order-1", *, arrival: int = 3, labels: dict[str, str] | None = None, **progress: Any) -> Entry:
    schedule = Schedule("acme", id, 1, Once(AT), Target("t"), b"x", [], 0, arrival, AT, labels=labels)
    return Entry(schedule, Progress(AT, arrival, **progress))


def control(name: ControlName, selection: Selection | None = None) -> ControlCommand:
    return ControlCommand(name, "acme", "order-*", b"k", 3, OFFSET, AT - 1, selection=selection or Selection("order-"))


def part(selection: Selection, *, after: str = "", tenant: str = "acme", offset: int = OFFSET) -> BulkPart:
    return BulkPart(replace(control("cancel", selection), tenant=tenant, offset=offset), 1, 7, after)


def test_a_bulk_command_changes_a_pending_schedule_whose_id_is_longer_than_the_limit() -> None:
    limits = dataclasses.replace(NO_LIMITS, max_id_bytes=len("order-*"))
    pending = entry("order-12")
    check_bulk(control("pause"), AT - 1, limits)
    assert decide_bulk(control("pause"), pending, AT - 1, limits).outcome is Outcome.PAUSED


@pytest.mark.parametrize(
    ("part", "entry", "concerned"),
    [
        pytest.param(part(Selection("")), entry(), True, id="everything"),
        pytest.param(part(Selection("order-")), entry(), True, id="a prefix"),
        pytest.param(part(Selection("order-1")), entry(), True, id="the whole id"),
        pytest.param(part(Selection("order-1x")), entry(), False, id="more than the id"),
        pytest.param(part(Selection("Order-")), entry(), False, id="another case"),
        pytest.param(part(Selection(""), tenant="other"), entry(), False, id="another tenant"),
        pytest.param(part(Selection("", {"k": "v"})), entry(labels={"k": "v", "l": "w"}), True, id="a label"),
        pytest.param(part(Selection("", {"k": "v", "l": "w"})), entry(labels={"k": "v"}), False, id="one is missing"),
        pytest.param(part(Selection("", {"k": "v"})), entry(labels={"k": "w"}), False, id="another value"),
        pytest.param(part(Selection("", {"k": "v"})), entry(), False, id="no labels"),
        pytest.param(part(Selection("x", {"k": "v"})), entry(labels={"k": "v"}), False, id="label, but not prefix"),
        pytest.param(part(Selection(""), after="order-0"), entry(), True, id="not come to it yet"),
        pytest.param(part(Selection(""), after="order-1"), entry(), False, id="dealt with in its turn"),
        pytest.param(part(Selection(""), after="order-2"), entry(), False, id="past it"),
        pytest.param(part(Selection("")), entry(arrival=OFFSET - 1), True, id="arrived just before"),
        pytest.param(part(Selection("")), entry(arrival=OFFSET + 1), False, id="arrived after"),
        pytest.param(part(Selection(""), offset=0), entry(arrival=-9, bulk_offset=-1), True, id="imported"),
        pytest.param(part(Selection("")), entry(bulk_offset=OFFSET - 1), True, id="another one dealt with it before"),
        pytest.param(part(Selection("")), entry(bulk_offset=OFFSET), False, id="dealt with out of turn"),
        pytest.param(part(Selection("")), entry(bulk_offset=OFFSET + 9), False, id="a later one dealt with it"),
    ],
)
def test_a_schedule_is_concerned_if_it_is_selected_arrived_before_and_was_not_dealt_with(
    part: BulkPart, entry: Entry, concerned: bool
) -> None:
    assert concerns(part, entry) is concerned


@pytest.mark.parametrize(
    ("name", "paused", "outcome", "event"),
    [
        ("cancel", False, Outcome.CANCELLED, EventType.CANCELLED),
        ("pause", False, Outcome.PAUSED, EventType.PAUSED),
        ("pause", True, Outcome.PAUSED, None),
        ("resume", True, Outcome.RESUMED, EventType.RESUMED),
        ("resume", False, Outcome.RESUMED, None),
        ("trigger", False, Outcome.TRIGGERED, EventType.UPDATED),
    ],
)
def test_a_schedule_is_dealt_with_as_by_a_command_of_its_own_and_remembers_it(
    name: ControlName, paused: bool, outcome: Outcome, event: EventType | None
) -> None:
    current = entry(paused=paused)
    decision = decide_bulk(control(name), current, AT - 1, NO_LIMITS)
    assert (decision.outcome, decision.event) == (outcome, event)
    if name == "cancel":
        assert decision.entry is None
        return
    assert decision.entry is not None
    assert decision.entry.progress.bulk_offset == OFFSET
    assert decision.entry.progress.paused is (name == "pause" or (name == "trigger" and paused))
    assert decision.entry.schedule is current.schedule


def reschedule(timing: Any, **fields: Any) -> RescheduleCommand:
    return RescheduleCommand("acme", "*", b"k", timing, 3, OFFSET, AT, selection=Selection(), **fields)


def test_rescheduling_many_counts_from_when_the_command_was_recorded() -> None:
    decision = decide_bulk(reschedule(After(HOUR)), entry(), AT + 5_000, NO_LIMITS)
    assert (decision.outcome, decision.event) == (Outcome.RESCHEDULED, EventType.UPDATED)
    assert decision.entry is not None
    assert (decision.entry.progress.due, decision.entry.progress.arrival) == (AT + HOUR, OFFSET)
    assert (decision.entry.schedule.id, decision.entry.schedule.version) == ("order-1", 2)


def test_what_refuses_a_command_for_many_stays_as_it_is_and_remembers_it() -> None:
    ended = reschedule(FixedRate(HOUR), bounds=Bounds(end=AT + 1))
    decision = decide_bulk(ended, entry(), AT, NO_LIMITS)
    assert (decision.event, decision.outcome) == (None, Outcome.CONFLICT)
    assert decision.entry == entry(bulk_offset=OFFSET)


def test_what_no_schedule_could_be_given_is_refused_at_once() -> None:
    with pytest.raises(InvalidCommand, match="schedule-end"):
        check_bulk(reschedule(FixedRate(HOUR), bounds=Bounds(end=AT + 1)), AT, NO_LIMITS)
    check_bulk(reschedule(FixedRate(HOUR)), AT, NO_LIMITS)
    check_bulk(control("cancel"), AT, NO_LIMITS)


@pytest.mark.parametrize(
    ("command", "outcome", "event"),
    [
        (control("cancel"), Outcome.CANCELLED, EventType.CANCELLED),
        (control("pause"), Outcome.PAUSED, EventType.PAUSED),
        (control("resume"), Outcome.RESUMED, EventType.RESUMED),
        (control("trigger"), Outcome.TRIGGERED, EventType.UPDATED),
        (reschedule(Once(AT)), Outcome.RESCHEDULED, EventType.UPDATED),
    ],
)
@pytest.mark.parametrize("changed", [0, 300])
def test_it_is_answered_and_told_once_with_its_total(
    command: BulkCommand, outcome: Outcome, event: EventType, changed: int
) -> None:
    total = BulkTotal(command, (), changed)
    assert result_of(total) == Result(
        command.name, "acme", command.id, outcome, partition=3, offset=OFFSET, count=changed
    )
    reason = f"{command.name} of many"
    assert event_of(total, AT + 9) == HistoryEvent(
        event, "acme", command.id, None, None, AT + 9, None, None, None, reason, 3, changed
    )


def test_history_says_which_labels_were_meant() -> None:
    command = control("pause", Selection("", {"team": "b", "kind": "a"}))
    assert event_of(BulkTotal(command, ()), AT).reason == "pause of many, labels kind=a,team=b"


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ((3,), "partition 3 has not confirmed the command"),
        ((1, 3), "partitions 1, 3 have not confirmed the command"),
    ],
)
def test_answer_and_history_name_the_partitions_that_have_not_reported(missing: tuple[int, ...], told: str) -> None:
    command = control("pause")
    for total in (BulkTotal(command, missing, 5), lacking(BulkTotal(command, (), 5), missing)):
        assert (result_of(total).reason, result_of(total).count) == (told, 5)
        assert event_of(total, AT).reason == f"pause of many; {told}"
