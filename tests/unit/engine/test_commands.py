from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from light_scheduler.durations import distance, format_duration
from light_scheduler.engine import Decision, Limits, decide
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    FIRE_BACKLOG,
    FIRE_PAST,
    NOW,
    REJECT_PAST,
    After,
    Awaited,
    Command,
    ControlCommand,
    ControlName,
    Entry,
    EventType,
    Once,
    Outcome,
    Progress,
    ReplyTo,
    Schedule,
    ScheduleCommand,
    Target,
    Timing,
)

AT = 1_767_225_600_000
HOUR = 3_600_000
LAST_MS_OF_9999 = 253_402_300_799_999
LIMITS = Limits(
    max_payload_bytes=100,
    max_id_bytes=16,
    internal_topics=frozenset({"app-history"}),
    answers_only=frozenset({"app-answers"}),
    commands_only=frozenset({"app-commands"}),
)

PENDING = Entry(
    Schedule("acme", "a", 3, Once(AT + HOUR), Target("old"), b"old", [("h", b"1")], 0, 7, AT - HOUR),
    Progress(due=AT + HOUR, arrival=7),
)


def schedule(**fields: Any) -> ScheduleCommand:
    given_fields = {
        "tenant": "acme",
        "id": "a",
        "key": b"k",
        "timing": Once(AT + 2 * HOUR),
        "target": Target("new", b"tk", 1),
        "payload": b"new",
        "headers": [("n", None)],
        "partition": 3,
        "offset": 42,
        "recorded_at": AT,
        **fields,
    }
    return ScheduleCommand(**given_fields)


def cancel(**fields: Any) -> ControlCommand:
    return ControlCommand(
        **{"name": "cancel", "tenant": "acme", "id": "a", "key": b"k", "partition": 3, "offset": 42, **fields}
    )


def decided(command: Command, current: Entry | None = None, now: int = AT) -> Decision:
    return decide(command, current, now, LIMITS)


def refusal(command: Command, now: int = AT, limits: Limits = LIMITS) -> InvalidCommand:
    with pytest.raises(InvalidCommand) as caught:
        decide(command, None, now, limits)
    return caught.value


def due_of(command: ScheduleCommand, now: int = AT) -> int:
    entry = decided(command, now=now).entry
    assert entry is not None
    return entry.progress.due


# -- the same id again ------------------------------------------------------------------------------------------------


def test_a_new_id_is_scheduled_as_version_1_with_everything_the_command_says() -> None:
    command = schedule(ttl=60_000, priority=5, labels={"team": "billing"})
    decision = decided(command, now=AT + 9)
    assert decision == Decision(Outcome.SCHEDULED, decision.entry, EventType.SCHEDULED, decision.entry)
    assert decision.entry == Entry(
        Schedule(
            tenant="acme",
            id="a",
            version=1,
            trigger=Once(AT + 2 * HOUR),
            target=Target("new", b"tk", 1),
            payload=b"new",
            headers=[("n", None)],
            source_partition=3,
            source_offset=42,
            accepted_at=AT + 9,
            ttl=60_000,
            priority=5,
            labels={"team": "billing"},
            home_key=b"k",
        ),
        Progress(due=AT + 2 * HOUR, arrival=42, sequence=1, attempt=1),
    )


def test_replace_puts_the_whole_new_definition_in_place_of_the_old_one() -> None:
    decision = decided(schedule(), PENDING)
    fresh = decided(schedule()).entry
    assert fresh is not None
    assert decision.entry == Entry(msgspec.structs.replace(fresh.schedule, version=4), fresh.progress)
    assert (decision.outcome, decision.event, decision.subject) == (
        Outcome.UPDATED,
        EventType.UPDATED,
        decision.entry,
    )


def test_keep_changes_nothing_and_answers_with_the_schedule_that_is_kept() -> None:
    assert decided(schedule(on_conflict="keep"), PENDING) == Decision(Outcome.KEPT, PENDING, None, PENDING)


