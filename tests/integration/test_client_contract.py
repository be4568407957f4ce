"""One suite over all clients: asyncio and blocking, against one real worker and against the scheduler in memory.

With `--every-case` blocking clients also log in, each with the rights of a producer only.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.acls import grant
from support.application import Application
from support.client_kinds import InThreads
from support.least_rights import producer_rights
from support.reading import read_until
from support.secured import SecuredKafka
from support.waiting import eventually

from light_scheduler.client import (
    BlockingSchedulerClient,
    CommandRefused,
    Receipt,
    ResultTimeout,
    SchedulerClient,
    ScheduleRequest,
)
from light_scheduler.client.blocking_producer import BlockingProducer
from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.deadline import Deadline
from light_scheduler.connection import Connection
from light_scheduler.errors import ClientError, InvalidCommand
from light_scheduler.model import EventType, Outcome
from light_scheduler.settings import ENVIRONMENT_PREFIX, load_settings
from light_scheduler.testing import BlockingInMemoryScheduler, InMemoryScheduler, Kafka
from light_scheduler.wire import parse_firing, partition_for

pytestmark = pytest.mark.integration

LOGINS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
KINDS = (
    *("asyncio", "blocking", "memory", "blocking memory"),
    *(pytest.param(f"blocking, {kind}", marks=pytest.mark.every_case) for kind in LOGINS),
)
THREADS = 16


@pytest.fixture(scope="module")
def served(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """One application with one worker, for all tests."""
    application = asyncio.run(Application.create(kafka.bootstrap_servers, tmp_path_factory.mktemp("contract")))
    asyncio.run(application.start_worker())
    yield application
    application.close()


@pytest.fixture(scope="module")
def unread(served: Application) -> str:
    """A topic that takes commands and that no worker reads."""
    topic = f"{served.settings.app_id}-unread"
    asyncio.run(served.create_topic(topic))
    return topic


@pytest.fixture(scope="module")
def served_securely(secured: SecuredKafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """An application with one worker on a Kafka where one may do what one has rights to."""
    application = asyncio.run(Application.create(secured.servers, tmp_path_factory.mktemp("served")))
    for kind in LOGINS:
        grant(secured.servers, secured.principal(kind), producer_rights(application.settings))
    asyncio.run(application.start_worker())
    yield application
    application.close()


def logged_in_client(secured: SecuredKafka, served: Application, kind: str) -> BlockingSchedulerClient:
    options = {f"{ENVIRONMENT_PREFIX}{name.upper()}": value for name, value in secured.settings(kind).items()}
    connection = load_settings({}, environment=options).connection
    return BlockingSchedulerClient(connection, app_id=served.settings.app_id, url=served.workers[0].url)


def blocking_client(served: Application, **options: Any) -> BlockingSchedulerClient:
    url = served.workers[0].url
    return BlockingSchedulerClient(served.bootstrap_servers, app_id=served.settings.app_id, url=url, **options)


@dataclass
class Subject:
    """A client, the topic that it may deliver to, and what has been delivered there of one id."""

    client: Any
    topic: str
    delivered: Callable[[str], Any]

    def id(self) -> str:
        """Return an id that no other test has."""
        return f"id-{uuid.uuid4().hex[:12]}"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def behind(kind: str, request: pytest.FixtureRequest) -> tuple[Application, Callable[[], Any]]:
    """The application that a kind of client is for, and what makes one; those in memory are made otherwise."""
    _, _, login = kind.partition(", ")
    served: Application = request.getfixturevalue("served_securely" if login else "served")
    if login:
        secured: SecuredKafka = request.getfixturevalue("secured")
        return served, lambda: InThreads(logged_in_client(secured, served, login))
    if kind == "asyncio":
        return served, lambda: served.client(url=served.workers[0].url)
    return served, lambda: InThreads(blocking_client(served))


@pytest.fixture
async def subject(kind: str, behind: tuple[Application, Callable[[], Any]]) -> AsyncIterator[Subject]:
    served, make_client = behind
    if "memory" in kind:
        double: Any = InThreads(BlockingInMemoryScheduler()) if "blocking" in kind else InMemoryScheduler()

        async def delivered_there(id: str) -> list[Any]:
            await double.advance(milliseconds=1)
            return [record for record in double.delivered if parse_firing(record).id == id]

        yield Subject(double, served.target, delivered_there)
        return

    async def delivered(id: str) -> list[Any]:
        def of_id(records: list[Any]) -> list[Any]:
            return [record for record in records if parse_firing(record).id == id]

        return of_id(
            await read_until(served.bootstrap_servers, [served.target], lambda records: len(of_id(records)) > 0)
        )

    client = make_client()
    async with client:
        yield Subject(client, served.target, delivered)


async def test_every_command_is_answered_by_its_own_result(subject: Subject) -> None:
    client, id, topic = subject.client, subject.id(), subject.topic
    results = [
        await client.schedule(id, b"pay!", topic=topic, after="1h"),
        await client.schedule(id, b"pay!", topic=topic, after="2h", expected_version=1),
        await client.reschedule(id, every="1h", expected_version=2),
        await client.pause(id),
        await client.resume(id),
        await client.cancel(id),
        await client.cancel(id),
        await client.trigger(id),
    ]
    assert {result.id for result in results} == {id}
    assert " ".join(result.outcome for result in results) == (
        "scheduled updated rescheduled paused resumed cancelled not_found not_found"
    )
    assert [result.version for result in results[:3]] == [1, 2, 3]


async def test_a_refusal_raises_unless_it_is_asked_for_as_a_result(subject: Subject) -> None:
    client, id, topic = subject.client, subject.id(), subject.topic
    await client.schedule(id, topic=topic, after="1h")
    with pytest.raises(CommandRefused) as caught:
        await client.schedule(id, topic=topic, after="1h", on_conflict="fail")
    assert caught.value.result.outcome is Outcome.CONFLICT
    refused = await client.cancel(id, expected_version=7, raise_on_refusal=False)
    assert refused.outcome is Outcome.CONFLICT


async def test_a_wrong_argument_is_refused_before_anything_is_sent(subject: Subject) -> None:
    client, topic = subject.client, subject.topic
    for call in (
        lambda: client.schedule("a", topic=topic, at=1_767_225_600),
        lambda: client.schedule("a", topic=topic, nonsense=1),
        lambda: client.schedule("a", "text", topic=topic),
        lambda: client.send_later("k", b"v", topic, "90"),
        client.cancel_many,
        lambda: client.pause("a", sooner=True),
    ):
        with pytest.raises(InvalidCommand):
            await call()


async def test_without_waiting_a_receipt_names_the_record(subject: Subject) -> None:
    receipt = await subject.client.schedule(subject.id(), topic=subject.topic, after="1h", key="k", wait=False)
    assert isinstance(receipt, Receipt)
    assert receipt.partition == partition_for(b"k", 4)


async def test_a_record_for_later_arrives_with_key_value_and_headers(subject: Subject) -> None:
    for key, when in (("k", timedelta(0)), (b"\xff", "1ms"), (None, datetime(2020, 1, 1, tzinfo=UTC))):
        receipt = await subject.client.send_later(
            key, b"\x00v", subject.topic, when, headers={"h": b"\xff"}, timeout=20
        )
        (record,) = await subject.delivered(receipt.id)
        assert (record.key, record.value) == (key.encode() if isinstance(key, str) else key, b"\x00v")
        assert ("h", b"\xff") in list(record.headers)


async def test_many_are_answered_in_the_order_of_the_requests(subject: Subject) -> None:
    prefix, topic = subject.id(), subject.topic
    requests: list[ScheduleRequest] = [{"id": f"{prefix}-{n}", "topic": topic, "after": "1h"} for n in range(300)]
    receipts = await subject.client.schedule_many(requests)
    again = await subject.client.schedule_many([*requests, {**requests[0], "on_conflict": "fail"}], wait=True)
    assert [receipt.id for receipt in receipts] == [request["id"] for request in requests]
    assert [result.outcome for result in again] == [Outcome.UPDATED] * 300 + [Outcome.CONFLICT]
    assert (await subject.client.pause_many(id_prefix=prefix)).count == 300
    assert (await subject.client.cancel_many(id_prefix=prefix)).count == 300
    assert (await subject.client.cancel_many(id_prefix=prefix)).count == 0


async def test_a_stream_is_answered_one_by_one(subject: Subject) -> None:
    prefix = subject.id()
    requests = ({"id": f"{prefix}-{n}", "topic": subject.topic, "after": "1h"} for n in range(50))
    answers = [answer async for answer in subject.client.schedule_each(requests, wait=True)]
    assert [(answer.id, answer.outcome) for answer in answers] == [
        (f"{prefix}-{n}", Outcome.SCHEDULED) for n in range(50)
    ]


async def test_a_firing_is_completed_once(subject: Subject) -> None:
    client, id = subject.client, subject.id()
    await client.schedule(id, b"job", topic=subject.topic, after=0, ack_timeout="10m", max_attempts=3)
    (record,) = await subject.delivered(id)
    firing = parse_firing(record)
    assert (await client.extend(firing)).outcome is Outcome.UPDATED
    assert (await client.extend(firing, "2h")).outcome is Outcome.UPDATED
    assert (await client.complete(firing)).outcome is Outcome.COMPLETED
    assert (await client.complete(firing)).outcome is Outcome.NOT_FOUND
    assert (await client.extend(firing)).outcome is Outcome.NOT_FOUND


async def test_a_pending_schedule_is_shown_with_its_payload_and_headers(subject: Subject) -> None:
    client, id = subject.client, f"{subject.id()}/ä b?"
    await client.schedule(id, b"\xff", topic=subject.topic, at="2100-01-01T00:00:00Z", headers={"h": b"1", "n": None})
    shown = await client.get(id)
    assert (shown.id, shown.version, shown.due, shown.state) == (id, 1, 4_102_444_800_000, "pending")
    assert (shown.payload, shown.headers) == (b"\xff", [("h", b"1"), ("n", None)])
    assert (shown.target.topic, shown.target.key) == (subject.topic, id)
    assert await client.get(f"{id}-nothing") is None


async def test_a_list_follows_the_pages_of_the_whole_cluster(subject: Subject) -> None:
    client, prefix = subject.client, subject.id()
    at = 4_102_444_800_000
    await client.schedule_many(
        (
            {"id": f"{prefix}-{n:04}", "topic": subject.topic, "at": at - n, "labels": {"half": str(n % 2)}}
            for n in range(2_300)
        ),
        wait=True,
    )
    ids = [f"{prefix}-{n:04}" for n in range(2_300)]
    assert [each.id async for each in client.list(id_prefix=prefix)] == ids
    assert [each.id async for each in client.list(id_prefix=prefix, labels={"half": "1"})] == ids[1::2]
    due = client.list(id_prefix=prefix, sort="due", due_from=at - 3, due_to=datetime(2100, 1, 1, tzinfo=UTC))
    assert [each.id async for each in due] == [ids[3], ids[2], ids[1]]
    assert [each.id async for each in client.list(id_prefix=prefix, state="paused")] == []
    for wrong in ({"id_prefix": "\0"}, {"sort": "size"}, {"nonsense": "1"}, {"target_topic": 5}, {"due_from": 5}):
        with pytest.raises(InvalidCommand):
            _ = [each async for each in client.list(**wrong)]


async def test_a_preview_is_computed_by_the_engine(subject: Subject) -> None:
    client, friday = subject.client, "2026-03-27T00:00:00Z"
    due = await client.preview(cron="0 9 * * 1-5", timezone="Europe/Prague", accepted=friday, count=2)
    assert due == [1_774_598_400_000, 1_774_854_000_000]
    again = await client.preview(every=timedelta(minutes=5), max_firings=1, accepted=1_774_598_400_000)
    assert again == [1_774_598_700_000]
    with pytest.raises(InvalidCommand, match=r"trigger\.cron"):
        await client.preview(cron="61 * * * *")
    assert len(await client.preview(every="1m", count=1_000)) == 1_000
    for count in (-1, 0, 1_001):
        with pytest.raises(InvalidCommand, match=r"^count: "):
            await client.preview(every="1m", count=count)


async def test_the_history_of_an_id_is_told_backwards(subject: Subject) -> None:
    client, id = subject.client, subject.id()
    begun = await client.schedule(id, topic=subject.topic, at="2100-01-01T00:00:00Z")
    await client.schedule(f"{id}-other", topic=subject.topic, at="2100-01-01T00:00:00Z")
    await client.reschedule(id, at="2100-01-02T00:00:00Z")
    await client.cancel(id)
    told = [event async for event in client.history_of(id)]
    assert [event.event.value for event in told] == ["cancelled", "updated", "scheduled"]
    assert {event.id for event in told} == {begun.id}
    versions = client.history_of(id, events=[EventType.SCHEDULED, EventType.UPDATED])
    assert [event.version async for event in versions] == [2, 1]
    since = told[0].at
    assert {event.at for event in told if event.at >= since} == {
        event.at async for event in client.history_of(id, since=str(since))
    }
    with pytest.raises(InvalidCommand, match="since"):
        _ = [event async for event in client.history_of(id, since="yesterday")]


async def test_why_is_told_in_sentences(subject: Subject) -> None:
    client, id = subject.client, subject.id()
    begun = await client.schedule(id, topic=subject.topic, at="2100-01-01T00:00:00Z")
    told = await client.why(id)
    assert (told.tenant, told.id, told.state, told.next_due) == (begun.tenant, begun.id, "pending", 4_102_444_800_000)
    assert told.summary.startswith("It fires next at 2100-01-01T00:00:00.000Z (in ")
    await client.cancel(id)
    told = await client.why(id)
    assert (told.state, told.next_due, told.complete) == ("cancelled", None, True)
    assert [event.event for event in told.events] == [EventType.SCHEDULED, EventType.CANCELLED]
    accepted = f"Accepted as version 1, for topic {subject.topic}: due 2100-01-01T00:00:00.000Z."
    assert [event.text for event in told.events] == [accepted, "Cancelled."]
    assert (await client.why(id, since="2100-01-01T00:00:00Z")).state == "unknown"
    with pytest.raises(InvalidCommand, match="since"):
        await client.why(id, since="yesterday")


async def test_dead_letters_are_listed_shown_and_sent_again(subject: Subject) -> None:
    client, id = subject.client, subject.id()
    past = {"at": "2020-01-01T00:00:00Z", "on_past": "reject"}
    await client.schedule(id, b"x", topic=subject.topic, headers={"h": b"1"}, wait=False, **past)

    async def letters(count: int) -> list[Any] | None:
        found = [each async for each in client.list_dead_letters(id=id, cause="rejected")]
        return found if len(found) == count else None

    found = await eventually(lambda: letters(1), every=0.1)
    shown = await client.get_dead_letter(found[0].letter)
    assert (shown.kind, shown.cause, shown.id, shown.payload) == ("command", "rejected", id, b"x")
    assert ("h", b"1") in shown.headers
    sent = await client.redrive(shown.letter)
    assert (sent.topic, sent.partition) == (shown.source.topic, shown.source.partition)
    again = await eventually(lambda: letters(2), every=0.1)
    assert again[1].letter == shown.letter
    assert await client.get_dead_letter("0-999999999") is None
    with pytest.raises(ClientError, match="no dead letter"):
        await client.redrive("0-999999999")
    with pytest.raises(InvalidCommand, match="since"):
        _ = [each async for each in client.list_dead_letters(since="yesterday")]


async def test_the_history_tells_of_dead_letters_that_are_sent_again(subject: Subject) -> None:
    client, id = subject.client, subject.id()
    await client.schedule(id, b"x", topic=subject.topic, after=0, ack_timeout="1ms", max_attempts=1)
    await subject.delivered(id)

    async def letters() -> list[Any]:
        return [each async for each in client.list_dead_letters(id=id, cause="unacknowledged")]

    [letter] = await eventually(letters, every=0.1)
    assert (await client.redrive(letter.letter)).topic == subject.topic

    async def events_of_both() -> list[Any] | None:
        """A transaction is answered before its records can be read."""
        found = [event async for event in client.history_of(id)]
        return found if [event.event.value for event in found].count("fired") >= 2 else None

    events = await eventually(events_of_both, every=0.1)
    told = [(event.event.value, event.due, event.sequence, event.attempt, event.partition) for event in events]
    assert told[0] == ("fired", letter.due, 1, 1, events[-1].partition)
    assert events[0].reason == f"redriven from dead letter {letter.letter}"
    assert [event.event.value for event in events].count("fired") == 2


async def test_periodic_jobs_keep_their_version_until_they_change(subject: Subject) -> None:
    client, name, group = subject.client, subject.id(), subject.id()
    client.cron("0 9 * * 1-5", name=name, topic=subject.topic, timezone="Europe/Prague")(print)
    assert [str(await client.sync(group)), str(await client.sync(group))] == [
        f"+ {name} cron=0 9 * * 1-5 timezone=Europe/Prague topic={subject.topic}\n= 0 unchanged",
        "= 1 unchanged",
    ]
    await client.reschedule(name, cron="0 10 * * *")
    await client.schedule(name, topic=subject.topic, every="1h", labels={"job-group": group})
    await client.sync(group, remove=True)
    (row,) = [row async for row in client.list(labels={"job-group": group})]
    assert (row.version, row.trigger["cron"]) == (4, "0 9 * * 1-5")


async def test_history_is_followed(subject: Subject) -> None:
    client, id = subject.client, subject.id()
    await client.schedule(id, topic=subject.topic, after="1h")
    await client.cancel(id)
    seen = []
    async with asyncio.timeout(30), aclosing(client.watch(id_prefix=id, from_beginning=True)) as events:
        async for event in events:
            seen.append(event.event)
            if len(seen) == 2:
                break
    assert seen == [EventType.SCHEDULED, EventType.CANCELLED]


def test_threads_share_a_client_and_each_gets_its_own_answers(served: Application) -> None:
    prefix = uuid.uuid4().hex
    together = threading.Barrier(THREADS)

    with blocking_client(served) as client:

        def work(thread: int) -> list[str | None]:
            together.wait(30)
            ids = []
            for n in range(20):
                key = f"key-{thread % 3}"
                id = f"{prefix}-{thread}-{n}"
                ids.append(client.schedule(id, topic=served.target, after="1h", key=key).id)
                ids.append(client.cancel(id, key=key).id)
            return ids

        with ThreadPoolExecutor(THREADS) as pool:
            answers = list(pool.map(work, range(THREADS)))
    for thread, ids in enumerate(answers):
        assert ids == [f"{prefix}-{thread}-{n // 2}" for n in range(40)]


async def test_thousands_of_calls_at_once_each_get_their_own_answer(
    served: Application, request: pytest.FixtureRequest
) -> None:
    count, prefix = request.config.getoption("--concurrent-calls"), uuid.uuid4().hex
    async with served.client() as client:
        calls = (client.schedule(f"{prefix}-{n}", topic=served.target, after="1h", timeout=120) for n in range(count))
        results = await asyncio.gather(*calls)
        assert [result.id for result in results] == [f"{prefix}-{n}" for n in range(count)]
        assert (await client.cancel_many(id_prefix=prefix)).count == count


def test_librdkafka_chooses_the_partitions_of_every_other_client(served: Application) -> None:
    keys = [b"", b"a", b"ab", b"abc", b"abcd", "köy".encode(), bytes(range(256)), *(b"key-%d" % n for n in range(40))]
    producer = BlockingProducer(Connection(served.bootstrap_servers).renewed_librdkafka({}), 1_000_000)
    try:
        for key in keys:
            command = CommandToSend("default", "a", key, b"", [("schedule-command", b"cancel"), ("schedule-id", b"a")])
            receipt = producer.send(served.settings.topics.commands, command, Deadline(20)).result(20)
            assert receipt.partition == partition_for(key, 4), key
    finally:
        assert producer.close(10) == []


def test_a_blocking_call_that_nobody_answers_says_where_its_command_is(served: Application, unread: str) -> None:
    with blocking_client(served, commands_topic=unread) as client:
        client.cancel("nor-this", wait=False)  # so that the topic is known and the next one is sent at once
        with pytest.raises(ResultTimeout) as caught:
            client.cancel("nobody-reads-this", timeout=5)
    assert caught.value.receipt.id == "nobody-reads-this"


def test_closing_ends_blocking_calls_that_wait(served: Application, unread: str) -> None:
    client = blocking_client(served, commands_topic=unread)
    client.start()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.cancel, "nobody-reads-this-either", timeout=60)
        asyncio.run(eventually(lambda: client._channel._answers is not None and client._channel._answers._waiting))
        client.close()
        assert "the client was closed" in str(waiting.exception(60))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("light-scheduler")]


@pytest.mark.parametrize("make", [SchedulerClient, BlockingSchedulerClient])
async def test_a_command_may_be_as_large_as_its_client_is_told(
    served: Application, unread: str, make: Callable[..., Any]
) -> None:
    await served.configure_topic(unread, **{"max.message.bytes": "4000000"})
    for options, is_taken in (({}, False), ({"max_request_bytes": 3_000_000}, True)):
        client = make(served.bootstrap_servers, app_id=served.settings.app_id, commands_topic=unread, **options)
        async with client if make is SchedulerClient else InThreads(client) as opened:
            sending = opened.schedule("large", bytes(2_000_000), topic="t", after="1h", wait=False)
            if is_taken:
                assert (await sending).id == "large"
            else:
                with pytest.raises(InvalidCommand, match="too large"):
                    await sending
