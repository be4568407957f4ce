from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import Any

import pytest
from aiokafka.structs import ConsumerRecord
from support.partition import (
    ANSWER,
    AT,
    CHANGELOG,
    HOUR,
    NAMES,
    PARTITION,
    TO_REMINDERS,
    Partition,
    command,
    due_at,
    topic,
)
from support.producing import FakeProducer

from light_scheduler.engine import FiringRules
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.lanes.cycle import Cycle
from light_scheduler.lanes.rejection import LONGEST_REPEATED
from light_scheduler.model import (
    DeadLetter,
    DeadLetterCause,
    EventType,
    Headers,
    HistoryEvent,
    Outcome,
    Result,
)
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire import (
    decode_dead_letter,
    firing_headers,
    partition_for,
)
from light_scheduler.wire.state import (
    POSITION_KEY,
    SCHEDULE_KIND,
    decode_entry,
    decode_position,
    encode_entry,
    identity,
)


@pytest.fixture
async def partition(producer: Any) -> Partition:
    return Partition(producer)


# -- commands ---------------------------------------------------------------------------------------------------------


async def test_an_accepted_schedule_is_stored_kept_in_the_changelog_and_told_in_history(partition: Partition) -> None:
    cycle = await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, ("trace", b"\xff")), now=AT + 7)
    stored = partition.table.get("default", "a")
    assert stored is not None
    assert (stored.progress.due, stored.schedule.payload, stored.schedule.headers) == (
        AT + HOUR,
        b"payload",
        [("trace", b"\xff")],
    )
    (kept,) = partition.sent(CHANGELOG)
    assert (kept.partition, kept.key, kept.timestamp) == (PARTITION, SCHEDULE_KIND + identity("default", "a"), AT + 7)
    assert decode_entry(kept.value) == stored
    (told,) = partition.sent(NAMES.history)
    assert (told.partition, told.key) == (PARTITION, b"default/a")
    assert partition.history == [
        HistoryEvent(EventType.SCHEDULED, "default", "a", 1, AT + HOUR, AT + 7, 1, 1, "reminders", None, PARTITION)
    ]
    assert len(partition.producer.records) == 2
    assert cycle.outcomes == {Outcome.SCHEDULED: 1}
    assert cycle.events == {EventType.SCHEDULED: 1}
    assert partition.table.pending == 1


async def test_a_cancel_removes_the_schedule_and_leaves_a_tombstone(partition: Partition) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS))
    await partition.run(command(value=None, offset=43))
    assert partition.table.get("default", "a") is None
    (kept,) = partition.sent(CHANGELOG)
    assert (kept.key, kept.value) == (SCHEDULE_KIND + identity("default", "a"), None)
    assert [(event.event, event.version, event.due) for event in partition.history] == [
        (EventType.CANCELLED, 1, AT + HOUR)
    ]


async def test_what_changes_nothing_leaves_no_record_but_its_answer(partition: Partition) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS))
    cycle = await partition.run(
        command(due_at(AT), *TO_REMINDERS, ("schedule-on-conflict", b"keep")),
        command(due_at(AT), *TO_REMINDERS, ("schedule-on-conflict", b"fail")),
        command(value=None, key=b"ghost"),
    )
    assert partition.producer.records == []
    assert cycle.outcomes == {Outcome.KEPT: 1, Outcome.CONFLICT: 1, Outcome.NOT_FOUND: 1}
    assert not cycle.events


async def test_schedule_and_cancel_back_to_back_deliver_nothing(partition: Partition) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS), command(value=None, offset=43))
    assert partition.sent("reminders") == []
    assert [record.value for record in partition.sent(CHANGELOG)][-1] is None
    assert [event.event for event in partition.history] == [EventType.SCHEDULED, EventType.CANCELLED]