def test_fail_changes_nothing_and_answers_conflict_with_the_reason() -> None:
    decision = decided(schedule(on_conflict="fail"), PENDING)
    assert (decision.outcome, decision.entry, decision.event, decision.subject) == (
        Outcome.CONFLICT,
        PENDING,
        None,
        PENDING,
    )
    assert decision.reason == "a schedule with this id already exists"


@pytest.mark.parametrize("on_conflict", ["replace", "keep", "fail"])
def test_without_a_schedule_of_the_id_every_conflict_rule_schedules(on_conflict: str) -> None:
    assert decided(schedule(on_conflict=on_conflict)).outcome is Outcome.SCHEDULED


def test_cancel_forgets_the_schedule_and_answers_with_what_it_was() -> None:
    assert decided(cancel(recorded_at=AT), PENDING) == Decision(Outcome.CANCELLED, None, EventType.CANCELLED, PENDING)


def test_a_cancel_says_what_it_came_too_late_for() -> None:
    progress = msgspec.structs.replace(PENDING.progress, awaited=(Awaited(AT, 1, 1, AT + HOUR, AT + 5),))
    delivered = msgspec.structs.replace(PENDING, progress=progress)
    decision = decided(cancel(recorded_at=AT), delivered)
    assert (decision.outcome, decision.entry) == (Outcome.CANCELLED, None)
    assert decision.reason == (
        f"too late for what was delivered and not completed, which was due at {AT}: it is not delivered again"
    )


def test_a_replacement_says_which_firings_it_gives_up() -> None:
    awaited = (Awaited(AT, 1, 2, AT + HOUR, AT + 5), Awaited(AT + 9, 2, 1, AT + HOUR, AT + 9))
    delivered = msgspec.structs.replace(PENDING, progress=msgspec.structs.replace(PENDING.progress, awaited=awaited))
    decision = decided(schedule(), delivered)
    assert (decision.outcome, decision.event) == (Outcome.UPDATED, EventType.UPDATED)
    assert decision.reason == (
        f"replaced: gives up what was delivered and not completed, which was due at {AT}, {AT + 9}"
    )


def test_a_replacement_of_what_waits_for_no_completion_has_no_reason() -> None:
    assert decided(schedule(), PENDING).reason is None


def test_cancel_of_an_unknown_id_is_not_found_and_no_event() -> None:
    decision = decided(cancel(recorded_at=AT))
    assert (decision.outcome, decision.entry, decision.event, decision.subject) == (
        Outcome.NOT_FOUND,
        None,
        None,
        None,
    )
    assert decision.reason


# -- versions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (schedule(expected_version=3), Outcome.UPDATED),
        (schedule(expected_version=3, on_conflict="keep"), Outcome.KEPT),
        (schedule(expected_version=3, on_conflict="fail"), Outcome.CONFLICT),
        (cancel(recorded_at=AT, expected_version=3), Outcome.CANCELLED),
    ],
)
def test_with_the_version_it_expects_a_command_is_carried_out(command: Command, outcome: Outcome) -> None:
    assert decided(command, PENDING).outcome is outcome


@pytest.mark.parametrize("expected", [1, 2, 4])
@pytest.mark.parametrize("make", [schedule, cancel])
def test_with_another_version_than_it_expects_a_command_is_a_conflict_and_changes_nothing(
    make: Any, expected: int
) -> None:
    assert decided(make(recorded_at=AT, expected_version=expected), PENDING) == Decision(
        Outcome.CONFLICT, PENDING, None, PENDING, f"version {expected} was expected; it is 3"
    )


@pytest.mark.parametrize("on_conflict", ["replace", "keep", "fail"])
def test_a_schedule_that_expects_a_version_of_what_is_not_there_is_a_conflict(on_conflict: str) -> None:
    decision = decided(schedule(expected_version=1, on_conflict=on_conflict))
    assert (decision.outcome, decision.entry, decision.event) == (Outcome.CONFLICT, None, None)
    assert decision.reason is not None
    assert "no such schedule" in decision.reason


