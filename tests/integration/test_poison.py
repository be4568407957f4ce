"""Firings that their targets refuse: each waits for its next try by itself, and nothing else notices.

The workers' minute ends some seconds after the first refusal; what is tried again is tried when it has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from support.application import Application
from support.clocks import MINUTE
from support.reading import Record, header, read_all, read_until

from light_scheduler.devkit import EmbeddedBroker
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.model import EventType, HistoryEvent

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

GOOD = 90
EVERY_MS = 100
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


@pytest.mark.soak
async def test_what_its_target_refuses_is_tried_again_in_the_next_minute_and_holds_nothing_up(
    application: Application,
) -> None:
    small, compacted = f"{application.target}-small", f"{application.target}-compacted"
    await application.create_topic(small, partitions=1, **{"max.message.bytes": "20000"})
    await application.create_topic(compacted, partitions=1, **{"cleanup.policy": "compact"})
    later = f"{application.target}-later"
    clock = application.drive_clock(behind=2 * MINUTE)
    worker = await application.start_worker()
    again_at = clock.let_minute_end_in(8_000)
    due = clock.now() + 3_000
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

    await clock.reaches(due + 1_500)
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


def allow(topic: str, operation: AclOperation) -> AclBinding:
    """Return a rule after which nobody may do anything else with the topic."""
    everybody = "User:ANONYMOUS"
    literally = ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, topic, literally, everybody, "*", operation, AclPermissionType.ALLOW)


def set_rules(bootstrap_servers: str, *rules: AclBinding) -> None:
    admin = admin_client(bootstrap_servers)
    for future in admin.create_acls(list(rules)).values():
        future.result(30)


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
        set_rules(
            broker.bootstrap_servers,
            allow(topics["hidden"], AclOperation.ALTER),
            allow(topics["read-only"], AclOperation.READ),
            allow(topics["soon-allowed"], AclOperation.READ),
        )
        try:
            clock = application.drive_clock(behind=2 * MINUTE)
            await application.start_worker()
            clock.let_minute_end_in(9_000)
            due = clock.now() + 3_000
            await send_good(application, due - 5 * EVERY_MS)
            async with application.sender() as send:
                for id, topic in topics.items():
                    for copy in range(3):
                        await send("same", b"x", id=f"{id} {copy}", at=due, target_topic=topic)

            await clock.reaches(due + 2_500)
            set_rules(broker.bootstrap_servers, allow(topics["soon-allowed"], AclOperation.WRITE))
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
