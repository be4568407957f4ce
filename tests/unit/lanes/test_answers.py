from __future__ import annotations

import json

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import (
    ANSWER,
    AT,
    HOUR,
    NAMES,
    PARTITION,
    TO_REMINDERS,
    Partition,
    command,
    due_at,
    topic,
)

from light_scheduler.model import (
    EventType,
    Outcome,
    Result,
)
from light_scheduler.wire import (
    partition_for,
)
from light_scheduler.wire.content_type import JSON_COMMAND


async def test_a_result_goes_where_the_commands_key_belongs_with_its_correlation_id(partition: Partition) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER))
    (answer,) = partition.sent("answers")
    assert (answer.key, answer.partition) == (b"a", partition_for(b"a", 7))
    assert answer.headers == [("schedule-correlation-id", b"\xff\x01")]


@pytest.mark.parametrize(
    ("asked", "partition_of_answer"), [(b"0", 0), (b"6", 6), (b"7", partition_for(b"a", 7))], ids=["0", "6", "none"]
)
async def test_a_result_goes_to_the_partition_that_was_asked_for_if_there_is_one(
    partition: Partition, asked: bytes, partition_of_answer: int
) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER, ("schedule-reply-partition", asked)))
    (answer,) = partition.sent("answers")
    assert (answer.key, answer.partition) == (b"a", partition_of_answer)


async def test_a_result_without_a_key_stays_without_one(partition: Partition) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER, ("schedule-id", b"a"), key=None))
    (answer,) = partition.sent("answers")
    assert (answer.key, answer.partition) == (None, PARTITION)


@pytest.mark.parametrize("target", ["reminders", "a b"], ids=["scheduled", "rejected"])
@pytest.mark.parametrize(
    ("record_key", "key"),
    [(None, "a"), (b"a", "other"), (b"a", None)],
    ids=["of the value", "of both", "of the record"],
)
async def test_a_result_has_the_key_of_a_json_command_whose_record_has_none(
    partition: Partition, record_key: bytes | None, key: str | None, target: str
) -> None:
    value = {"id": "a", "key": key, "trigger": {"at": AT + HOUR}, "target": {"topic": target}, "reply_topic": "answers"}
    content_type = ("content-type", JSON_COMMAND)
    await partition.run(command(content_type, key=record_key, value=json.dumps(value).encode()))
    (answer,) = partition.sent("answers")
    assert (answer.key, answer.partition) == (b"a", partition_for(b"a", 7))


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        pytest.param(
            command(due_at(AT + 1), *TO_REMINDERS, *ANSWER, key=b"new"),
            Result("schedule", "default", "new", Outcome.SCHEDULED, 1, AT + 1, None, None, PARTITION, 42),
            id="scheduled",
        ),
        pytest.param(
            command(due_at(AT + 1), *TO_REMINDERS, *ANSWER),
            Result("schedule", "default", "a", Outcome.UPDATED, 2, AT + 1, None, None, PARTITION, 42),
            id="updated",
        ),
        pytest.param(
            command(due_at(AT + 1), *TO_REMINDERS, *ANSWER, ("schedule-on-conflict", b"keep")),
            Result("schedule", "default", "a", Outcome.KEPT, 1, AT + HOUR, None, None, PARTITION, 42),
            id="kept",
        ),
        pytest.param(
            command(due_at(AT + 1), *TO_REMINDERS, *ANSWER, ("schedule-expected-version", b"9")),
            Result(
                "schedule",
                "default",
                "a",
                Outcome.CONFLICT,
                1,
                AT + HOUR,
                "version 9 was expected; it is 1",
                None,
                PARTITION,
                42,
            ),
            id="conflict",
        ),
        pytest.param(
            command(*ANSWER, value=None),
            Result("cancel", "default", "a", Outcome.CANCELLED, 1, None, None, None, PARTITION, 42),
            id="cancelled",
        ),
        pytest.param(
            command(*ANSWER, value=None, key=b"new"),
            Result(
                "cancel",
                "default",
                "new",
                Outcome.NOT_FOUND,
                None,
                None,
                "no schedule with this id is pending",
                None,
                PARTITION,
                42,
            ),
            id="not found",
        ),
        pytest.param(
            command(due_at(AT - 1), *TO_REMINDERS, *ANSWER, ("schedule-on-past", b"reject")),
            Result(
                "schedule",
                "default",
                "a",
                Outcome.REJECTED,
                None,
                None,
                "was 1ms in the past when it arrived",
                "schedule-at",
                PARTITION,
                42,
            ),
            id="rejected by the engine",
        ),
        pytest.param(
            command(due_at(AT), *ANSWER),
            Result(
                "schedule",
                "default",
                "a",
                Outcome.REJECTED,
                None,
                None,
                "is required: name the topic that the message goes to, or give tenant default a default target",
                "schedule-target-topic",
                PARTITION,
                42,
            ),
            id="rejected by the dialect",
        ),
    ],
)
async def test_a_command_is_answered(partition: Partition, record: ConsumerRecord, answer: Result) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, offset=41))
    cycle = await partition.run(record)
    assert partition.results == [answer]
    assert partition.lost_results == 0
    aims = {"reminders"} if answer.outcome in (Outcome.SCHEDULED, Outcome.UPDATED) else set()
    assert cycle.reply_topics == {"answers"} | aims
    assert cycle.outcomes == {answer.outcome: 1}


