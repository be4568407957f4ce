"""Bulk commands while workers are killed: exact totals, and nothing cancelled or paused fires."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application, WorkerProcess
from support.reading import header, read_all, read_until

from light_scheduler.client import ScheduleRequest
from light_scheduler.model import EventType, Outcome, Result
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_history, decode_result

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

SCHEDULES = 20_000
PARTITIONS = 4


def id_of(number: int) -> str:
    return f"{'drop' if number % 2 else 'keep'}-{number}"


TEAMS = {id_of(number): f"t{number % 4}" for number in range(SCHEDULES)}
DROPPED = {id for id in TEAMS if id.startswith("drop-")}
PAUSED = {id for id in TEAMS if id not in DROPPED and TEAMS[id] == "t0"}
RESUMED = {id for id in PAUSED if id.startswith("keep-1")}


async def send(application: Application, number: int, command: str, id: str, **fields: str) -> None:
    """Send a bulk command to partition `number`, which names its answer, too."""
    given = {"command": command, "id": id, **fields, "reply-topic": application.settings.topics.results}
    headers = [(f"schedule-{name}", value.encode()) for name, value in given.items()]
    headers.append(("schedule-correlation-id", b"%d" % number))
    async with AIOKafkaProducer(bootstrap_servers=application.bootstrap_servers) as producer:
        await producer.send_and_wait(application.settings.topics.commands, b"", partition=number, headers=headers)


async def answers(application: Application, number: int) -> list[Result]:
    """Wait for the answer to command `number`, and return all that there are."""
    records = await read_until(
        application.bootstrap_servers,
        [application.settings.topics.results],
        lambda records: any(header(record, "schedule-correlation-id") == str(number) for record in records),
    )
    return [
        decode_result(record.value) for record in records if header(record, "schedule-correlation-id") == str(number)
    ]


async def kill_halfway(
    application: Application, worker: WorkerProcess, event: EventType, sending: Coroutine[None, None, None]
) -> None:
    """Send a bulk command, and kill a worker as soon as history shows that it is at work."""
    watching = asyncio.create_task(
        read_until(
            application.bootstrap_servers,
            [application.settings.topics.history],
            lambda records: any(decode_history(record.value).event is event for record in records),
        )
    )
    await sending
    await watching
    worker.kill()


@pytest.mark.soak
async def test_totals_are_exact_and_nothing_cancelled_or_paused_fires_through_kills(
    kafka: Kafka, tmp_path: Path
) -> None:
    application = await Application.create(
        kafka.bootstrap_servers, tmp_path, session_timeout="3s", partitions=str(PARTITIONS)
    )
    workers = [application.new_worker(), application.new_worker()]
    try:
        await play(application, workers)
    finally:
        application.close()


async def play(application: Application, workers: list[WorkerProcess]) -> None:
    for worker in workers:
        worker.start()
    await asyncio.gather(*(worker.ready() for worker in workers))
    requests: list[ScheduleRequest] = [
        {"id": id, "topic": application.target, "after": "1h", "labels": {"team": team}} for id, team in TEAMS.items()
    ]
    async with application.client() as client:
        await client.schedule_many(requests)

    sending = send(application, 0, "cancel", "drop-*")
    await kill_halfway(application, workers[0], EventType.CANCELLED, sending)
    assert [(a.outcome, a.count) for a in await answers(application, 0)] == [(Outcome.CANCELLED, len(DROPPED))]
    workers[0].start()
    await workers[0].ready()

    sending = send(application, 1, "pause", "*", labels="team=t0")
    await kill_halfway(application, workers[1], EventType.PAUSED, sending)
    assert [(a.outcome, a.count) for a in await answers(application, 1)] == [(Outcome.PAUSED, len(PAUSED))]
    workers[1].start()
    await workers[1].ready()

    sending = send(application, 2, "resume", "keep-1*", labels="team=t0")
    await kill_halfway(application, workers[0], EventType.RESUMED, sending)
    assert [(a.outcome, a.count) for a in await answers(application, 2)] == [(Outcome.RESUMED, len(RESUMED))]

    left = TEAMS.keys() - DROPPED
    await send(application, 3, "reschedule", "*", after="0s")
    assert [(a.outcome, a.count) for a in await answers(application, 3)] == [(Outcome.RESCHEDULED, len(left))]
    fired = left - (PAUSED - RESUMED)
    await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= len(fired))

    records = await read_all(application.bootstrap_servers, application.target)
    assert Counter(header(record, "schedule-id") for record in records) == Counter(fired)
    history = await application.whole_history(
        lambda history: sum(event.event is EventType.FIRED for event in history) >= len(fired)
    )
    assert {e.id: e.count for e in history if e.event is EventType.CANCELLED and e.count} == {"drop-*": len(DROPPED)}
    for event, ids in (
        (EventType.CANCELLED, DROPPED),
        (EventType.PAUSED, PAUSED),
        (EventType.RESUMED, RESUMED),
        (EventType.FIRED, fired),
    ):
        assert Counter(e.id for e in history if e.event is event and not e.count) == Counter(ids), event
