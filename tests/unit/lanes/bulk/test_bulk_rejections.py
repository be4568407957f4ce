"""Bulk commands that cannot be carried out: rejected where they stand, and no total waits for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.bulk import ALL, COUNT, KEYS, Topic
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, topic

from light_scheduler.engine import Limits, decide_bulk
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.lanes.bulk import commands as bulk
from light_scheduler.lanes.failures.failing_work_search import Kind, Work, WorkFailedError
from light_scheduler.lanes.writes.answers import Answers
from light_scheduler.model import DEFAULT_TENANT, BulkTotal, ControlCommand, EventType, Headers, Outcome
from light_scheduler.model.bulk import SubTotal, lacking
from light_scheduler.wire.lane_marks import BULK_COUNT, FORWARDED_FROM
from light_scheduler.wire.state import bulk_total_key, encode_bulk_total

# -- what is wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        pytest.param(
            [("schedule-command", b"reschedule"), ("schedule-every", b"1h"), ("schedule-end", b"1767225600001")],
            "schedule-end",
            id="no time to fire at",
        ),
        pytest.param(
            [("schedule-command", b"cancel"), ("schedule-expected-version", b"1")],
            "schedule-expected-version",
            id="version",
        ),
        pytest.param([("schedule-command", b"cancel"), ("schedule-labels", b"x")], "schedule-labels", id="labels"),
        pytest.param([("schedule-command", b"cancel"), ("trace", b"x" * 600)], "payload", id="too large to be copied"),
        pytest.param([("schedule-command", b"cancel"), (FORWARDED_FROM, b"9:1:1")], FORWARDED_FROM, id="from nowhere"),
        pytest.param([("schedule-command", b"cancel"), (FORWARDED_FROM, b"0:1:1")], FORWARDED_FROM, id="from itself"),
    ],
)
async def test_what_cannot_be_carried_out_is_rejected_where_it_was_sent_and_goes_nowhere(
    filled: Topic, headers: Headers, field: str
) -> None:
    filled.partitions[0].topics[NAMES.commands] = topic(COUNT, 500)
    filled.send(0, ("schedule-id", b"*"), *headers, *ANSWER)
    await filled.cycle(0)

    assert [rejected for rejected, *_ in filled.rejected] == [field]
    assert [(result.outcome, result.field) for result in filled.results] == [(Outcome.REJECTED, field)]
    assert filled.waiting == [[], [], []]
    await filled.cycle(0)
    assert len(filled.pending) == 33


async def test_a_tenant_has_so_many_bulk_commands_at_work_and_no_more(
    filled: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_AT_WORK", 3)
    sent = [filled.control(0, "pause", f"0/order-{number}*") for number in range(5)]
    filled.control(0, "pause", "*", ("schedule-tenant", b"another"))
    cycle = await filled.cycle(0)
    assert filled.rejected == [("quota.bulk_commands", 0, offset) for offset in sent[3:]]
    assert cycle.transaction.over_quota == 2
    refusals = [result for result in filled.results if result.outcome is Outcome.REJECTED]
    assert [str(result.reason).partition(" are")[0] for result in refusals] == ["3 bulk commands of tenant default"] * 2
    await filled.settle()
    assert [count for _, _, outcome, count in filled.totals if outcome is Outcome.PAUSED] == [1, 1, 1, 0]


async def test_a_tenant_sends_bulk_commands_again_once_earlier_ones_are_answered(
    filled: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is at work here is done, and waits for reports of other partitions."""
    monkeypatch.setattr(bulk, "MOST_AT_WORK", 1)
    for _ in range(2):
        filled.control(0, "pause", "*")
        await filled.cycle(0)
        await filled.cycle(0)
        assert not filled.at_work(0)
        late = filled.control(0, "resume", "*")
        await filled.cycle(0)
        assert filled.rejected.pop() == ("quota.bulk_commands", 0, late)
        await filled.settle()
    assert [outcome for _, _, outcome, _ in filled.totals if outcome is not Outcome.REJECTED] == [Outcome.PAUSED] * 2