async def test_without_a_reply_topic_nothing_is_answered(partition: Partition) -> None:
    cycle = await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS), command(("schedule-at", b"?"), offset=43))
    assert cycle.reply_topics == set()
    assert partition.sent("answers") == []


@pytest.mark.parametrize(
    ("reply_topic", "key", "correlation_id"),
    [
        pytest.param(b"missing", b"a", b"1", id="its topic does not exist"),
        pytest.param(b"small", b"a" * 400, b"1", id="its key is too large for the topic"),
        pytest.param(b"small", b"a", b"1" * 2_000, id="its correlation id is too large for the topic"),
    ],
)
async def test_a_result_that_has_nowhere_to_go_is_counted_and_the_command_stands(
    partition: Partition, reply_topic: bytes, key: bytes, correlation_id: bytes
) -> None:
    partition.topics["small"] = topic(1, 600)
    await partition.run(
        command(
            due_at(AT + HOUR),
            *TO_REMINDERS,
            ("schedule-reply-topic", reply_topic),
            ("schedule-correlation-id", correlation_id),
            key=key,
        ),
        command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER, key=b"b", offset=43),
    )
    assert partition.lost_results == 1
    assert [result.id for result in partition.results] == ["b"]
    assert partition.sent("missing") == partition.sent("small") == []
    assert partition.table.get("default", key.decode()) is not None


async def test_a_result_without_a_key_is_lost_if_its_topic_is_compacted(partition: Partition) -> None:
    partition.topics["answers"] = topic(7)._replace(is_compacted=True)
    await partition.run(
        command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER, ("schedule-id", b"a"), key=None),
        command(due_at(AT + HOUR), *TO_REMINDERS, *ANSWER, key=b"b", offset=43),
    )
    assert partition.lost_results == 1
    assert [result.id for result in partition.results] == ["b"]
    assert partition.table.pending == 2


async def test_a_rejected_command_that_wants_its_answer_in_a_topic_of_ours_gets_none(partition: Partition) -> None:
    cycle = await partition.run(command(due_at(AT), *TO_REMINDERS, ("schedule-reply-topic", NAMES.history.encode())))
    assert cycle.outcomes == {Outcome.REJECTED: 1}
    assert cycle.reply_topics == set()
    assert [event.event for event in partition.history] == [EventType.REJECTED]
    assert [letter.field for letter in partition.dead_letters] == ["schedule-reply-topic"]