@pytest.mark.parametrize(("first", "second"), [(AT, AT + HOUR), (AT + HOUR, AT)])
@pytest.mark.parametrize("cycles", [1, 2])
async def test_an_update_delivers_at_the_new_time_only(
    partition: Partition, first: int, second: int, cycles: int
) -> None:
    commands = [
        command(due_at(first), *TO_REMINDERS, value=b"old"),
        command(due_at(second), *TO_REMINDERS, value=b"new", offset=43),
    ]
    if cycles == 2:
        await partition.run(commands.pop(0), now=AT - 1)
    await partition.run(*commands, now=AT)
    delivered = [record.value for record in partition.sent("reminders")]
    await partition.run(now=AT + HOUR)
    delivered += [record.value for record in partition.sent("reminders")]
    assert delivered == [b"new"]


async def test_the_next_command_to_read_is_kept_in_the_changelog(partition: Partition) -> None:
    overlay, batches = Overlay(partition.table), RecordBatches(AT)
    Cycle(partition.context, overlay, batches, AT).moved_to(4711)
    await batches.send(partition.producer)
    (kept,) = partition.sent(CHANGELOG)
    assert (kept.partition, kept.key, decode_position(kept.value)) == (PARTITION, POSITION_KEY, 4711)
    assert overlay.position == 4711


async def test_a_topic_of_ours_with_fewer_partitions_has_all_of_a_lane_in_one(producer: FakeProducer) -> None:
    partition = Partition(producer, number=5, of=6)
    wrong = command(key=b"order", offset=43, partition=5)
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=b"ghost", partition=5), wrong)
    partitions = {record.topic: record.partition for record in producer.records}
    assert partitions == {CHANGELOG: 5, NAMES.history: 5 % 3, NAMES.dead_letters: 5 % 2}
    assert {event.partition for event in partition.history} == {5}


# -- answers ----------------------------------------------------------------------------------------------------------


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
                "there is no pending schedule of this id",
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
                "was 1 ms in the past when it arrived",
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
                "is required: the topic that the message goes to",
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


# -- firings ----------------------------------------------------------------------------------------------------------


async def test_a_firing_is_delivered_byte_for_byte_and_leaves_a_tombstone_and_a_line_of_history(
    partition: Partition,
) -> None:
    await partition.run(
        command(
            due_at(AT + 1),
            *TO_REMINDERS,
            ("schedule-target-key-base64", b"//4="),
            ("trace", b"\xff"),
            ("trace", None),
            value=b"\x00\xff",
        )
    )
    entry = partition.table.get("default", "a")
    assert entry is not None
    cycle = await partition.run(now=AT + 8)
    (fired,) = partition.sent("reminders")
    assert (fired.key, fired.value, fired.timestamp) == (b"\xff\xfe", b"\x00\xff", AT + 8)
    assert fired.headers == firing_headers(entry, AT + 8, NAMES.commands.encode())
    assert fired.headers[:2] == [("trace", b"\xff"), ("trace", None)]
    assert [(record.key, record.value) for record in partition.sent(CHANGELOG)] == [
        (SCHEDULE_KIND + identity("default", "a"), None)
    ]
    assert partition.history == [
        HistoryEvent(EventType.FIRED, "default", "a", 1, AT + 1, AT + 8, 1, 1, "reminders", None, PARTITION)
    ]
    assert [entry.progress.due for entry in cycle.delivered] == [AT + 1]
    assert partition.dead_letters == []
    assert partition.table.get("default", "a") is None
    assert partition.table.pending == 0


async def test_a_command_that_is_due_at_once_is_delivered_in_its_own_cycle(partition: Partition) -> None:
    await partition.run(command(*TO_REMINDERS))
    assert [record.value for record in partition.sent("reminders")] == [b"payload"]
    assert [event.event for event in partition.history] == [EventType.SCHEDULED, EventType.FIRED]
    kept, tombstone = partition.sent(CHANGELOG)
    assert kept.value is not None
    assert tombstone.value is None


async def test_null_stays_null_and_empty_stays_empty(partition: Partition) -> None:
    await partition.run(
        command(due_at(AT), *TO_REMINDERS, ("schedule-target-key", None), value=None),
        command(due_at(AT), *TO_REMINDERS, ("schedule-target-key", b""), value=b"", key=b"b"),
    )
    assert {(record.key, record.value) for record in partition.sent("reminders")} == {(None, None), (b"", b"")}


