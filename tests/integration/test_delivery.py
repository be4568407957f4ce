"""What reaches a target topic: when, how often, and with which bytes. Real broker, real `faust worker`."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.clocks import MINUTE
from support.garbled import GarbledBatch
from support.reading import Record, header, read_all, read_until

from light_scheduler.clock import SystemClock
from light_scheduler.model import EventType, Outcome
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_history, parse_firing

pytestmark = pytest.mark.integration


@contextmanager
def sharing(kafka: Kafka, folder: Path, **options: str) -> Iterator[Application]:
    """Run one worker for several tests, each of which has a target of its own."""
    application = asyncio.run(Application.create(kafka.bootstrap_servers, folder))
    try:
        asyncio.run(application.start_worker(**options))
        yield application
    finally:
        application.close()


@pytest.fixture(scope="module")
def shared(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with sharing(kafka, tmp_path_factory.mktemp("shared")) as application:
        yield application


@pytest.fixture(scope="module")
def shared_impatient(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with sharing(kafka, tmp_path_factory.mktemp("impatient"), delivery_retries="0") as application:
        yield application


@pytest.fixture
async def served(shared: Application) -> Application:
    """The application of several tests, with a target of this one's own."""
    return await with_own_target(shared)


@pytest.fixture
async def impatient(shared_impatient: Application) -> Application:
    """The same with a worker that tries nothing again: what is refused is a dead letter at once."""
    return await with_own_target(shared_impatient)


async def with_own_target(application: Application) -> Application:
    own = replace(application, target=f"{application.target}-{uuid.uuid4().hex[:8]}")
    await own.create_topic(own.target)
    return own


def now() -> int:
    return SystemClock().now()


async def fired(application: Application, count: int, topic: str | None = None) -> list[Record]:
    """Wait for a number of firings."""
    return await read_until(
        application.bootstrap_servers, [topic or application.target], lambda records: len(records) >= count
    )


async def dead_letters(application: Application, are_wanted: Callable[[Record], bool], count: int = 1) -> list[Record]:
    """Wait for a number of dead letters of one test's own."""
    topic = application.settings.topics.dead_letters

    def wanted(records: list[Record]) -> list[Record]:
        return [record for record in records if are_wanted(record)]

    found = await read_until(application.bootstrap_servers, [topic], lambda records: len(wanted(records)) >= count)
    return wanted(found)


async def everything_fired(application: Application, key: str) -> list[Record]:
    """Return all firings, after one more schedule of the same key has been set and delivered."""
    async with application.client() as client:
        await client.schedule("last", b"last", topic=application.target, at=now(), key=key)

    def has_last(records: list[Record]) -> bool:
        return any(record.value == b"last" for record in records)

    await read_until(application.bootstrap_servers, [application.target], has_last)
    records = await read_all(application.bootstrap_servers, application.target)
    assert has_last(records)
    return [record for record in records if record.value != b"last"]


async def test_payload_key_and_headers_reach_the_target_as_they_came(served: Application) -> None:
    binary = bytes(range(256))
    user_headers = [("trace", b"\x00\xff"), ("trace", b"again"), ("empty", b""), ("null", None)]
    producer = AIOKafkaProducer(bootstrap_servers=served.bootstrap_servers)
    await producer.start()
    due = now() + 300
    base = [("schedule-at", b"%d" % due), ("schedule-target-topic", served.target.encode())]
    try:
        for key, value in ((b"binary", binary), (b"empty", b""), (b"tombstone", None), (b"\xfe\xff", b"raw key")):
            named = [] if key.isascii() else [("schedule-id", b"raw")]
            await producer.send(served.settings.topics.commands, value, key, headers=[*base, *named, *user_headers])
        await producer.send(
            served.settings.topics.commands, b"null key", b"null", headers=[*base, ("schedule-target-key", None)]
        )
    finally:
        await producer.stop()

    records = {parse_firing(record).id: record for record in await fired(served, 5)}

    assert {id: (record.key, record.value) for id, record in records.items()} == {
        "binary": (b"binary", binary),
        "empty": (b"empty", b""),
        "tombstone": (b"tombstone", None),
        "raw": (b"\xfe\xff", b"raw key"),
        "null": (None, b"null key"),
    }
    for id in ("binary", "empty", "tombstone", "raw"):
        assert parse_firing(records[id]).headers == user_headers
        assert header(records[id], "schedule-firing-id") == f"{id}@{due}"
        assert parse_firing(records[id]).fired_at >= due


