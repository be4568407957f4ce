"""etf1's own scheduler and this one side by side: the same records to both, and their messages field by field.

Both deliver to the same topics: what a message came from is in its header `scheduler-topic`, the only field that has to
differ.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.etf1 import Etf1Scheduler, book_with_client, etf1_scheduler
from support.foreign import Headers
from support.reading import Record, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.testing import Kafka

pytestmark = pytest.mark.integration

DAY_S = 86_400
LEAD_S = 15
"""Seconds until the first message is due: more than it takes to send all records."""

LAST = "the last"
CASE = "case"
"""A header that says what a record is there for."""


def now_s() -> int:
    return SystemClock().now() // 1_000


class Sent(NamedTuple):
    """A record for both schedulers, without the header `CASE`."""

    key: bytes
    value: bytes | None
    headers: Headers


@dataclass(frozen=True)
class Targets:
    """Topics to deliver to."""

    first: str
    second: str

    def headers(self, due: int | str | None, key: bytes | None = b"target-key", topic: str | None = None) -> Headers:
        """Return the headers of a schedule; a due time in seconds, or none, and a target key, or none."""
        told: Headers = [] if due is None else [("scheduler-epoch", str(due).encode())]
        told.append(("scheduler-target-topic", (topic or self.first).encode()))
        return told if key is None else [*told, ("scheduler-target-key", key)]


def delivered_by_both(to: Targets, due: int) -> dict[str, list[Sent]]:
    """Return records after which both deliver the same, by what they show. Each has ids of its own."""
    told = to.headers
    user: Headers = [("x", b"\x00\xff\xfe"), ("none", None), ("empty", b""), ("twice", b"1"), ("twice", b"2")]
    own: Headers = [("scheduler-key", b"mine"), ("scheduler-timestamp", b"1"), ("scheduler-topic", b"mine")]
    again = Sent(b"again", b"second", told(due + 1))
    return {
        "text": [Sent(b"text", b"hello", told(due))],
        "bytes": [Sent(b"bytes", bytes(range(256)), told(due, bytes(range(256))))],
        "large": [Sent(b"large", b"\x00" * 500_000, told(due))],
        "no payload": [Sent(b"no payload", b"", told(due))],
        "headers of all kinds": [Sent(b"headers", b"x", user + told(due))],
        "headers that are added, given by the sender": [Sent(b"own", b"x", told(due) + own)],
        "no target key": [Sent(b"no target key", b"x", told(due, None))],
        "empty target key": [Sent(b"empty target key", b"x", told(due, b""))],
        "another topic": [Sent(b"another", b"x", told(due, topic=to.second))],
        "an id that is no text": [Sent(b"\xff\x00", b"x", told(due))],
        "an id with spaces": [Sent(b" a b ", b"x", told(due))],
        "an id in base64": [Sent(b"base64:YQ==", b"x", told(due))],
        "a sign before the seconds": [Sent(b"sign", b"x", told(f"+{due}"))],
        "zeros before the seconds": [Sent(b"zeros", b"x", told(f"000{due}"))],
        "two due times": [Sent(b"two", b"x", [*told(due), ("scheduler-epoch", b"%d" % (due + DAY_S))])],
        "two targets": [Sent(b"targets", b"x", [*told(due), ("scheduler-target-topic", to.second.encode())])],
        "replaced by a later one": [Sent(b"later", b"old", told(due)), Sent(b"later", b"new", told(due + 2))],
        "replaced by a sooner one": [Sent(b"sooner", b"old", told(due + 2)), Sent(b"sooner", b"new", told(due))],
        "replaced by another target": [
            Sent(b"moved", b"old", told(due)),
            Sent(b"moved", b"new", told(due, b"other", to.second)),
        ],
        "deleted": [Sent(b"deleted", b"x", told(due)), Sent(b"deleted", None, [])],
        "deleted with headers": [Sent(b"deleted 2", b"x", told(due)), Sent(b"deleted 2", None, told(due))],
        "deleted, then scheduled again": [Sent(b"again", b"first", told(due)), Sent(b"again", None, []), again],
        "deleted and never there": [Sent(b"never there", None, [])],
        "moved to another day": [Sent(b"day", b"x", told(due)), Sent(b"day", b"x", told(due + 10 * DAY_S))],
    }


def refused_by_both(to: Targets, due: int) -> dict[str, list[Sent]]:
    """Return records that neither delivers, by what is wrong."""
    told = to.headers
    return {
        "empty id": [Sent(b"", b"x", told(due))],
        "blank id": [Sent(b"  ", b"x", told(due))],
        "no due time": [Sent(b"no due time", b"x", told(None))],
        "empty due time": [Sent(b"empty due time", b"x", told(""))],
        "words": [Sent(b"words", b"x", told("soon"))],
        "a fraction": [Sent(b"fraction", b"x", told(f"{due}.5"))],
        "a space": [Sent(b"space", b"x", told(f" {due}"))],
        "an underscore": [Sent(b"underscore", b"x", told(f"{due // 10}_{due % 10}"))],
        "negative": [Sent(b"negative", b"x", told(-due))],
        "milliseconds": [Sent(b"milliseconds", b"x", told(due * 1_000))],
        "too large": [Sent(b"too large", b"x", told("9" * 30))],
        "no target": [Sent(b"no target", b"x", told(due)[:1])],
        "a target that cannot be": [Sent(b"target", b"x", told(due, topic="a b"))],
        "a target that is not there": [Sent(b"missing", b"x", told(due, topic=f"{to.first}-missing"))],
    }


def kept_by_ours(to: Targets, due: int) -> dict[str, list[Sent]]:
    """Return records after which only ours delivers: what it refuses leaves the schedule of its id as it was."""
    told = to.headers
    return {
        "a schedule, then words": [Sent(b"kept 1", b"x", told(due)), Sent(b"kept 1", b"y", told("soon"))],
        "a schedule, then milliseconds": [Sent(b"kept 2", b"x", told(due)), Sent(b"kept 2", b"y", told(due * 1_000))],
    }


def past(to: Targets) -> dict[str, list[Sent]]:
    """Return records that are past: both refuse them within a second of the record's timestamp."""
    return {
        "past": [Sent(b"past", b"x", to.headers(now_s() - 60))],
        "days ago": [Sent(b"days ago", b"x", to.headers(now_s() - 2 * DAY_S))],
    }