def test_a_cancel_that_expects_a_version_of_what_is_not_there_is_not_found() -> None:
    assert decided(cancel(recorded_at=AT, expected_version=1)).outcome is Outcome.NOT_FOUND


# -- when it is due ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timing", "recorded_at", "now", "due"),
    [
        pytest.param(Once(AT), AT - HOUR, AT - HOUR, AT, id="an instant is due then"),
        pytest.param(Once(AT), AT, AT + HOUR, AT, id="an instant in the past stays what it was"),
        pytest.param(After(5_000), AT, AT, AT + 5_000, id="a delay counts from the record"),
        pytest.param(After(5_000), AT - HOUR, AT, AT - HOUR + 5_000, id="time spent in the log is not added"),
        pytest.param(After(5_000), AT + HOUR, AT, AT + 5_000, id="a sender's clock ahead does not add to it"),
        pytest.param(After(5_000), -1, AT, AT + 5_000, id="a record without a timestamp counts from now"),
        pytest.param(After(5_000), 0, AT, AT + 5_000, id="a timestamp of 0 is none"),
        pytest.param(NOW, AT, AT + 3, AT, id="now is when it was recorded"),
        pytest.param(NOW, AT + HOUR, AT, AT, id="now is never in the future"),
        pytest.param(NOW, -1, AT, AT, id="now without a timestamp is now"),
        pytest.param(After(LAST_MS_OF_9999 - AT), AT, AT, LAST_MS_OF_9999, id="the last ms of 9999"),
    ],
)
def test_a_schedule_is_first_due(timing: Timing, recorded_at: int, now: int, due: int) -> None:
    command = schedule(timing=timing, recorded_at=recorded_at)
    assert due_of(command, now) == due
    entry = decided(command, now=now).entry
    assert entry is not None
    assert entry.schedule.trigger == Once(due)


def test_a_delay_that_ends_after_the_year_9999_is_refused() -> None:
    assert refusal(schedule(timing=After(LAST_MS_OF_9999 - AT + 1))).field == "schedule-after"


@pytest.mark.parametrize(
    ("on_past", "late", "is_accepted"),
    [
        pytest.param(None, 100 * HOUR, True, id="fire takes any past"),
        pytest.param(REJECT_PAST, 0, True, id="reject takes the very instant"),
        pytest.param(REJECT_PAST, 1, False, id="reject refuses 1 ms"),
        pytest.param(REJECT_PAST, -HOUR, True, id="reject takes the future"),
        pytest.param(5_000, 5_000, True, id="a grace takes its last ms"),
        pytest.param(5_000, 5_001, False, id="a grace refuses the ms after it"),
        pytest.param(0, 0, True, id="a grace of 0 takes the very instant"),
        pytest.param(0, 1, False, id="a grace of 0 refuses 1 ms"),
    ],
)
@pytest.mark.parametrize("wait_in_log", [0, 24 * HOUR])
def test_the_past_is_judged_by_when_the_command_was_recorded(
    on_past: int | None, late: int, is_accepted: bool, wait_in_log: int
) -> None:
    command = schedule(timing=Once(AT - late), recorded_at=AT, on_past=on_past)
    now = AT + wait_in_log
    if is_accepted:
        assert due_of(command, now) == AT - late
    else:
        error = refusal(command, now)
        assert error.field == "schedule-at"
        grace = f"; the grace is {format_duration(on_past)}" if on_past is not None and on_past >= 0 else ""
        assert error.reason == f"was {distance(late)} in the past when it arrived{grace}"