async def test_an_update_to_later_never_fires_at_the_old_time_and_one_to_earlier_at_the_new(
    served: Application,
) -> None:
    async with served.client() as client:
        start = now()
        await client.schedule("later", b"old", topic=served.target, at=start + 8_000)
        await client.schedule("earlier", b"old", topic=served.target, at=start + 3_600_000)
        later = await client.schedule("later", b"new", topic=served.target, at=start + 9_500)
        earlier = await client.schedule("earlier", b"new", topic=served.target, at=start + 8_500)
    assert (later.outcome, later.version, later.next_due) == (Outcome.UPDATED, 2, start + 9_500)
    assert (earlier.outcome, earlier.version) == (Outcome.UPDATED, 2)

    records = await fired(served, 2)

    assert [
        (header(r, "schedule-id"), r.value, header(r, "schedule-version"))
        for r in sorted(records, key=lambda r: int(header(r, "schedule-due") or 0))
    ] == [
        ("earlier", b"new", "2"),
        ("later", b"new", "2"),
    ]
    for record in records:
        due = start + (9_500 if record.key == b"later" else 8_500)
        assert header(record, "schedule-due") == str(due)
        assert record.timestamp >= due


async def test_a_cancel_before_due_delivers_nothing_and_says_so(served: Application) -> None:
    async with served.client() as client:
        await client.schedule("gone", b"no", topic=served.target, at=now() + 8_000, key="k")
        cancelled = await client.cancel("gone", key="k")
        again = await client.cancel("gone", key="k")
        never = await client.cancel("never-was", key="k")
        # Back to back, without waiting for an answer in between.
        await client.schedule("quick", b"no", topic=served.target, after="8s", key="k", wait=False)
        quick = await client.cancel("quick", key="k")
        await client.schedule("fence", b"yes", topic=served.target, after="8200ms", key="k")
    assert cancelled.outcome is Outcome.CANCELLED
    assert again.outcome is Outcome.NOT_FOUND
    assert never.outcome is Outcome.NOT_FOUND
    assert quick.outcome is Outcome.CANCELLED

    records = await fired(served, 1)

    assert [record.value for record in records] == [b"yes"]


async def test_a_null_value_cancels(served: Application) -> None:
    async with served.client() as client:
        await client.schedule("emptied", b"no", topic=served.target, at=now() + 60_000)
    producer = AIOKafkaProducer(bootstrap_servers=served.bootstrap_servers)
    await producer.start()
    await producer.send_and_wait(served.settings.topics.commands, None, b"emptied")
    await producer.stop()

    def told(records: list[Record]) -> list[EventType]:
        events = [decode_history(record.value) for record in records]
        return [event.event for event in events if event.id == "emptied"]

    history = await read_until(
        served.bootstrap_servers, [served.settings.topics.history], lambda records: len(told(records)) >= 2
    )

    assert told(history) == [EventType.SCHEDULED, EventType.CANCELLED]


async def test_commands_sent_while_all_workers_are_down_take_effect_before_anything_due_is_fired(
    application: Application,
) -> None:
    clock = application.drive_clock(behind=MINUTE)
    worker = await application.start_worker()
    async with application.client() as client:
        await client.schedule("overdue", b"no", topic=application.target, at=now(), key="k")  # a minute ahead there
        await worker.end()
        await client.schedule("waiting", b"old", topic=application.target, after=0, key="k", wait=False)
        await client.schedule_many(
            {"id": f"filler-{number}", "topic": application.target, "after": "1h", "key": "k"}
            for number in range(5_000)
        )
        await client.cancel("overdue", key="k", wait=False)
        await client.schedule("waiting", b"new", topic=application.target, after=0, key="k", wait=False)
    clock.advance(MINUTE)

    worker.start()
    await worker.ready()
    records = await everything_fired(application, "k")

    assert [record.value for record in records] == [b"new"]