@pytest.mark.parametrize(
    ("headers", "key", "expected"),
    [
        pytest.param([("schedule-target-partition", b"3")], b"a", 3, id="the partition that is given"),
        pytest.param([("schedule-target-partition-key", b"pk")], b"a", partition_for(b"pk", 4), id="partition key"),
        pytest.param([("schedule-target-partition-key", b"")], b"a", partition_for(b"", 4), id="an empty one too"),
        pytest.param([("schedule-target-key", b"tk")], b"a", partition_for(b"tk", 4), id="the target's key"),
        pytest.param([], b"a", partition_for(b"a", 4), id="the command's key"),
        pytest.param([("schedule-target-key", None)], b"a", partition_for(b"a", 4), id="without a key, the id"),
        pytest.param(
            [("schedule-target-key", None), ("schedule-id", b"the-id")],
            b"a",
            partition_for(b"the-id", 4),
            id="without a key, the id and not the command's key",
        ),
    ],
)
async def test_the_partition_of_a_firing_is_chosen_by(
    partition: Partition, headers: Headers, key: bytes, expected: int
) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS, *headers, key=key))
    assert [record.partition for record in partition.sent("reminders")] == [expected]


def test_the_keys_above_choose_different_partitions() -> None:
    assert len({partition_for(key, 4) for key in (b"pk", b"", b"a", b"tk", b"the-id")}) > 2
    assert partition_for(b"", 4) != partition_for(b"a", 4)
    assert partition_for(b"the-id", 4) != partition_for(b"a", 4)


async def test_firings_of_a_partition_arrive_in_the_order_in_which_they_were_due(partition: Partition) -> None:
    to_one = [*TO_REMINDERS, ("schedule-target-partition", b"0")]
    await partition.run(
        *[
            command(due_at(AT - place), *to_one, value=b"%d" % place, key=b"%d" % place, offset=place)
            for place in range(5)
        ]
    )
    assert [record.value for record in partition.sent("reminders")] == [b"4", b"3", b"2", b"1", b"0"]


async def test_an_expired_firing_is_told_in_history_and_goes_nowhere(partition: Partition) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS, ("schedule-ttl", b"1s")), now=AT - 1)
    cycle = await partition.run(now=AT + 1_001)
    assert [record.topic for record in partition.producer.records] == [CHANGELOG, NAMES.history]
    assert [(event.event, event.reason) for event in partition.history] == [
        (EventType.EXPIRED, "1001 ms after due; its time to live was 1000 ms")
    ]
    assert cycle.delivered == []
    assert partition.table.pending == 0


async def test_history_names_no_due_time_where_nothing_is_planned(partition: Partition) -> None:
    delay = [("schedule-every", b"1m"), ("schedule-mode", b"fixed-delay")]
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=b"once"), now=AT)
    await partition.run(command(*delay, *TO_REMINDERS, key=b"delay", offset=43), now=AT)
    await partition.run(now=AT + 60_000)
    await partition.run(
        command(("schedule-command", b"trigger"), key=b"once", offset=44),
        command(("schedule-command", b"pause"), key=b"delay", offset=45),
        now=AT + 60_007,
    )
    assert [(event.event, event.id, event.due) for event in partition.history] == [
        (EventType.UPDATED, "once", AT + 60_007),
        (EventType.PAUSED, "delay", None),
        (EventType.FIRED, "once", AT + 60_007),
    ]