def waited(to: Targets, due: int) -> dict[str, list[Sent]]:
    """Return records that were written while no scheduler ran."""
    told, before = to.headers, now_s() - 60
    return {
        "waited, past": [Sent(b"waited past", b"x", told(before))],
        "waited, to come": [Sent(b"waited", b"x", told(due))],
        "waited, deleted": [Sent(b"waited deleted", b"x", told(before)), Sent(b"waited deleted", None, [])],
        "waited, replaced": [Sent(b"waited old", b"old", told(before)), Sent(b"waited old", b"new", told(due))],
        "waited, without a payload": [Sent(b"waited empty", b"", told(before))],
        "waited, no due time": [Sent(b"waited bad", b"x", told(None))],
    }


class Message(NamedTuple):
    """All of a message but the topic that its schedule came from, and when it was delivered."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


Messages = dict[str, list[Message]]
"""By what their records are there for."""


def messages(records: list[Record], source: str) -> Messages:
    """Return what was delivered of the records of a topic."""
    found: Messages = defaultdict(list)
    for record in records:
        headers = tuple(record.headers)
        if headers[-1] == ("scheduler-topic", source.encode()):
            case = dict(headers)[CASE].decode()
            found[case].append(Message(record.topic, record.key, record.value, headers[:-1]))
    return {case: sorted(each, key=repr) for case, each in found.items()}


def is_whole(sources: tuple[str, str], records: list[Record]) -> bool:
    """Return whether the last message of both schedulers has come."""
    return all(LAST in messages(records, source) for source in sources)


def never_early(records: list[Record]) -> bool:
    """Return whether each message was delivered at its due time or later, by the first of its headers."""
    return all(record.timestamp >= int(dict(reversed(record.headers))["scheduler-epoch"]) * 1_000 for record in records)


class Both:
    """Two commands topics that get the same records, one for each scheduler."""

    def __init__(self, producer: AIOKafkaProducer, topics: tuple[str, str]) -> None:
        self._producer = producer
        self.topics = topics

    async def send(self, cases: dict[str, list[Sent]], waited_s: int = 0) -> None:
        """Send records to both, as written some time ago."""
        at, acknowledged = SystemClock().now() - waited_s * 1_000, []
        for case, sent in cases.items():
            for key, value, headers in sent:
                marked = [(CASE, case.encode()), *headers]
                acknowledged += [
                    await self._producer.send(topic, value, key, headers=marked, timestamp_ms=at)
                    for topic in self.topics
                ]
        await asyncio.gather(*acknowledged)


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path) -> AsyncIterator[Application]:
    topic = f"beside-{tmp_path.name[-8:]}-{SystemClock().now()}"
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=f"{topic}:etf1")
    yield application
    application.close()


@pytest.fixture
async def both(application: Application) -> AsyncIterator[Both]:
    (ours,) = (source.name for source in application.settings.inputs)
    theirs = f"{ours}-theirs"
    await application.create_topic(theirs, 1, **{"cleanup.policy": "compact"})
    producer = await started_producer({"bootstrap_servers": application.bootstrap_servers})
    yield Both(producer, (theirs, ours))
    await stop_producer(producer)


@pytest.fixture
async def history(application: Application) -> str:
    """The topic of etf1's scheduler for copies of what it delivers."""
    name = f"{application.target}-history"
    await application.create_topic(name, 1)
    return name


