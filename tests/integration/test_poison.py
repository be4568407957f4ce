"""Firings that their targets refuse: each waits for its next try by itself, and nothing else notices.

The workers' minute ends some seconds after the first refusal; what is tried again is tried when it has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.acls import grant
from support.application import Application
from support.clocks import MINUTE, end_of_minute
from support.reading import Record, header, read_all, read_until

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.kafka.rights import Operation, Right
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import decode_history

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.timeout(240)]

GOOD = 90
EVERY_MS = 200
AGAIN_AFTER_MS = 12_000
"""How long after it is due the minute of what is refused ends: time to change what refuses it."""
LARGE = 30_000


def lateness(record: Record) -> int:
    return int(header(record, "schedule-fired-at") or 0) - int(header(record, "schedule-due") or 0)


def of(history: list[HistoryEvent], id: str) -> list[HistoryEvent]:
    return [event for event in history if event.id == id and event.event is not EventType.SCHEDULED]


async def send_good(application: Application, first_due: int, key: str = "same") -> None:
    """Send what nobody refuses, due one after another, all in the partition of `key`."""
    async with application.sender() as send:
        for number in range(GOOD):
            due = first_due + number * EVERY_MS
            await send(key, b"%d" % number, id=f"good-{number}", at=due, target_topic=application.target)


async def check_good(application: Application) -> None:
    """Every good one came once, in order, and none had to wait for a bad one."""
    good = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= GOOD, timeout=90
    )
    assert Counter(record.value for record in good) == {b"%d" % number: 1 for number in range(GOOD)}
    dues = [int(header(record, "schedule-due") or 0) for record in good]
    assert dues == sorted(dues)
    assert max(map(lateness, good)) < 3_000
    assert sum(map(lateness, good)) / GOOD < 500


async def retried(application: Application, ids: Iterable[str]) -> None:
    """Wait until every one of these was refused, and waits for the next minute."""
    wanted = set(ids)

    def are_told(records: list[Record]) -> bool:
        events = [decode_history(record.value) for record in records]
        return {event.id for event in events if event.event is EventType.RETRIED} >= wanted

    await read_until(application.bootstrap_servers, [application.settings.topics.history], are_told, timeout=90)


async def dead_letters(application: Application, ids: Iterable[str]) -> dict[str, Record]:
    """Wait until every one of these is a dead letter; return them all, by id."""
    wanted = set(ids)
    records = await read_until(
        application.bootstrap_servers,
        [application.settings.topics.dead_letters],
        lambda records: {header(record, "dead-letter-id") for record in records} >= wanted,
        timeout=90,
    )
    letters = {header(record, "dead-letter-id") or "": record for record in records}
    assert len(letters) == len(records)
    return letters


async def test_what_its_target_refuses_is_tried_again_in_the_next_minute_and_holds_nothing_up(
    application: Application,
) -> None:
    small, compacted = f"{application.target}-small", f"{application.target}-compacted"
    await application.create_topic(small, partitions=1, **{"max.message.bytes": "20000"})
    await application.create_topic(compacted, partitions=1, **{"cleanup.policy": "compact"})
    later = f"{application.target}-later"
    clock = application.drive_clock(behind=2 * MINUTE)
    worker = await application.start_worker()
    again_at = end_of_minute(clock.now() + MINUTE)
    due = again_at - AGAIN_AFTER_MS
    poison: dict[str, tuple[bytes, dict[str, object]]] = {
        "unknown topic": (b"x", {"target_topic": f"{application.target}-missing"}),
        "no such partition": (b"x", {"target_topic": application.target, "target_partition": 99}),
        "too large": (b"x" * LARGE, {"target_topic": small}),
        "invalid": (b"x", {"target_topic": compacted, "target_key": None}),
    }
    await send_good(application, due - 5 * EVERY_MS)
    async with application.sender() as send:
        for id, (value, target) in poison.items():
            await send("same", value, id=id, at=due, **target)
        await send("same", b"in time", id="made in time", at=due, target_topic=later)
        await send("same", b"keyed", id="keyed", at=due, target_topic=compacted, target_key="k")
        await send("same", b"fits", id="fits", at=due, target_topic=small)
        await send("same", b"series", id="series", every=2_000, start=due, max_firings=3, target_topic=later)

    clock.advance_to(due - 4_000)
    await retried(application, ["made in time", "series"])
    await application.create_topic(later, partitions=1)
    letters = await dead_letters(application, poison)
    await check_good(application)
    assert letters.keys() == poison.keys()
    assert all(header(letter, "dead-letter-cause") == "refused" for letter in letters.values())
    assert {id: letter.value for id, letter in letters.items()} == {id: value for id, (value, _) in poison.items()}
    reasons = {id: header(letter, "dead-letter-reason") or "" for id, letter in letters.items()}
    assert f"{application.target}-missing does not exist" in reasons["unknown topic"]
    assert "has no partition 99" in reasons["no such partition"]
    assert "takes at most 20000" in reasons["too large"]
    assert compacted in reasons["invalid"]

    came = await read_until(application.bootstrap_servers, [later], lambda records: len(records) >= 4)
    assert [(record.value, header(record, "schedule-sequence")) for record in came if record.value == b"series"] == [
        (b"series", str(number)) for number in (1, 2, 3)
    ]
    assert Counter(record.value for record in came) == {b"in time": 1, b"series": 3}
    assert all(header(record, "schedule-attempt") == "1" for record in came)
    assert [record.value for record in await read_all(application.bootstrap_servers, compacted)] == [b"keyed"]
    assert [record.value for record in await read_all(application.bootstrap_servers, small)] == [b"fits"]
    check_tries(await application.history(), reasons, due, again_at)
    info = await worker.get("/info")
    assert all((lane["state"], lane["restarts"]) == ("running", 0) for lane in info["lanes"]), (
        "all was known beforehand"
    )


def check_tries(history: list[HistoryEvent], reasons: dict[str, str], due: int, again_at: int) -> None:
    """What was refused for these reasons was tried again in the next minute, and only then given up."""
    for id, reason in reasons.items():
        first, last = of(history, id)
        assert (first.event, last.event) == (EventType.RETRIED, EventType.DEAD_LETTERED)
        assert first.due == last.due == due <= first.at < again_at <= last.at
        assert last.at - again_at < 5_000
        assert first.reason == last.reason == reason
    assert [event.event for event in of(history, "made in time")] == [EventType.RETRIED, EventType.FIRED]
    assert [(event.event, event.due) for event in of(history, "series")] == [
        (EventType.RETRIED, due),
        (EventType.FIRED, due),
        (EventType.FIRED, due + 2_000),
        (EventType.FIRED, due + 4_000),
        (EventType.FINISHED, due + 4_000),
    ]


async def allow_alone(broker: EmbeddedBroker, topic: str, operation: Operation) -> None:
    """Have everybody do this with a topic, beside what was allowed before, and nothing else."""
    await asyncio.to_thread(grant, broker.bootstrap_servers, "User:ANONYMOUS", [Right("topic", topic, (operation,))])


@pytest.mark.every_case
async def test_a_topic_that_the_scheduler_may_not_write_to_holds_nothing_up(tmp_path: Path) -> None:
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with EmbeddedBroker(properties=properties) as broker:
        application = await Application.create(broker.bootstrap_servers, tmp_path)
        topics = {id: f"{application.target}-{id}" for id in ("hidden", "read-only", "soon-allowed")}
        for topic in topics.values():
            await application.create_topic(topic, partitions=1)
        await allow_alone(broker, topics["hidden"], "Alter")
        await allow_alone(broker, topics["read-only"], "Read")
        await allow_alone(broker, topics["soon-allowed"], "Read")
        try:
            clock = application.drive_clock(behind=2 * MINUTE)
            await application.start_worker()
            due = end_of_minute(clock.now() + MINUTE) - AGAIN_AFTER_MS
            await send_good(application, due - 5 * EVERY_MS)
            async with application.sender() as send:
                for id, topic in topics.items():
                    for copy in range(3):
                        await send("same", b"x", id=f"{id} {copy}", at=due, target_topic=topic)

            clock.advance_to(due - 4_000)
            await retried(application, (f"soon-allowed {copy}" for copy in range(3)))
            await allow_alone(broker, topics["soon-allowed"], "Write")
            wanted = [f"{id} {copy}" for id in ("hidden", "read-only") for copy in range(3)]
            letters = await dead_letters(application, wanted)
            await check_good(application)
            came = await read_until(
                broker.bootstrap_servers, [topics["soon-allowed"]], lambda records: len(records) >= 3
            )
            history = await application.history()
        finally:
            application.close()

    assert sorted(letters) == sorted(wanted)
    reasons = {id: header(letter, "dead-letter-reason") for id, letter in letters.items()}
    assert all("uthori" in (reason or "") for reason in reasons.values()), reasons
    assert len(came) == 3
    for id in wanted:
        assert [event.event for event in of(history, id)] == [EventType.RETRIED, EventType.DEAD_LETTERED]
    for copy in range(3):
        assert [event.event for event in of(history, f"soon-allowed {copy}")] == [EventType.RETRIED, EventType.FIRED]
    assert {event.event for event in history if (event.id or "").startswith("good")} == {
        EventType.SCHEDULED,
        EventType.FIRED,
    }