# -- dead letters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "id", "field"),
    [
        pytest.param(command(("schedule-at", b"\xff\xfe"), *TO_REMINDERS), "a", "schedule-at", id="not UTF-8"),
        pytest.param(command(("schedule-at", b"soon"), *TO_REMINDERS), "a", "schedule-at", id="not an instant"),
        pytest.param(command(("schedule-nonsense", b"1"), *TO_REMINDERS), "a", "schedule-nonsense", id="unknown"),
        pytest.param(command(*TO_REMINDERS, key=b"\xff"), None, "schedule-id", id="a key that is no id"),
        pytest.param(command(key=None, value=b"\x93\x00\xff"), None, "schedule-target-topic", id="random bytes"),
        pytest.param(
            command(("schedule-target-topic", NAMES.history.encode())), "a", "schedule-target-topic", id="internal"
        ),
        pytest.param(
            command(*TO_REMINDERS, ("schedule-id", b"x" * 513)), "x" * 513, "schedule-id", id="an id too long"
        ),
        pytest.param(
            command(
                ("content-type", b"application/vnd.light-scheduler.command+json"),
                value=b'{"target": {"topic": "%s"}, "id": "a"}' % NAMES.history.encode(),
            ),
            "a",
            "target.topic",
            id="internal, as JSON",
        ),
        pytest.param(
            command(
                ("content-type", b"application/vnd.light-scheduler.command+json"),
                value=b'{"target": {"topic": "reminders"}, "id": "a", "schedule-id": "b"}',
            ),
            "a",
            "schedule-id",
            id="a header's name in JSON",
        ),
    ],
)
async def test_a_command_that_is_not_accepted_is_kept_with_its_bytes_the_field_and_the_reason(
    partition: Partition, record: ConsumerRecord, id: str | None, field: str
) -> None:
    cycle = await partition.run(record, now=AT + 7)
    (sent,), (letter,) = partition.sent(NAMES.dead_letters), partition.dead_letters
    assert sent.partition == PARTITION
    assert decode_dead_letter(sent)[1] == NAMES.commands
    assert letter == DeadLetter(
        DeadLetterCause.REJECTED,
        letter.reason,
        field,
        "default",
        id,
        AT + 7,
        None,
        None,
        PARTITION,
        42,
        record.key,
        record.value,
        list(record.headers),
    )
    assert letter.reason
    (event,) = partition.history
    assert (event.event, event.id, event.at, event.partition) == (EventType.REJECTED, id, AT + 7, PARTITION)
    assert event.reason == f"{field}: {letter.reason}"
    assert cycle.outcomes == {Outcome.REJECTED: 1}
    assert cycle.events == {EventType.REJECTED: 1}
    assert partition.sent(CHANGELOG) == []
    assert partition.table.pending == 0


HUGE = "y" * 950_000


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(command(*TO_REMINDERS, ("schedule-id", HUGE.encode()), *ANSWER), id="a huge id"),
        pytest.param(command(*TO_REMINDERS, *ANSWER, key=HUGE.encode()), id="a huge key"),
        pytest.param(command(*TO_REMINDERS, ("schedule-" + HUGE, b"1"), *ANSWER), id="a huge field"),
        pytest.param(command(*TO_REMINDERS, ("schedule-at", HUGE.encode()), *ANSWER), id="a huge value"),
        pytest.param(
            command(
                ("schedule-at", b"?"), ("schedule-correlation-id", HUGE.encode()), ("schedule-reply-topic", b"answers")
            ),
            id="a huge correlation id",
        ),
    ],
)
async def test_a_command_with_huge_parts_holds_nothing_up(partition: Partition, record: ConsumerRecord) -> None:
    partition.topics["answers"] = topic(7, 100_000)
    cycle = await partition.run(record, command(due_at(AT), *TO_REMINDERS, key=b"good", offset=43))
    assert cycle.outcomes == {Outcome.REJECTED: 1, Outcome.SCHEDULED: 1}
    assert [letter_of(sent)["dead-letter-cause"] for sent in partition.sent(NAMES.dead_letters)] == [b"rejected"]
    assert [each.key for each in partition.sent("reminders")] == [b"good"]
    assert all(len(event.reason or "") < 3 * LONGEST_REPEATED for event in partition.history)


def letter_of(record: Any) -> dict[str, bytes | None]:
    return {name: value for name, value in record.headers if name.startswith("dead-letter-")}