@pytest.mark.parametrize(
    ("late", "waited", "is_accepted"),
    [(999, 0, True), (1_000, 0, False), (HOUR, 1_000, False), (HOUR, 1_001, True), (100 * HOUR, HOUR, True)],
)
def test_a_backlog_is_fired_although_it_was_past_when_it_was_recorded(
    late: int, waited: int, is_accepted: bool
) -> None:
    command = schedule(timing=Once(AT - late), recorded_at=AT, on_past=FIRE_BACKLOG)
    if is_accepted:
        assert due_of(command, AT + waited) == AT - late
    else:
        assert refusal(command, AT + waited).reason == f"was {distance(late)} in the past when it arrived"


def test_how_late_a_command_is_is_said_by_its_largest_units() -> None:
    command = schedule(timing=Once(AT - HOUR - 61_264), recorded_at=AT, on_past=90_000)
    assert refusal(command).reason == "was 1h 1m in the past when it arrived; the grace is 90s"


def test_a_senders_clock_that_is_ahead_does_not_make_the_future_past() -> None:
    command = schedule(timing=Once(AT + 1_000), recorded_at=AT + HOUR, on_past=REJECT_PAST)
    assert due_of(command, AT) == AT + 1_000


def test_without_a_timestamp_the_past_is_judged_by_the_schedulers_clock() -> None:
    assert refusal(schedule(timing=Once(AT - 1), recorded_at=-1, on_past=REJECT_PAST)).field == "schedule-at"


def test_a_delay_is_never_in_the_past() -> None:
    assert due_of(schedule(timing=After(1), recorded_at=AT, on_past=REJECT_PAST), AT + HOUR) == AT + 1


def test_a_refused_update_raises_before_anything_is_changed() -> None:
    with pytest.raises(InvalidCommand):
        decided(schedule(timing=Once(AT - 1), on_past=REJECT_PAST), PENDING)


# -- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["x" * 16, "ö" * 8, "\N{SLEEPING FACE}" * 4, "x"])
def test_ids_up_to_the_limit_in_bytes_are_taken(id: str) -> None:
    assert decided(schedule(id=id)).outcome is Outcome.SCHEDULED
    assert decided(cancel(id=id, recorded_at=AT)).outcome is Outcome.NOT_FOUND


@pytest.mark.parametrize("id", ["x" * 17, "ö" * 8 + "x", "\N{SLEEPING FACE}" * 4 + "x", "ö" * 16])
def test_ids_are_measured_in_bytes_not_in_characters(id: str) -> None:
    for command in (schedule(id=id), cancel(id=id, recorded_at=AT)):
        error = refusal(command)
        assert error.field == "schedule-id"
        assert "16 bytes" in error.reason


@pytest.mark.parametrize("name", ["cancel", "pause", "resume", "trigger"])
def test_a_pending_schedule_whose_id_is_longer_than_the_limit_can_still_be_changed(name: ControlName) -> None:
    id = "x" * 17
    pending = Entry(msgspec.structs.replace(PENDING.schedule, id=id), PENDING.progress)
    command = ControlCommand(name, "acme", id, None, 3, 42, AT)
    assert decided(command, pending).outcome not in (Outcome.REJECTED, Outcome.NOT_FOUND)
    assert decided(schedule(id=id), pending).outcome is Outcome.UPDATED


def test_a_payload_up_to_the_limit_is_taken_and_one_byte_more_refused() -> None:
    assert decided(schedule(payload=b"x" * 100)).outcome is Outcome.SCHEDULED
    assert decided(schedule(payload=None)).outcome is Outcome.SCHEDULED
    error = refusal(schedule(payload=b"x" * 101))
    assert error.field == "payload"
    assert "101 bytes; at most 100" in error.reason


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (schedule(target=Target("app-history")), "schedule-target-topic"),
        (schedule(reply_to=ReplyTo("app-history")), "schedule-reply-topic"),
        (cancel(recorded_at=AT, reply_to=ReplyTo("app-history")), "schedule-reply-topic"),
    ],
)
def test_topics_that_the_scheduler_writes_are_nobodys_target(command: Command, field: str) -> None:
    error = refusal(command)
    assert error.field == field
    assert "app-history" in error.reason


