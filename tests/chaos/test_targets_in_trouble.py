"""Targets that are deleted, or narrow about timestamps, while firings are due: only their own ones wait."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.acls import grant, revoke
from support.application import Application, WorkerProcess
from support.clocks import MINUTE
from support.placing import delete_topic, place_topic
from support.reading import Record, header, read_all, read_until
from support.waiting import eventually

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.devkit import EmbeddedCluster
from light_scheduler.kafka.rights import Right
from light_scheduler.model import EventType, HistoryEvent

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

DETECTION_MS = 3_000
PUNCTUAL_MS = 1_500
RETURN_MS = 5_000
HEALTHY, FRAIL = 200, 80
SPREAD_MS = 20_000
EVERYBODY = "User:ANONYMOUS"
WITH_ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
UNDISTURBED = {EventType.SCHEDULED, EventType.FIRED, EventType.FINISHED}


async def schedule(application: Application, frail: str, clock: Clock, **others: str) -> int:
    """Schedule firings for a good target, a frail one and others over the next seconds; return when they begin."""
    start = clock.now() + 3_000
    targets = [("healthy", application.target, HEALTHY), ("frail", frail, FRAIL)]
    targets += [(name, topic, FRAIL) for name, topic in others.items()]
    async with application.client() as client:
        await client.schedule_many(
            {"id": f"{name}-{number}", "payload": b"x", "topic": topic, "at": start + number * SPREAD_MS // count}
            for name, topic, count in targets
            for number in range(count)
        )
    return start


def number_of(record: Record, name: str) -> int:
    return int(header(record, f"schedule-{name}") or 0)


def ids_of(records: Iterable[Record]) -> Counter[str | None]:
    return Counter(header(record, "schedule-id") for record in records)


async def check_healthy(application: Application, since: int) -> None:
    """Every one came once; what was due some seconds after an instant was punctual."""
    records = await read_until(
        application.bootstrap_servers, [application.target], lambda records: len(records) >= HEALTHY, timeout=60
    )
    assert ids_of(records) == {f"healthy-{number}": 1 for number in range(HEALTHY)}
    lateness = sorted(
        number_of(record, "fired-at") - due
        for record in records
        if (due := number_of(record, "due")) >= since + DETECTION_MS
    )
    assert len(lateness) > HEALTHY // 4
    assert lateness[math.ceil(0.99 * len(lateness)) - 1] <= PUNCTUAL_MS


def frail_events(history: list[HistoryEvent]) -> list[HistoryEvent]:
    return [event for event in history if (event.id or "").startswith("frail")]


def tells_all_fired(history: list[HistoryEvent]) -> bool:
    return sum(event.event is EventType.FIRED for event in frail_events(history)) >= FRAIL


def retried(history: list[HistoryEvent]) -> list[HistoryEvent]:
    return [event for event in frail_events(history) if event.event is EventType.RETRIED]


async def many_wait(worker: WorkerProcess) -> None:
    """Return when a worker says that a part of all firings waits for targets."""
    await worker.shows(lambda info: sum(target["waiting"] for target in info.get("targets", [])) > FRAIL // 4)


@pytest.mark.soak
async def test_a_target_that_is_deleted_and_created_again_gets_what_was_due_meanwhile(application: Application) -> None:
    """Beside it is one with the time of appending, which gets each firing once and not early."""
    servers, clock = application.bootstrap_servers, SystemClock()
    frail, stamped = f"{application.target}-frail", f"{application.target}-stamped"
    await application.create_topic(frail)
    await application.create_topic(stamped, partitions=4, **{"message.timestamp.type": "LogAppendTime"})
    worker = await application.start_worker()
    start = await schedule(application, frail, clock, stamped=stamped)
    await read_until(servers, [frail], lambda records: len(records) >= FRAIL // 4)

    await asyncio.to_thread(delete_topic, servers, frail)
    deleted_at = clock.now()
    await many_wait(worker)
    await application.create_topic(frail)
    created_at = clock.now()

    await check_healthy(application, deleted_at)
    waited = {f"frail-{number}" for number in range(FRAIL) if start + number * SPREAD_MS // FRAIL >= deleted_at}
    came = await read_until(servers, [frail], lambda records: ids_of(records).keys() >= waited)
    events = frail_events(await application.whole_history(tells_all_fired))
    assert len(waited) > FRAIL // 3
    assert set(ids_of(came).values()) == {1}
    assert {header(record, "schedule-attempt") for record in came} == {"1"}
    late = [record for record in came if number_of(record, "due") < created_at]
    assert len(late) > FRAIL // 5
    assert max(number_of(record, "fired-at") for record in late) <= created_at + RETURN_MS
    assert Counter(event.id for event in events if event.event is EventType.FIRED) == {
        f"frail-{number}": 1 for number in range(FRAIL)
    }
    assert {event.event for event in events} <= UNDISTURBED, "nothing was refused: the topic was away"
    came = await read_until(servers, [stamped], lambda records: len(records) >= FRAIL)
    assert ids_of(came) == {f"stamped-{number}": 1 for number in range(FRAIL)}
    assert all(record.timestamp >= number_of(record, "due") for record in came)


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_target_that_refuses_a_workers_timestamps_holds_up_nobody_else(application: Application) -> None:
    servers = application.bootstrap_servers
    frail = f"{application.target}-frail"
    narrow = {"message.timestamp.before.max.ms": "2000", "message.timestamp.after.max.ms": "2000"}
    await application.create_topic(frail, partitions=4, **narrow)
    clock = application.drive_clock(behind=4 * MINUTE)
    worker = await application.start_worker()
    clock.let_minute_end_in(45_000)
    start = await schedule(application, frail, clock)

    await check_healthy(application, start)
    await clock.reaches(start + SPREAD_MS + 2_000)
    assert await read_all(servers, frail) == []
    await application.configure_topic(frail, **dict.fromkeys(narrow, "86400000"))
    clock.let_minute_end_in(1_000)
    came = await read_until(servers, [frail], lambda records: len(records) >= FRAIL, timeout=90)
    dead = await read_all(servers, application.settings.topics.dead_letters)
    info = await worker.get("/info")

    assert ids_of(came) == {f"frail-{number}": 1 for number in range(FRAIL)}
    assert dead == []
    assert all(lane["state"] == "running" for lane in info["lanes"])


@pytest.mark.soak
@pytest.mark.every_case
async def test_a_right_that_is_revoked_while_a_target_is_away_holds_up_nobody_else(tmp_path: Path) -> None:
    """What a dropped marker left open cannot be settled then, until the right is back."""
    with EmbeddedCluster(2, properties=WITH_ACLS) as cluster:
        servers, (stays, goes) = cluster.bootstrap_servers, cluster.nodes
        application = await Application.create(servers, tmp_path, replication_factor="2")
        frail = f"{application.target}-frail"
        await asyncio.to_thread(place_topic, servers, frail, (2,), {})
        try:
            clock = application.drive_clock(behind=4 * MINUTE)
            worker = await application.start_worker()
            await asyncio.to_thread(cluster.wait_in_sync)
            clock.let_minute_end_in(55_000)
            await schedule(application, frail, clock)
            await read_until(servers, [frail], lambda records: len(records) >= FRAIL // 4)

            await asyncio.to_thread(goes.kill)
            await many_wait(worker)
            lost_at = clock.now()
            await asyncio.to_thread(grant, stays.bootstrap_servers, EVERYBODY, [Right("topic", frail, ("Read",))])
            await asyncio.to_thread(goes.start)

            await check_healthy(application, lost_at)

            async def are_refused() -> list[HistoryEvent]:
                return retried(await application.history())

            refused = await eventually(are_refused, every=0.2)
            restarts = sum(lane["restarts"] for lane in (await worker.get("/info"))["lanes"])
            await asyncio.to_thread(revoke, servers, EVERYBODY)
            came = await read_until(servers, [frail], lambda records: len(records) >= FRAIL, timeout=130)
            history = await application.whole_history(tells_all_fired)
            info = await worker.get("/info")
        finally:
            await asyncio.to_thread(application.close)

    assert all("authorised" in (event.reason or "") for event in refused)
    assert restarts < 20, "each failure would be one, several times a second"
    assert ids_of(came) == {f"frail-{number}": 1 for number in range(FRAIL)}
    assert Counter(event.id for event in frail_events(history) if event.event is EventType.FIRED) == ids_of(came)
    assert all(lane["state"] == "running" for lane in info["lanes"])
