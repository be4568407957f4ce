"""Work that a cycle cannot carry out, targets that are lost or refuse all, and what happens to everything else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, TO_REMINDERS, Partition, command, due_at, topic

from light_scheduler.engine import is_plain_turn, plain_id, take_turn
from light_scheduler.errors import StateError
from light_scheduler.lanes.failures.failing_work_search import Kind, Work, WorkFailedError
from light_scheduler.model import DeadLetterCause, EventType, Headers, Outcome
from light_scheduler.model.place import Place

OWN_ERROR = ValueError("an error of the scheduler's own")
BAD_FIRING = Work(Kind.FIRING, ("default", "bad", AT, 1))


def fails_for(id: str, error: BaseException, otherwise: Any) -> Any:
    """Return a decision that raises an error for one id."""

    def decide(subject: Any, *rest: Any) -> Any:
        name = subject.schedule.id if hasattr(subject, "schedule") else subject.key.decode()
        if name == id:
            raise error
        return otherwise(subject, *rest)

    return decide


def break_turns(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Have the turn of one id raise an error, whichever way it goes."""
    for module, decide in (("plain.firings.is_plain_turn", is_plain_turn), ("cycle.firings.take_turn", take_turn)):
        monkeypatch.setattr(f"light_scheduler.lanes.{module}", fails_for("bad", error, decide))


def schedules(*ids: str, due: int = AT) -> list[Any]:
    return [
        command(due_at(due), *TO_REMINDERS, key=id.encode(), offset=offset) for offset, id in enumerate(ids, start=42)
    ]


def delivered(partition: Partition) -> list[str]:
    return [record.key.decode() for record in partition.sent("reminders")]


# -- commands ---------------------------------------------------------------------------------------------------------