async def test_a_schedule_that_is_too_large_for_the_changelog_is_rejected_and_nothing_of_it_kept(
    partition: Partition,
) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, value=b"old"))
    partition.topics[CHANGELOG] = topic(6, 1_000)
    await partition.run(
        command(due_at(AT), *TO_REMINDERS, value=b"x" * 2_000, offset=43),
        command(due_at(AT + HOUR), *TO_REMINDERS, key=b"b", offset=44),
    )
    assert [(letter.field, letter.id) for letter in partition.dead_letters] == [("payload", "a")]
    assert "at most 1000" in partition.dead_letters[0].reason
    stored = partition.table.get("default", "a")
    assert stored is not None
    assert stored.schedule.payload == b"old"
    assert [record.key for record in partition.sent(CHANGELOG)] == [SCHEDULE_KIND + identity("default", "b")]
    assert partition.sent("reminders") == []


UNDELIVERABLE = {
    "its topic does not exist": ([("schedule-target-topic", b"missing")], b"x", "topic missing does not exist"),
    "its topic is compacted and it has no key": (
        [("schedule-target-topic", b"latest")],
        b"x",
        "topic latest is compacted and takes no message without a key",
    ),
    "its topic has no such partition": (
        [*TO_REMINDERS, ("schedule-target-partition", b"4")],
        b"x",
        "topic reminders has no partition 4; it has 4",
    ),
    "it is too large for its topic": ([("schedule-target-topic", b"small")], b"x" * 700, "takes at most 600"),
}


@pytest.mark.parametrize(("headers", "payload", "reason"), UNDELIVERABLE.values(), ids=UNDELIVERABLE)
async def test_a_firing_that_cannot_be_delivered_becomes_a_dead_letter_and_the_others_are_delivered(
    partition: Partition, headers: Headers, payload: bytes, reason: str
) -> None:
    partition.topics["small"] = topic(1, 600)
    partition.topics["latest"] = topic(1)._replace(is_compacted=True)
    cycle = await partition.run(
        command(due_at(AT - 2), *TO_REMINDERS, key=b"before"),
        command(due_at(AT - 1), *headers, ("trace", b"\xff"), ("schedule-target-key", None), value=payload, offset=43),
        command(due_at(AT), *TO_REMINDERS, key=b"after", offset=44),
    )
    (letter,) = partition.dead_letters
    assert letter == DeadLetter(
        DeadLetterCause.REFUSED,
        letter.reason,
        None,
        "default",
        "a",
        AT,
        AT - 1,
        headers[0][1].decode() if headers[0][1] else None,
        PARTITION,
        43,
        None,
        payload,
        [("trace", b"\xff")],
        target_partition=next((int(value or b"") for name, value in headers if name.endswith("partition")), None),
    )
    assert reason in letter.reason
    assert {record.key for record in partition.sent("reminders")} == {b"before", b"after"}
    assert partition.sent("small") == partition.sent("missing") == partition.sent("latest") == []
    assert [(event.id, event.reason) for event in partition.history if event.event is EventType.DEAD_LETTERED] == [
        ("a", letter.reason)
    ]
    assert sorted(entry.progress.due for entry in cycle.delivered) == [AT - 2, AT]
    assert partition.sent(CHANGELOG)[-2].value is None
    assert partition.table.pending == 0


async def test_a_firing_that_its_topic_refused_before_is_not_sent_again(partition: Partition) -> None:
    await partition.run(
        command(due_at(AT), *TO_REMINDERS, key=b"refused"),
        command(due_at(AT), *TO_REMINDERS, key=b"fine", offset=43),
        now=AT - 1,
    )
    await partition.run(
        refusals={("default", "refused", AT, 1): "the broker said no", ("other", "fine", AT, 1): "not mine"}
    )
    assert [record.key for record in partition.sent("reminders")] == [b"fine"]
    assert [(letter.id, letter.reason) for letter in partition.dead_letters] == [("refused", "the broker said no")]


async def test_a_missed_firing_becomes_a_dead_letter(partition: Partition) -> None:
    partition.rules = FiringRules(1)
    await partition.run(command(due_at(AT), *TO_REMINDERS), now=AT - 1)
    cycle = await partition.run(now=AT + HOUR)
    assert [(letter.cause, letter.due, letter.value) for letter in partition.dead_letters] == [
        (DeadLetterCause.MISSED, AT, b"payload")
    ]
    assert cycle.events == {EventType.MISSED: 1}
    assert partition.sent("reminders") == []