async def test_copies_of_bulk_commands_are_taken_however_many_there_are(
    filled: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MOST_AT_WORK", 1)
    for number in range(COUNT):
        filled.control(number, "pause", f"{number}/*")
    for number in range(COUNT):
        await filled.cycle(number)
    await filled.settle()
    assert filled.rejected == []
    assert sorted(count for *_, count in filled.totals) == [11, 11, 11]


@pytest.mark.parametrize(
    ("count", "token"),
    [
        pytest.param("1:1:5", None, id="another command"),
        pytest.param("999:1:5", None, id="no command"),
        pytest.param("12:0:5", None, id="reported already"),
        pytest.param("12:7:5", None, id="no such partition"),
        pytest.param("12:1:5", "0" * 32, id="another token"),
    ],
)
async def test_a_count_that_nobody_waits_for_is_rejected_and_not_counted(
    filled: Topic, count: str, token: str | None
) -> None:
    offset = filled.control(0, "pause", "*")
    assert offset == 12
    await filled.cycle(0)
    given = dict(filled.waiting[1][0].headers)[FORWARDED_FROM].decode().rpartition(":")[2]
    await filled.cycle(0)
    forged = filled.send(0, (BULK_COUNT, f"{count}:{token or given}".encode()), *ANSWER, value=None)
    await filled.settle()

    assert filled.totals == [("pause", "*", Outcome.PAUSED, 33)]
    assert filled.rejected == [(BULK_COUNT, 0, forged)]
    assert filled.told(KEYS[0].decode()) == ["rejected"]
    assert [(r.outcome, r.offset) for r in filled.results if r.outcome is Outcome.REJECTED] == [("rejected", forged)]


async def test_a_copy_for_many_that_no_lane_has_made_is_rejected_and_not_reported(filled: Topic) -> None:
    offset = filled.send(1, ("schedule-command", b"pause"), ("schedule-id", b"*"), (FORWARDED_FROM, b"0:12:1"))
    await filled.settle()

    assert filled.rejected == [(FORWARDED_FROM, 0, 12)]
    assert not any(filled.pending.values())
    assert filled.ends[1] == offset + 1


async def test_a_copy_for_one_that_is_not_understood_reports_nothing(filled: Topic) -> None:
    filled.send(1, ("schedule-of-tomorrow", b"1"), (FORWARDED_FROM, b"0:12:1"))
    await filled.settle()

    assert [field for field, *_ in filled.rejected] == ["schedule-of-tomorrow"]


async def test_a_copy_that_is_not_understood_holds_no_total_up(filled: Topic) -> None:
    offset = filled.control(0, "pause", "*")
    await filled.cycle(0)
    (copy,) = filled.waiting[1]
    filled.waiting[1].clear()
    filled.send(1, *copy.headers, ("schedule-of-tomorrow", b"1"))
    await filled.settle()

    assert filled.totals == [("pause", "*", Outcome.PAUSED, 22)]
    assert [result.reason for result in filled.results] == ["partition 1 has not confirmed the command"]
    assert filled.rejected == [("schedule-of-tomorrow", 0, offset)]


async def test_a_count_that_no_lane_writes_is_rejected(filled: Topic) -> None:
    offset = filled.send(0, (BULK_COUNT, b"many"), value=None)
    await filled.cycle(0)

    assert filled.rejected == [(BULK_COUNT, 0, offset)]


async def test_a_schedule_that_would_be_too_large_with_its_new_rule_stays_as_it_is(filled: Topic) -> None:
    filled.partitions[0].topics["app-schedules-changelog"] = topic(COUNT, 1_000)
    filled.control(1, "reschedule", "*", ("schedule-cron", b"* * * * *" + b" " * 900))
    await filled.settle()

    assert filled.totals == [("reschedule", "*", Outcome.RESCHEDULED, 22)]


async def test_an_id_over_the_limit_is_rejected(filled: Topic) -> None:
    filled.partitions[0].limits = Limits(1_000, 5)
    filled.control(0, "cancel", "123456*")
    await filled.cycle(0)

    assert [result.outcome for result in filled.results] == [Outcome.REJECTED]


@pytest.mark.parametrize("changed", [0, 3])
async def test_a_command_for_many_that_cannot_be_carried_out_ends_where_it_stands_and_the_others_go_on(
    filled: Topic, changed: int
) -> None:
    filled.partitions[0].most_bulk = changed
    offset = filled.control(0, "cancel", "*")
    await filled.cycle(0)
    await filled.cycle(0)
    await filled.cycle(0, condemned={Work(Kind.BULK, offset): "ValueError('x')"})
    assert not filled.at_work(0)
    await filled.settle()

    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, changed + 22)]
    assert [result.reason for result in filled.results] == ["partition 0 has not confirmed the command"]
    assert [(event.id, event.reason) for event in filled.history if event.event is EventType.REJECTED] == [
        ("*", f"the scheduler fails to carry it out: ValueError('x'); {changed} schedules were changed before")
    ]


async def test_a_command_for_many_whose_answer_cannot_be_made_as_its_last_part_ends_is_answered_all_the_same(
    filled: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("an error of the scheduler's own")

    offset = filled.control(0, "cancel", "*")
    await filled.cycle(0)
    for number in (1, 2, 1, 2):
        await filled.cycle(number)
    reports = list(filled.waiting[0])
    monkeypatch.setattr(Answers, "add_bulk", fail)
    with pytest.raises(WorkFailedError) as caught:
        await filled.cycle(0)
    assert caught.value.work == Work(Kind.BULK, offset)
    filled.waiting[0] = reports
    await filled.cycle(0, condemned={caught.value.work: "ValueError('x')"})
    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, 22)]
    assert [result.reason for result in filled.results] == ["partition 0 has not confirmed the command"]
    assert not filled.at_work(0)


async def test_a_command_for_many_that_is_over_is_not_told_of_when_it_is_condemned(filled: Topic) -> None:
    offset = filled.control(0, "cancel", "*")
    await filled.settle()
    filled.history.clear()
    await filled.cycle(0, condemned={Work(Kind.BULK, offset): "why"})
    assert filled.history == []


