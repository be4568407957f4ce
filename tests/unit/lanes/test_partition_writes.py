"""Commands for schedules that are not here: which are passed on, where to, and who answers them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from support import partition as supported
from support.partition import (
    ANSWER,
    AT,
    HOUR,
    NAMES,
    TO_REMINDERS,
    Partition,
    due_at,
    topic,
)

from light_scheduler.model import DeadLetterCause, EventType, Headers, Outcome, Result
from light_scheduler.wire import partition_for
from light_scheduler.wire.lane_marks import FORWARDED_FROM

PARTITION, PARTITIONS = 5, 6
MINE, THEIRS = b"ghost", b"unknown"
HOME = partition_for(THEIRS, PARTITIONS)
command = partial(supported.command, partition=PARTITION)
ONCE: Headers = [due_at(AT + HOUR), *TO_REMINDERS]
RESCHEDULE: Headers = [("schedule-command", b"reschedule"), ("schedule-after", b"1h")]
COMPLETE: Headers = [
    ("schedule-command", b"complete"),
    ("schedule-firing-id", b"unknown@1767225600000"),
    ("schedule-attempt", b"1"),
]
JSON = ("content-type", b"application/vnd.light-scheduler.command+json")


def test_the_keys_are_what_the_cases_need() -> None:
    assert partition_for(MINE, PARTITIONS) == PARTITION != HOME


def at(producer: Any, number: int) -> Partition:
    return Partition(producer, number=number, of=PARTITIONS)


@pytest.fixture
async def partition(producer: Any) -> Partition:
    return at(producer, PARTITION)


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(command(*ONCE, key=THEIRS), id="schedule"),
        pytest.param(command(*ONCE, *ANSWER, key=THEIRS), id="schedule with an answer"),
        pytest.param(command(("schedule-cron", b"* * * * *"), *TO_REMINDERS, key=THEIRS), id="series"),
        pytest.param(command(*ONCE, ("schedule-id", THEIRS), key=None), id="schedule without a key"),
        pytest.param(command(*ONCE, ("schedule-on-conflict", b"fail"), key=THEIRS), id="schedule if there is none"),
        pytest.param(command(*ANSWER, key=THEIRS, value=None), id="cancel by null"),
        *(
            pytest.param(command(("schedule-command", name), key=THEIRS), id=name.decode())
            for name in (b"cancel", b"pause", b"resume", b"trigger")
        ),
        pytest.param(command(*RESCHEDULE, key=THEIRS), id="reschedule"),
        pytest.param(command(*COMPLETE, key=THEIRS), id="complete"),
        pytest.param(command(("schedule-id", MINE), key=THEIRS, value=None), id="another id"),
        pytest.param(command(("schedule-id", THEIRS), key=None, value=None), id="no key: the id stands for it"),
        pytest.param(command(("schedule-expected-version", b"3"), key=THEIRS, value=None), id="a version"),
        pytest.param(
            command(JSON, key=None, value=b'{"command": "cancel", "key": "unknown"}'), id="a key in the JSON form"
        ),
    ],
)
async def test_a_command_for_an_unknown_id_is_passed_on_as_it_is_to_the_partition_of_its_key(
    partition: Partition, record: ConsumerRecord
) -> None:
    cycle = await partition.run(record, now=AT + 7)

    (copy,) = partition.sent(NAMES.commands)
    assert (copy.topic, copy.partition, copy.key, copy.value) == (NAMES.commands, HOME, record.key, record.value)
    assert copy.headers == [*record.headers, (FORWARDED_FROM, b"%d:42:%d" % (PARTITION, AT))]
    assert (cycle.forwarded, cycle.outcomes, cycle.results) == (1, {}, [])
    (event,) = partition.history
    assert (event.event, event.version, event.at) == (EventType.MOVED, None, AT + 7)
    assert event.reason is not None
    assert f"passed on to partition {HOME}" in event.reason


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(command(*ANSWER, key=MINE, value=None), id="its key belongs here"),
        pytest.param(command(*ANSWER, ("schedule-id", THEIRS), key=MINE, value=None), id="its key does, not its id"),
        pytest.param(
            command(*ANSWER, (FORWARDED_FROM, b"1:2:3"), key=THEIRS, value=None), id="it was passed on before"
        ),
    ],
)
async def test_a_command_is_answered_here_if(partition: Partition, record: ConsumerRecord) -> None:
    cycle = await partition.run(record)

    assert [result.outcome for result in partition.results] == [Outcome.NOT_FOUND]
    assert partition.sent(NAMES.commands) == []
    assert (cycle.forwarded, cycle.outcomes) == (0, {Outcome.NOT_FOUND: 1})


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(command(*ONCE, key=MINE), id="its key belongs here"),
        pytest.param(command(*ONCE, ("schedule-id", THEIRS), key=MINE), id="its key does, not its id"),
        pytest.param(command(*ONCE, (FORWARDED_FROM, b"1:2:3"), key=THEIRS), id="it was passed on before"),
    ],
)
async def test_a_schedule_is_stored_here_if(partition: Partition, record: ConsumerRecord) -> None:
    cycle = await partition.run(record)

    assert partition.sent(NAMES.commands) == []
    assert (cycle.forwarded, cycle.outcomes, partition.table.pending) == (0, {Outcome.SCHEDULED: 1}, 1)


async def test_a_schedule_that_was_stored_here_is_replaced_and_found_here(partition: Partition) -> None:
    await partition.run(command(*ONCE, (FORWARDED_FROM, b"1:2:3"), key=THEIRS))
    replacing = await partition.run(command(*ONCE, key=THEIRS, offset=43))
    cancelling = await partition.run(command(key=THEIRS, value=None, offset=44))

    assert (replacing.forwarded, replacing.outcomes) == (0, {Outcome.UPDATED: 1})
    assert (cancelling.forwarded, cancelling.outcomes) == (0, {Outcome.CANCELLED: 1})


async def test_a_command_for_an_id_over_a_lowered_limit_is_passed_on_to_where_the_schedule_may_be(
    partition: Partition,
) -> None:
    partition.limits = replace(partition.limits, max_id_bytes=len(THEIRS) - 1)
    there = await partition.run(command(key=THEIRS, value=None))
    here = await partition.run(command(("schedule-id", THEIRS), key=MINE, value=None, offset=43))

    assert (there.forwarded, there.outcomes) == (1, {})
    assert (here.forwarded, here.outcomes) == (0, {Outcome.REJECTED: 1})


async def test_a_schedule_that_is_rejected_is_rejected_where_it_arrives(partition: Partition) -> None:
    cycle = await partition.run(command(due_at(AT - 1), ("schedule-on-past", b"reject"), *TO_REMINDERS, key=THEIRS))

    assert (cycle.forwarded, cycle.outcomes) == (0, {Outcome.REJECTED: 1})


async def test_a_schedule_is_accepted_in_the_partition_of_its_key_as_it_was_sent(partition: Partition) -> None:
    await partition.run(command(("schedule-after", b"1h"), *TO_REMINDERS, *ANSWER, ("trace", b"7"), key=THEIRS))
    (copy,) = partition.sent(NAMES.commands)
    there = at(partition.producer, HOME)
    await there.run(
        command(*copy.headers, key=copy.key, value=copy.value, partition=HOME, offset=3, timestamp=AT + 5_000),
        now=AT + 5_000,
    )

    (result,) = there.results
    assert (result.outcome, result.partition, result.offset) == (Outcome.SCHEDULED, PARTITION, 42)
    stored = there.table.get("default", THEIRS.decode())
    assert stored is not None
    schedule = stored.schedule
    assert (stored.progress.due, schedule.payload, schedule.headers) == (AT + HOUR, b"payload", [("trace", b"7")])
    assert (schedule.source_partition, schedule.source_offset) == (HOME, 3)
    assert partition.table.pending == 0


@pytest.mark.parametrize("offset", range(12))
@pytest.mark.parametrize("as_key", [pytest.param(True, id="as the key"), pytest.param(False, id="as schedule-id")])
async def test_a_generated_id_is_the_same_in_the_answer_the_history_and_the_table_and_a_cancel_by_it_is_found(
    producer: Any, offset: int, as_key: bool
) -> None:
    partitions = [at(producer, number) for number in range(PARTITIONS)]
    answers: list[Result] = []
    moved: list[str | None] = []

    async def send(number: int, record: ConsumerRecord) -> None:
        """Have a partition carry a command out, and the partition that it is passed on to."""
        await partitions[number].run(record)
        answers.extend(partitions[number].results)
        moved.extend(event.id for event in partitions[number].history if event.event is EventType.MOVED)
        for copy in partitions[number].sent(NAMES.commands):
            there = copy.partition
            await send(
                there, command(*copy.headers, key=copy.key, value=copy.value, partition=there, offset=offset + 100)
            )

    await send(PARTITION, command(*ONCE, *ANSWER, key=None, offset=offset))
    id = str(answers[0].id)
    pending = sum(partition.table.pending for partition in partitions)
    named: Headers = [] if as_key else [("schedule-id", id.encode())]
    key = id.encode() if as_key else None
    sent_to = partition_for(id.encode(), PARTITIONS) if as_key else (offset % PARTITIONS)
    home = partition_for(id.encode(), PARTITIONS)
    assert partitions[home].table.get("default", id) is not None
    await send(sent_to, command(*ANSWER, *named, key=key, value=None, offset=offset + 50, partition=sent_to))

    assert pending == 1
    assert [(answer.outcome, answer.id) for answer in answers] == [(Outcome.SCHEDULED, id), (Outcome.CANCELLED, id)]
    assert set(moved) <= {id}
    assert sum(partition.table.pending for partition in partitions) == 0


async def test_a_copy_that_is_too_large_for_the_topic_is_answered_here(partition: Partition) -> None:
    partition.topics[NAMES.commands] = topic(PARTITIONS, 100)
    cycle = await partition.run(command(("schedule-command", b"pause"), key=THEIRS, value=b"x" * 100))

    assert (cycle.forwarded, cycle.outcomes) == (0, {Outcome.NOT_FOUND: 1})


class Passed:
    """What another partition makes of a copy that this one has passed on."""

    def __init__(self, there: Partition, copy: Any, offset: int) -> None:
        self.there = there
        self.record = command(
            *copy.headers, key=copy.key, value=copy.value, partition=HOME, offset=offset, timestamp=AT + 5_000
        )


async def passed(partition: Partition, record: ConsumerRecord, offset: int = 3) -> Passed:
    """Have a command passed on to another partition, which has the schedule."""
    there = at(partition.producer, HOME)
    await there.run(command(due_at(AT + 2 * HOUR), *TO_REMINDERS, key=THEIRS, partition=HOME, offset=offset - 1))
    await partition.run(record)
    (copy,) = partition.sent(NAMES.commands)
    return Passed(there, copy, offset)


async def test_the_answer_comes_from_the_partition_that_decides_and_names_the_record_that_was_sent(
    partition: Partition,
) -> None:
    copy = await passed(partition, command(*ANSWER, key=THEIRS, value=None))

    await copy.there.run(copy.record)

    (result,) = copy.there.results
    assert (result.outcome, result.partition, result.offset) == (Outcome.CANCELLED, PARTITION, 42)
    assert copy.there.table.pending == 0


async def test_a_delay_counts_from_when_the_command_was_sent_not_from_when_it_was_passed_on(
    partition: Partition,
) -> None:
    copy = await passed(partition, command(*RESCHEDULE, key=THEIRS))

    await copy.there.run(copy.record, now=AT + 5_000)

    entry = copy.there.table.get("default", THEIRS.decode())
    assert entry is not None
    assert (entry.progress.due, entry.progress.arrival) == (AT + HOUR, 3)


async def test_a_copy_that_is_rejected_is_kept_as_it_was_sent(partition: Partition) -> None:
    record = command(*RESCHEDULE[:1], ("schedule-at", b"1767225599999"), ("schedule-on-past", b"reject"), key=THEIRS)
    copy = await passed(partition, record)

    await copy.there.run(copy.record)

    (letter,) = copy.there.dead_letters
    assert (letter.cause, letter.source_partition, letter.source_offset) == (DeadLetterCause.REJECTED, PARTITION, 42)
    assert letter.headers == list(record.headers)


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param(b"here", id="of another form"),
        pytest.param(b"%d:2:3" % PARTITION, id="passed on to itself"),
        pytest.param(b"%d:2:3" % PARTITIONS, id="of no partition"),
    ],
)
async def test_a_mark_that_no_lane_writes_is_rejected(partition: Partition, mark: bytes) -> None:
    await partition.run(command((FORWARDED_FROM, mark), *ANSWER, key=THEIRS, value=None))

    (letter,) = partition.dead_letters
    assert (letter.field, letter.source_partition, letter.source_offset) == (FORWARDED_FROM, PARTITION, 42)
    assert [(result.outcome, result.offset) for result in partition.results] == [(Outcome.REJECTED, 42)]
    assert [event.event for event in partition.history] == [EventType.REJECTED]