async def test_a_dead_letter_that_is_too_large_itself_says_so_and_where_its_bytes_are(partition: Partition) -> None:
    partition.topics[NAMES.dead_letters] = topic(2, 1_000)
    await partition.run(
        command(due_at(AT), ("schedule-target-topic", b"missing"), ("big", b"h" * 500), value=b"x" * 800)
    )
    (sent,) = partition.sent(NAMES.dead_letters)
    assert (sent.key, sent.value) == (None, None)
    told = letter_of(sent)
    assert len(told) == len(sent.headers)  # the user's headers went too
    assert told["dead-letter-dropped"] == b"key, value and headers: too large for this topic"
    assert (told["dead-letter-source-topic"], told["dead-letter-source-partition"]) == (NAMES.commands.encode(), b"0")
    assert (told["dead-letter-source-offset"], told["dead-letter-reason"]) == (b"42", b"topic missing does not exist")


async def test_what_a_cycle_stores_is_what_the_changelog_has(partition: Partition) -> None:
    """Rebuilding from the changelog gives the table that the cycles made."""
    log: list[tuple[bytes, bytes | None]] = []
    for now in (AT, AT + 1, AT + HOUR):
        await partition.run(
            *[
                command(due_at(AT + place), *TO_REMINDERS, key=b"%d" % place, offset=now - AT + place)
                for place in (0, 1, 2, 10 * HOUR)
            ],
            command(value=None, key=b"2"),
            now=now,
        )
        log += [(record.key, record.value) for record in partition.sent(CHANGELOG)]
    rebuilt = ScheduleTable(MemoryStore())
    overlay = Overlay(rebuilt)
    for key, value in log:
        overlay.replay(key, value)
    overlay.apply(changelog_offset=len(log), complete_at=AT)
    found = [encode_entry(each) for _, each in rebuilt.by_due("default")]
    assert found == [encode_entry(each) for _, each in partition.table.by_due("default")]
    assert len(found) == partition.table.pending == rebuilt.pending == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("allowed", [{}, {"a": 1}, {"a": 2}, {"a": 3, "b": 7}, {"a": 100}])
async def test_turns_of_a_series_stay_in_their_tenants_order_however_few_there_may_be_in_a_cycle(
    partition: Partition, limit: int, allowed: dict[str, int]
) -> None:
    def of(tenant: bytes) -> tuple[str, bytes]:
        return "schedule-tenant", tenant

    target: Headers = [*TO_REMINDERS, ("schedule-target-partition", b"0")]
    series: Headers = [("schedule-every", b"2000"), ("schedule-start", b"%d" % AT), ("schedule-misfire", b"all")]
    commands = []
    for tenant in (b"a", b"b"):
        commands.append(command(*series, *target, of(tenant), key=b"series"))
        commands += [command(due_at(AT + place * 1_000), *target, of(tenant), key=b"%d" % place) for place in range(10)]
    await partition.run(*commands, now=AT - 1)
    fired: list[tuple[str, int]] = []
    while len(fired) < 30:
        await partition.run(now=AT + 9_999, limit=limit, allowed=allowed)
        sent = [dict(record.headers) for record in partition.sent("reminders")]
        fired += [(headers["schedule-tenant"].decode(), int(headers["schedule-due"])) for headers in sent]
        assert 0 < len(sent) <= limit
        for who, most in Counter(headers["schedule-tenant"].decode() for headers in sent).items():
            assert most <= allowed.get(who, limit)
    for name in "ab":
        dues = [due - AT for each, due in fired if each == name]
        assert dues == sorted([*range(0, 10_000, 1_000), *range(0, 10_000, 2_000)])


async def test_a_cycle_is_let_go_of_without_the_garbage_collector(producer: FakeProducer) -> None:
    partition = Partition(producer)
    gc.disable()
    try:
        kept = weakref.ref(await partition.run(command(due_at(AT), *TO_REMINDERS)))
        assert kept() is None
    finally:
        gc.enable()