async def test_state_that_was_deleted_is_rebuilt_from_the_changelog(application: Application) -> None:
    clock = application.drive_clock(behind=2 * MINUTE)
    worker = await application.start_worker()
    async with application.client() as client:
        soon = clock.now() + 100
        await client.schedule_many(
            {"id": f"soon-{number}", "payload": b"soon", "topic": application.target, "at": soon}
            for number in range(200)
        )
        await fired(application, 200)
        due = clock.now() + MINUTE
        await client.schedule_many(
            {"id": f"later-{number}", "payload": b"later", "topic": application.target, "at": due}
            for number in range(200)
        )
        await client.schedule("cancelled", b"no", topic=application.target, at=due)
        await client.cancel("cancelled")
    await worker.end()
    for path in sorted((worker.data_dir / application.settings.app_id).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

    worker.start()
    await worker.ready()
    info = await worker.get("/info")
    clock.advance_to(due)
    records = await fired(application, 400)

    assert sum(lane["restore"]["records"] for lane in info["lanes"]) >= 200
    fired_ids = Counter(
        header(record, "schedule-id") for record in await read_all(application.bootstrap_servers, application.target)
    )
    assert set(fired_ids.values()) == {1}
    assert len(fired_ids) == len(records) == 400


async def test_bad_input_is_answered_and_kept_and_holds_nothing_up(impatient: Application) -> None:
    commands, target = impatient.settings.topics.commands, impatient.target.encode()
    producer = AIOKafkaProducer(bootstrap_servers=impatient.bootstrap_servers, max_request_size=8_000_000)
    await producer.start()
    due = now() + 1_000
    at = ("schedule-at", b"%d" % due)
    to = ("schedule-target-topic", target)
    bad = {
        "unknown topic": (b"{}", [at, ("schedule-target-topic", b"does-not-exist")]),
        "too large": (b"x" * 3_000_000, [at, to]),
        "garbage header": (b"", [at, to, ("schedule-ttl", b"\xff\xfe")]),
        "typo": (b"", [at, to, ("schedule-atx", b"1")]),
        "seconds": (b"", [("schedule-at", b"1700000000"), to]),
        "random bytes": (b"\x00\x01\xfe", []),
        "no such partition": (b"", [at, to, ("schedule-target-partition", b"99")]),
    }
    try:
        for index, (name, (value, headers)) in enumerate(bad.items()):
            await producer.send(commands, value, name.encode(), headers=headers, partition=0)
            await producer.send(commands, b"good", b"good-%d" % index, headers=[at, to], partition=0)
        await producer.send(commands, b"", b"\xff\xff", headers=[at, to], partition=0)
        await producer.send(commands, b"good", b"good-last", headers=[at, to], partition=0)
        await producer.flush()
        sent = now()
    finally:
        await producer.stop()

    good = await fired(impatient, len(bad) + 1)
    keys = {b"\xff\xff", *map(str.encode, bad)}
    dead = await dead_letters(impatient, lambda letter: letter.key in keys, len(keys))

    assert {record.value for record in good} == {b"good"}
    assert max(record.timestamp for record in good) - max(due, sent) < 2_000
    letters = {record.key: record for record in dead}
    fields = {
        key: (header(record, "dead-letter-cause"), header(record, "dead-letter-field"))
        for key, record in letters.items()
    }
    assert fields == {
        b"unknown topic": ("refused", None),
        b"too large": ("rejected", "payload"),
        b"garbage header": ("rejected", "schedule-ttl"),
        b"typo": ("rejected", "schedule-atx"),
        b"seconds": ("rejected", "schedule-at"),
        b"random bytes": ("rejected", "schedule-target-topic"),
        b"no such partition": ("refused", None),
        b"\xff\xff": ("rejected", "schedule-id"),
    }
    assert letters[b"too large"].value == b"x" * 3_000_000
    assert letters[b"random bytes"].value == b"\x00\x01\xfe"


async def test_a_topic_that_refuses_a_record_gets_the_others_and_the_refused_one_is_a_dead_letter(
    impatient: Application,
) -> None:
    """Nothing foretells the refusal: the topic has been looked up before it became one that takes no null keys."""
    changing = f"{impatient.target}-changing"
    await impatient.create_topic(changing, partitions=1)
    async with impatient.client() as client:
        await client.schedule("first", b"first", topic=changing, after=0)
        await fired(impatient, 1, changing)
        await impatient.configure_topic(changing, **{"cleanup.policy": "compact"})
        due = now() + 2_000
        for number in range(20):
            key = None if number == 7 else "key"
            await client.schedule(
                f"c-{number}", b"%d" % number, topic=changing, at=due, target_key=key, key="same", wait=False
            )

    records = await fired(impatient, 20, changing)
    dead = await dead_letters(impatient, lambda letter: (header(letter, "dead-letter-id") or "").startswith("c-"))

    assert [record.value for record in records[1:]] == [b"%d" % number for number in range(20) if number != 7]
    assert [(header(record, "dead-letter-id"), record.value) for record in dead] == [("c-7", b"7")]
    (worker,) = impatient.workers
    assert sum(lane["restarts"] for lane in (await worker.get("/info"))["lanes"]) >= 1, "the broker refused it"


async def test_a_payload_just_below_the_limit_of_its_target_is_delivered_and_one_above_is_a_dead_letter(
    impatient: Application,
) -> None:
    small = f"{impatient.target}-small"
    await impatient.create_topic(small, partitions=1, **{"max.message.bytes": "20000"})
    async with impatient.client() as client:
        for number in range(30):  # together far more than the topic takes in one batch
            await client.schedule(f"ok-{number}", b"x" * 5_000, topic=small, after=500, key="same", wait=False)
        await client.schedule("large", b"x" * 30_000, topic=small, after=500, key="same")

    records = await fired(impatient, 30, small)
    dead = await dead_letters(impatient, lambda letter: header(letter, "dead-letter-id") == "large")

    assert {header(record, "schedule-id") for record in records} == {f"ok-{number}" for number in range(30)}
    assert "20000" in (header(dead[0], "dead-letter-reason") or "")


async def test_firings_that_are_due_together_come_in_the_order_of_their_commands(served: Application) -> None:
    single = f"{served.target}-single"
    await served.create_topic(single, partitions=1)
    due = now() + 1_500
    async with served.client() as client:
        await client.schedule_many(
            {"id": f"{number}", "payload": b"%d" % number, "topic": single, "at": due, "key": "same"}
            for number in range(300)
        )

    records = await fired(served, 300, single)

    assert [record.value for record in records] == [b"%d" % number for number in range(300)]


async def test_an_expired_firing_is_recorded_and_not_delivered(application: Application) -> None:
    async with application.client() as client:
        await client.schedule(
            "stale", b"no", topic=application.target, at=now() - 5_000, ttl=1_000, key="k", wait=False
        )
    await application.start_worker()

    records = await everything_fired(application, "k")
    assert records == []
    await read_until(
        application.bootstrap_servers,
        [application.settings.topics.history],
        lambda history: any(decode_history(record.value).event is EventType.EXPIRED for record in history),
    )


async def test_what_lies_before_the_lookback_is_a_dead_letter_with_reason_missed(kafka: Kafka, tmp_path: Path) -> None:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, lookback_minutes="1")
    try:
        async with application.client() as client:
            await client.schedule("old", b"old", topic=application.target, at=now() - 180_000, key="k", wait=False)
            await client.schedule("recent", b"recent", topic=application.target, at=now() - 1_000, key="k", wait=False)
        await application.start_worker()
        records = await everything_fired(application, "k")
        dead = await read_all(application.bootstrap_servers, application.settings.topics.dead_letters)
    finally:
        application.close()

    assert [record.value for record in records] == [b"recent"]
    assert [(header(record, "dead-letter-cause"), record.value) for record in dead] == [("missed", b"old")]