async def test_a_command_that_cannot_be_carried_out_is_named(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("light_scheduler.lanes.plain.commands.plain_id", fails_for("bad", OWN_ERROR, plain_id))
    with pytest.raises(WorkFailedError, match="command 43") as caught:
        await partition.run(*schedules("before", "bad", "after"))
    assert (caught.value.work, caught.value.__cause__) == (Work(Kind.COMMAND, 43), OWN_ERROR)


@pytest.mark.parametrize("error", [OSError("disk"), MemoryError(), StateError("no")], ids=repr)
async def test_a_failure_of_the_worker_is_no_commands_or_firings_fault(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await partition.run(*schedules("bad"), now=AT - 1)
    break_turns(monkeypatch, error)
    with pytest.raises(type(error)):
        await partition.run()
    monkeypatch.setattr("light_scheduler.lanes.plain.commands.plain_id", fails_for("bad", error, plain_id))
    with pytest.raises(type(error)):
        await partition.run(*schedules("bad"))


async def test_a_condemned_command_is_a_dead_letter_without_an_answer_and_the_others_are_carried_out(
    partition: Partition,
) -> None:
    records = [command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER, key=b"%d" % n, offset=n) for n in (42, 43, 44)]
    cycle = await partition.run(*records, condemned={Work(Kind.COMMAND, 43): "ValueError('x')"})
    assert cycle.outcomes == {Outcome.SCHEDULED: 2, Outcome.REJECTED: 1}
    (letter,) = partition.dead_letters
    assert (letter.cause, letter.source_offset, letter.key, letter.value) == (
        DeadLetterCause.REJECTED,
        43,
        b"43",
        b"payload",
    )
    assert letter.reason == "the scheduler fails to carry it out: ValueError('x')"
    assert [(event.event, event.id) for event in partition.history] == [
        (EventType.SCHEDULED, "42"),
        (EventType.REJECTED, "43"),
        (EventType.SCHEDULED, "44"),
    ]
    assert [result.id for result in partition.results] == ["42", "44"], "answering may be what fails"
    assert partition.table.pending == 2


# -- firings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain_paths", [True, False])
async def test_a_firing_that_cannot_be_carried_out_is_named(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, plain_paths: bool
) -> None:
    partition.plain_paths = plain_paths
    await partition.run(*schedules("before", "bad", "later"), now=AT - 1)
    break_turns(monkeypatch, OWN_ERROR)
    with pytest.raises(WorkFailedError) as caught:
        await partition.run()
    assert (caught.value.work, caught.value.__cause__) == (BAD_FIRING, OWN_ERROR)


async def test_a_condemned_firing_is_a_dead_letter_and_the_others_are_delivered(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partition.run(*schedules("before", "bad", "later"), now=AT - 1)
    break_turns(monkeypatch, OWN_ERROR)
    await partition.run(condemned={BAD_FIRING: "ValueError('x')"})
    assert sorted(delivered(partition)) == ["before", "later"]
    (letter,) = partition.dead_letters
    assert (letter.cause, letter.id, letter.reason, letter.value) == (
        DeadLetterCause.REFUSED,
        "bad",
        "the scheduler fails to carry it out: ValueError('x')",
        b"payload",
    )
    assert [event.id for event in partition.history if event.event is EventType.DEAD_LETTERED] == ["bad"]
    assert partition.table.pending == 0
    assert [record.value for record in partition.sent(CHANGELOG)] == [None] * 3


async def test_another_version_of_a_condemned_firing_is_delivered(partition: Partition) -> None:
    await partition.run(*schedules("bad"), now=AT - 2)
    await partition.run(command(due_at(AT), *TO_REMINDERS, key=b"bad", offset=50), now=AT - 1)
    await partition.run(condemned={BAD_FIRING: "why"})
    assert (delivered(partition), partition.dead_letters) == (["bad"], [])


# -- targets ----------------------------------------------------------------------------------------------------------


def to_partition(number: int) -> Headers:
    return [*TO_REMINDERS, ("schedule-target-partition", b"%d" % number)]


async def test_what_was_taken_when_its_target_was_lost_stays_and_fires_later(partition: Partition) -> None:
    for number, id in enumerate((b"a", b"b")):
        await partition.run(command(due_at(AT), *to_partition(number), key=id, offset=number), now=AT - 1)

    def waits(entry: Any) -> Place | None:
        return ("reminders", 0) if entry.schedule.target.partition == 0 else None

    await partition.run(waits=waits)
    assert delivered(partition) == ["b"]
    assert (partition.table.pending, partition.dead_letters) == (1, [])
    await partition.run()
    assert delivered(partition) == ["a"]


# -- answers ----------------------------------------------------------------------------------------------------------

TO_MISSING: Headers = [("schedule-target-topic", b"missing")]
WARNING = "topic missing does not exist: nothing can be delivered there"


@pytest.mark.parametrize(
    ("headers", "warning"),
    [
        ([*TO_MISSING, due_at(AT + HOUR)], WARNING),
        ([*TO_REMINDERS, due_at(AT + HOUR)], None),
    ],
)
@pytest.mark.parametrize("outcome", [Outcome.SCHEDULED, Outcome.UPDATED])
async def test_an_answer_warns_of_a_target_that_is_missing_and_the_schedule_stands(
    partition: Partition, headers: Headers, warning: str | None, outcome: Outcome
) -> None:
    if outcome is Outcome.UPDATED:
        await partition.run(*schedules("a", due=AT + HOUR))
    cycle = await partition.run(command(*headers, *ANSWER, offset=50))
    (answer,) = partition.results
    assert (answer.outcome, answer.reason) == (outcome, warning)
    assert cycle.reply_topics == {"answers", headers[0][1].decode() if headers[0][1] else ""}
    assert partition.table.pending == 1


async def test_an_answer_that_delivers_nothing_does_not_warn(partition: Partition) -> None:
    await partition.run(command(*TO_MISSING, due_at(AT + HOUR)))
    await partition.run(command(*ANSWER, value=None, offset=50))
    (answer,) = partition.results
    assert (answer.outcome, answer.reason) == (Outcome.CANCELLED, None)


async def test_an_answer_for_a_partition_that_is_away_is_lost_and_counted_and_its_command_stands(
    partition: Partition,
) -> None:
    record = command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER)
    await partition.run(record, holding=SimpleNamespace(loses=lambda place: place[0] == "answers"))
    assert (partition.results, partition.lost_results, partition.table.pending) == ([], 1, 1)
    await partition.run(record, holding=SimpleNamespace(loses=lambda place: False))
    assert (len(partition.results), partition.lost_results) == (1, 0)


# -- topics of ours that take little ----------------------------------------------------------------------------------


async def test_history_says_less_where_its_topic_takes_less(partition: Partition) -> None:
    partition.topics[NAMES.history] = topic(1, 500)
    partition.topics["missing"] = topic(0, 0, "x" * 1_000)
    await partition.run(command(due_at(AT), *TO_MISSING, offset=43))
    (told,) = [event for event in partition.history if event.event is EventType.DEAD_LETTERED]
    assert told.reason == "x" * 100 + "..."


@pytest.mark.parametrize("own", [NAMES.history, NAMES.dead_letters])
async def test_what_a_topic_of_ours_has_no_room_for_at_all_holds_nothing_up(
    partition: Partition, own: str, caplog: pytest.LogCaptureFixture
) -> None:
    partition.topics[own] = topic(1, 100)
    await partition.run(command(due_at(AT), *TO_MISSING), command(due_at(AT), *TO_REMINDERS, key=b"fine", offset=43))
    assert delivered(partition) == ["fine"]
    assert partition.sent(own) == []
    lost = [line for line in caplog.messages if line.endswith(f"topic {own} takes at most 100")]
    assert len(lost) == (4 if own == NAMES.history else 1)
    assert partition.table.pending == 0