async def test_the_same_records_give_the_same_messages(
    application: Application, both: Both, history: str, tmp_path: Path
) -> None:
    targets = Targets(application.target, f"{application.target}-2")
    await application.create_topic(targets.second, 1)
    await both.send(waited(targets, now_s() + DAY_S // 48), waited_s=10)
    servers, (theirs, ours) = application.bootstrap_servers, both.topics
    async with etf1_scheduler(servers, theirs, history, tmp_path / "etf1.log") as scheduler:
        worker = await application.start_worker()
        await eventually(partial(_has, scheduler, "waited"), every=0.1, what="etf1's scheduler to read its topic")
        due = now_s() + LEAD_S
        await both.send(delivered_by_both(targets, due) | refused_by_both(targets, due) | kept_by_ours(targets, due))
        await both.send(past(targets), waited_s=-60)  # so that it is no record that has waited, however slow this is
        await both.send({LAST: [Sent(b"the last", b"x", targets.headers(due + 4))]})
        assert now_s() < due, "the records took too long to send"
        records = await read_until(servers, [targets.first, targets.second], partial(is_whole, both.topics))
        shown = by_id(await scheduler.schedules()), by_id(await worker.get("/schedules"))
    of_theirs, of_ours = messages(records, theirs), messages(records, ours)
    ended = {"deleted", "deleted with headers", "deleted and never there", "moved to another day"}
    late = {"waited, past", "waited, without a payload"}
    assert of_theirs.keys() == (delivered_by_both(targets, due).keys() - ended) | late | {LAST}
    assert {case: of_ours.get(case) for case in of_theirs} == of_theirs
    assert of_ours.keys() - of_theirs.keys() == kept_by_ours(targets, due).keys()
    assert never_early(records)
    assert shown[1].pop("missing")["target-topic"] not in (targets.first, targets.second)  # it is tried again
    assert shown[1] == shown[0]
    assert shown[0].keys() == {"waited", "waited old"}


async def test_the_records_of_etf1s_own_client_give_the_same_messages(
    application: Application, both: Both, history: str, tmp_path: Path
) -> None:
    servers, (theirs, ours) = application.bootstrap_servers, both.topics
    waiting = {"waited": [Sent(b"waited", b"x", Targets(application.target, "").headers(now_s() + DAY_S // 48))]}
    await both.send(waiting)
    async with etf1_scheduler(servers, theirs, history, tmp_path / "etf1.log") as scheduler:
        await application.start_worker()
        await eventually(partial(_has, scheduler, "waited"), every=0.1, what="etf1's scheduler to read its topic")
        await book_with_client(servers, application.target, now_s() + LEAD_S, both.topics)
        records = await read_until(servers, [application.target], partial(is_whole, both.topics))
    of_theirs, of_ours = messages(records, theirs), messages(records, ours)
    assert of_theirs.keys() == {"new", "updated", "no key", "retry", "second retry", LAST}
    assert of_ours == of_theirs
    assert never_early(records)
    attempts = {case: dict(of_ours[case][0].headers)["retry-attempt"] for case in ("retry", "second retry")}
    assert attempts == {"retry": b"1", "second retry": b"2"}


async def _has(scheduler: Etf1Scheduler, id: str) -> bool:
    return id in by_id(await scheduler.schedules())


def by_id(schedules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return schedules without the topic that each is in."""
    return {each["id"]: {name: value for name, value in each.items() if name != "topic"} for each in schedules}