async def test_several_commands_topics_have_lanes_and_dialects_of_their_own(kafka: Kafka, tmp_path: Path) -> None:
    first, second = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("native", "json"))
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, commands_topics=f"{first}:native,{second}:json"
    )
    try:
        await application.start_worker()
        async with application.client(commands_topic=first) as client:
            await client.schedule("a", b"native", topic=application.target, after=0)
        producer = AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait(
            second,
            b'{"id": "a", "trigger": {"after": "100ms"}, "target": {"topic": "%s"}, "payload": {"json": {"n": 1}}}'
            % application.target.encode(),
            b"key",
        )
        await producer.stop()
        records = await fired(application, 2)
    finally:
        application.close()

    assert {(header(record, "schedule-source-topic"), record.value) for record in records} == {
        (first, b"native"),
        (second, b'{"n": 1}'),
    }


async def test_due_times_are_met_within_a_fraction_of_a_second(served: Application) -> None:
    start = time.monotonic()
    async with served.client() as client:
        begin = now() + 3_000
        dues = [begin + 200 * number for number in range(40)]
        for number, due in enumerate(dues):
            await client.schedule(f"t-{number}", b"", topic=served.target, at=due, wait=False)

    records = await fired(served, 40)

    lateness = sorted(
        int(header(record, "schedule-fired-at") or 0) - int(header(record, "schedule-due") or 0) for record in records
    )
    assert lateness[0] >= 0
    assert lateness[len(lateness) // 2] < 1_000, "the median; the machine may stall a few"
    assert time.monotonic() - start < 30


async def test_a_header_whose_name_is_not_utf_8_is_rejected_and_what_follows_is_delivered(served: Application) -> None:
    commands = served.settings.topics.commands
    single = f"{served.target}-single"
    await served.create_topic(single, partitions=1)
    headers = [("schedule-after", b"100ms"), ("schedule-target-topic", single.encode())]
    before, bad, after = ([("schedule-id", name), *headers] for name in (b"before", b"bad", b"after"))
    garbled = GarbledBatch(100_000, 0, is_transactional=0)
    garbled.append(timestamp=None, key=b"entity", value=b"before", headers=before)
    garbled.append(timestamp=None, key=b"entity", value=b"bad", headers=[*bad, ("garbled", b"")])
    producer = AIOKafkaProducer(bootstrap_servers=served.bootstrap_servers, enable_idempotence=False)
    await producer.start()
    try:
        first = await (await producer.send_batch(garbled, commands, partition=0))
        await producer.send_and_wait(commands, b"after", b"entity", headers=after, partition=0)
    finally:
        await producer.stop()

    records = await fired(served, 2, single)
    dead = await dead_letters(served, lambda letter: header(letter, "schedule-unreadable") is not None)

    assert [record.value for record in records] == [b"before", b"after"]
    assert [header(record, "dead-letter-source-offset") for record in dead] == [str(first.offset + 1)]
    assert "UTF-8" in (header(dead[0], "schedule-unreadable") or "")


async def test_a_reply_topic_that_refuses_a_result_costs_only_that_result(served: Application) -> None:
    replies = f"{served.target}-replies"
    await served.create_topic(replies, partitions=1, **{"cleanup.policy": "compact"})
    producer = AIOKafkaProducer(bootstrap_servers=served.bootstrap_servers)
    await producer.start()
    headers = [
        ("schedule-after", b"0"),
        ("schedule-target-topic", served.target.encode()),
        ("schedule-reply-topic", replies.encode()),
    ]
    try:
        # Its result has the command's key, which is null: a compacted topic takes no such record.
        await producer.send_and_wait(
            served.settings.topics.commands, b"keyless", headers=[*headers, ("schedule-id", b"a")], partition=0
        )
        await producer.send_and_wait(served.settings.topics.commands, b"keyed", b"b", headers=headers, partition=0)
    finally:
        await producer.stop()

    records = await fired(served, 2)
    results = await read_until(served.bootstrap_servers, [replies], lambda records: len(records) >= 1)

    assert {record.value for record in records} == {b"keyless", b"keyed"}
    assert [record.key for record in results] == [b"b"]
    (worker,) = served.workers
    await worker.shows(lambda info: sum(lane["lost_results"] for lane in info["lanes"]) == 1)