async def test_the_command_for_many_that_fails_is_named_and_not_those_before_it(
    filled: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.partitions[0].most_bulk = 13  # all of what the first one selects, and then some
    filled.control(0, "pause", "0/other*")
    failing = filled.control(0, "cancel", "0/order-*")
    await filled.cycle(0)

    def fail(*_: Any) -> Any:
        raise ValueError("an error of the scheduler's own")

    monkeypatch.setattr("light_scheduler.lanes.writes.history.encode_history", fail)
    with pytest.raises(WorkFailedError) as caught:
        await filled.cycle(0)
    assert caught.value.work == Work(Kind.BULK, failing - 1)
    monkeypatch.undo()
    monkeypatch.setattr("light_scheduler.lanes.bulk.commands.decide_bulk", only_pauses(fail))
    with pytest.raises(WorkFailedError) as caught:
        await filled.cycle(0)
    assert caught.value.work == Work(Kind.BULK, failing)


def only_pauses(otherwise: Any) -> Any:
    """Decide for commands that pause, and for no others."""
    return lambda command, *rest: (decide_bulk if command.name == "pause" else otherwise)(command, *rest)


@pytest.mark.parametrize("is_fired", [True, False])
async def test_a_command_for_many_is_to_blame_for_what_it_raises_before_something_else_happens_to_a_schedule(
    filled: Topic, monkeypatch: pytest.MonkeyPatch, is_fired: bool
) -> None:
    filled.partitions[0].most_bulk = 0  # it does not come to any schedule by itself
    failing = filled.control(0, "pause", "0/order-*")
    filled.control(0, "resume", "0/order-*")
    await filled.cycle(0)
    if is_fired:
        filled.now += HOUR
    else:
        filled.control(0, "cancel", "0/order-3")
    monkeypatch.setattr("light_scheduler.lanes.bulk.commands.decide_bulk", never_pauses)
    occasion = list(filled.waiting[0])
    with pytest.raises(WorkFailedError) as caught:
        await filled.cycle(0)
    assert caught.value.work == Work(Kind.BULK, failing)

    filled.waiting[0] = occasion
    await filled.cycle(0, condemned={caught.value.work: "ValueError('x')"})
    filled.partitions[0].most_bulk = 1_000
    await filled.settle()
    assert filled.totals == [("pause", "0/order-*", Outcome.PAUSED, 0), ("resume", "0/order-*", Outcome.RESUMED, 0)]
    assert filled.rejected == []
    assert (len(filled.fired), len(filled.pending)) == ((33, 0) if is_fired else (0, 32))


def never_pauses(command: Any, *rest: Any) -> Any:
    if command.name == "pause":
        raise ValueError("an error of the scheduler's own")
    return decide_bulk(command, *rest)


@pytest.mark.parametrize(("room", "is_taken"), [(700, False), (1_400, True)])
async def test_a_command_for_many_that_the_changelog_has_no_room_for_is_rejected(
    filled: Topic, room: int, is_taken: bool
) -> None:
    for partition in filled.partitions:
        partition.topics["app-schedules-changelog"] = topic(COUNT, room)
    filled.control(0, "cancel", "*", ("schedule-labels", b"kind=" + b"x" * 250))
    await filled.settle()

    assert [(result.outcome, result.field) for result in filled.results] == [
        (Outcome.CANCELLED, None) if is_taken else (Outcome.REJECTED, "schedule-id")
    ]
    assert len(filled.pending) == len(ALL)


CANCEL_ALL: Headers = [("schedule-command", b"cancel"), ("schedule-id", b"*"), ("schedule-reply-topic", b"answers")]


async def test_a_command_for_many_that_is_taken_has_room_in_the_changelog_when_it_has_come_to_the_longest_id(
    producer: Any,
) -> None:
    taken = set()
    for length in range(1_100, 1_300):
        commands = Topic(producer)
        commands.put(0, *(number * 512 for number in "abc"))
        await commands.cycle(0)
        commands.partitions[0].most_bulk = 1
        commands.partitions[0].topics["app-schedules-changelog"] = topic(COUNT, 2_000)
        commands.send(0, *CANCEL_ALL, ("schedule-correlation-id", b"x" * length))
        await commands.settle()
        taken.add(not commands.rejected)
    assert taken == {True, False}, "the edge is among them"


def test_a_total_that_has_room_in_the_changelog_has_room_with_all_partitions_that_could_not_carry_it_out() -> None:
    limit, partitions = 20_000, 1_000

    def total(length: int) -> BulkTotal:
        command = ControlCommand("cancel", DEFAULT_TENANT, "*" * length, None, 0, 1 << 40, AT)
        return SubTotal(command, tuple(range(500)), token="0" * 32, parent_token="0" * 32)

    room = bulk.room_to_begin(limit, Limits(1_000, 10), partitions)
    length = next(length for length in range(limit, 0, -1) if len(encode_bulk_total(total(length))) <= room)
    grown = lacking(msgspec.structs.replace(total(length), awaited=(), changed=1 << 40), range(partitions))
    RecordBatches(AT).add((CHANGELOG, 0), bulk_total_key(1 << 40), encode_bulk_total(grown), limit=limit)
