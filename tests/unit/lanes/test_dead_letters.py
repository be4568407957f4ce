from __future__ import annotations

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
from light_scheduler.lanes.context.lane_context import OriginKey
from light_scheduler.lanes.writes.rejection import LONGEST_REPEATED
from light_scheduler.model import (
    DeadLetter,
    DeadLetterCause,
    EventType,
    Headers,
    Outcome,
)
from light_scheduler.wire import decode_dead_letter
from light_scheduler.wire.redrive import redriven_firing
from light_scheduler.wire.state import (
    SCHEDULE_KIND,
    identity,
)


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


KINDS: dict[str, Headers] = {
    "once": [due_at(AT)],
    "acknowledged": [due_at(AT), ("schedule-ack-timeout", b"1m")],
    "a fixed delay": [("schedule-every", b"1h"), ("schedule-mode", b"fixed-delay"), ("schedule-start", b"%d" % AT)],
    "the first attempt of a backoff": [("schedule-backoff", b"1h,2h"), ("schedule-start", b"%d" % (AT - HOUR))],
    "the second attempt of a backoff": [("schedule-backoff", b"1h,2h"), ("schedule-start", b"%d" % (AT - 3 * HOUR))],
}


@pytest.mark.parametrize("key", [b"a", b"b", b"\xff"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_redriven_firing_has_the_headers_that_it_would_have_been_delivered_with(
    producer: FakeProducer, kind: str, key: bytes
) -> None:
    async def last_run(*, is_refused: bool) -> Partition:
        partition = Partition(producer)
        begun = AT - 5 * HOUR
        accepted = command(*KINDS[kind], *TO_REMINDERS, ("schedule-id", b"a"), ("h", b"1"), key=key, timestamp=begun)
        await partition.run(accepted, now=begun)
        while (wakes_at := partition.wakes_at) is not None and wakes_at < AT:
            await partition.run(now=wakes_at)
        refusals: dict[OriginKey, str] = {("default", "a", AT, attempt): "no" for attempt in (1, 2)}
        await partition.run(now=AT, refusals=refusals if is_refused else None)
        return partition

    (delivered,) = (await last_run(is_refused=False)).sent("reminders")
    refused = await last_run(is_refused=True)
    (sent,), (event,) = refused.sent(NAMES.dead_letters), refused.history[:1]
    letter, source = decode_dead_letter(sent)
    assert event.event is EventType.DEAD_LETTERED
    value, headers = redriven_firing(letter, source, refused.dialect, "0-7", event, AT)
    *before, last = headers
    marked = [
        (name, text + b":0-7" if name == "schedule-delivery-id" and text else text) for name, text in delivered.headers
    ]
    assert (value, before, last) == (delivered.value, marked, ("schedule-redriven-from", b"0-7"))


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


@pytest.mark.parametrize(("payload", "is_kept"), [(b"x" * 100, True), (b"x" * 1_000, False)])
async def test_a_schedule_key_that_makes_a_dead_letter_too_large_is_left_out_first(
    partition: Partition, payload: bytes, is_kept: bool
) -> None:
    partition.topics[NAMES.dead_letters] = topic(2, 1_000)
    await partition.run(
        command(
            due_at(AT),
            ("schedule-id", b"a"),
            ("schedule-target-topic", b"missing"),
            ("schedule-target-key", b"k"),
            ("schedule-ack-timeout", b"1m"),
            key=b"k" * 800,
            value=payload,
        )
    )
    (sent,) = partition.sent(NAMES.dead_letters)
    assert (sent.key, sent.value) == ((b"k", payload) if is_kept else (None, None))
    told = letter_of(sent)
    assert "dead-letter-schedule-key-base64" not in told
    what = b"key of the schedule" if is_kept else b"key, value and headers"
    assert sent.headers[-1] == ("dead-letter-dropped", what + b": too large for this topic")
    assert told["dead-letter-source-offset"] == b"42"