def test_a_topic_for_answers_only_takes_answers_and_no_firings() -> None:
    error = refusal(schedule(target=Target("app-answers")))
    assert error.field == "schedule-target-topic"
    assert "app-answers is an internal topic" in error.reason
    assert decided(schedule(reply_to=ReplyTo("app-answers"))).outcome is Outcome.SCHEDULED


@pytest.mark.parametrize("make", [schedule, cancel])
def test_a_commands_topic_takes_no_answers(make: Callable[..., Command]) -> None:
    error = refusal(make(recorded_at=AT, reply_to=ReplyTo("app-commands")))
    assert error.field == "schedule-reply-topic"
    assert "app-commands is a commands topic of the application" in error.reason


# -- for all of them --------------------------------------------------------------------------------------------------

timings = st.builds(Once, st.integers(0, LAST_MS_OF_9999)) | st.builds(After, st.integers(0, 10**11))
schedules = st.builds(
    schedule,
    timing=timings,
    recorded_at=st.integers(-1, AT + HOUR),
    on_conflict=st.sampled_from(["replace", "keep", "fail"]),
    on_past=st.none() | st.integers(FIRE_BACKLOG, HOUR),
    expected_version=st.none() | st.integers(1, 4),
    payload=st.none() | st.binary(max_size=110),
)
cancels = st.builds(cancel, recorded_at=st.integers(-1, AT), expected_version=st.none() | st.integers(1, 4))
currents = st.none() | st.builds(
    lambda version, due: Entry(
        msgspec.structs.replace(PENDING.schedule, version=version), Progress(due=due, arrival=7, sequence=2)
    ),
    st.integers(1, 4),
    st.integers(0, LAST_MS_OF_9999),
)


@given(schedules | cancels, currents, st.integers(AT - HOUR, AT + HOUR))
def test_a_decision_leaves_its_inputs_as_they_were(command: Command, current: Entry | None, now: int) -> None:
    before = copy.deepcopy((command, current))
    with contextlib.suppress(InvalidCommand):
        decide(command, current, now, LIMITS)
    assert (command, current) == before


@given(schedules | cancels, currents, st.integers(AT - HOUR, AT + HOUR))
def test_there_is_an_event_exactly_when_something_changes(command: Command, current: Entry | None, now: int) -> None:
    try:
        decision = decide(command, current, now, LIMITS)
    except InvalidCommand:
        return
    assert (decision.event is not None) == (decision.entry != current)
    assert decision.event is None or decision.event.value == decision.outcome.value


@given(schedules, currents, st.integers(AT - HOUR, AT + HOUR))
@example(schedule(timing=Once(AT - 1), on_past=FIRE_PAST), None, AT)
@example(schedule(timing=Once(AT), on_past=FIRE_PAST), None, AT)
def test_what_is_accepted_has_the_next_version_and_the_new_due(
    command: ScheduleCommand, current: Entry | None, now: int
) -> None:
    try:
        decision = decide(command, current, now, LIMITS)
    except InvalidCommand:
        return
    if decision.outcome not in (Outcome.SCHEDULED, Outcome.UPDATED):
        assert decision.entry == current
        return
    assert decision.entry is not None
    assert decision.entry.schedule.version == (1 if current is None else current.schedule.version + 1)
    timing = command.timing
    assert isinstance(timing, Once | After)
    recorded_at = min(command.recorded_at, now) if command.recorded_at > 0 else now
    due = timing.at if isinstance(timing, Once) else recorded_at + timing.delay
    assert decision.entry.progress == Progress(due=due, arrival=command.offset)
    is_late = isinstance(timing, Once) and due < recorded_at and command.on_past == FIRE_PAST
    assert decision.entry.schedule.trigger == Once(due, late=is_late)
