"""A broker is killed under load: everything waits or goes on with the others, nothing is lost, doubled or spent."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import signal
from collections import Counter
from pathlib import Path

import pytest
from aiokafka import TopicPartition
from support.application import Application
from support.clocks import MINUTE, end_of_minute
from support.reading import Record, header, read_all, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedBroker, EmbeddedCluster
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.clients import KafkaClients
from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.tables.changelog import reading
from light_scheduler.wire import decode_history

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(300)]

COUNT = 2_000
SPREAD_MS = 8_000


@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.soak
async def test_firings_survive_a_sigkill_of_the_broker_or_one_of_three(tmp_path: Path, nodes: int) -> None:
    """The only one is started again; two of three do without it."""
    with EmbeddedCluster(nodes) as cluster:
        application = await Application.create(
            cluster.bootstrap_servers, tmp_path, replication_factor=str(cluster.copies)
        )
        try:
            await application.start_worker()
            start = SystemClock().now() + 2_000
            payloads = [hashlib.sha256(b"%d" % number).digest() for number in range(COUNT)]
            async with application.client() as client:
                await client.schedule_many(
                    {
                        "id": f"s-{number}",
                        "payload": payloads[number],
                        "topic": application.target,
                        "at": start + number * SPREAD_MS // COUNT,
                    }
                    for number in range(COUNT)
                )
            await read_until(
                cluster.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT // 4
            )

            await asyncio.to_thread(cluster.nodes[0].kill)
            if nodes == 1:
                await asyncio.to_thread(cluster.nodes[0].start)

            await read_until(
                cluster.bootstrap_servers, [application.target], lambda records: len(records) >= COUNT, timeout=120
            )
            records = await read_all(cluster.bootstrap_servers, application.target)
            dead = await read_all(cluster.bootstrap_servers, application.settings.topics.dead_letters)
        finally:
            await asyncio.to_thread(application.close)

    assert Counter(header(record, "schedule-id") for record in records) == Counter(
        {f"s-{number}": 1 for number in range(COUNT)}
    )
    assert {header(record, "schedule-id"): record.value for record in records} == {
        f"s-{number}": payload for number, payload in enumerate(payloads)
    }
    assert all(int(header(record, "schedule-due") or 0) <= record.timestamp for record in records)
    assert dead == [], "an outage is no firing's failure"


@pytest.mark.soak
async def test_a_worker_ends_in_order_while_the_broker_is_away(tmp_path: Path) -> None:
    with EmbeddedBroker() as broker:
        application = await Application.create(broker.bootstrap_servers, tmp_path)
        try:
            worker = await application.start_worker()
            await asyncio.to_thread(broker.kill)
            await eventually(lambda: "Failed fetch messages" in worker.log.read_text())
            assert await worker.end() == 0
        finally:
            await asyncio.to_thread(application.close)


@pytest.mark.soak
async def test_a_restore_that_ends_in_an_outage_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """And not that somebody cancelled it, for then its lane would end without a word."""
    caplog.set_level(logging.ERROR, logger="aiokafka")  # the command line, if a test ran it, has silenced it
    with EmbeddedBroker() as broker:
        application = await Application.create(broker.bootstrap_servers, tmp_path)
        names = application.settings.topics
        changelog = TopicPartition(names.changelog(names.commands), 0)

        async def read_into_the_outage() -> None:
            async with reading(KafkaClients(broker.bootstrap_servers, 10_000)) as reader:
                reader.assign([changelog])
                assert await reader.position(changelog) == 0
                await reader.getmany(timeout_ms=200)
                await asyncio.to_thread(broker.kill)
                async with asyncio.timeout(60):
                    while "Failed fetch messages" not in caplog.text:
                        await reader.getmany(timeout_ms=50)
                raise BrokerError("it stands still")

        with pytest.raises(BrokerError, match="stands still"):
            await read_into_the_outage()


@pytest.mark.soak
@pytest.mark.parametrize("outage", ["killed", pytest.param("frozen", marks=pytest.mark.every_case)])
async def test_an_outage_while_refused_firings_are_due_again_spends_none_of_their_attempts(
    tmp_path: Path, outage: str
) -> None:
    """Each may be tried once more. The minute in which that is to happen begins while the broker is away."""
    good = 60
    with EmbeddedCluster() as cluster:
        (broker,), servers = cluster.nodes, cluster.bootstrap_servers
        application = await Application.create(servers, tmp_path)
        small, later = f"{application.target}-small", f"{application.target}-later"
        await application.create_topic(small, partitions=1, **{"max.message.bytes": "20000"})
        history, dead_letters = application.settings.topics.history, application.settings.topics.dead_letters
        try:
            clock = application.drive_clock(behind=3 * MINUTE)
            await application.start_worker()
            clock.let_minute_end_in(0)  # a whole minute is left for what follows
            due = clock.now() + 2_000
            async with application.sender() as send:
                await send("k", b"x", id="unknown", at=due, target_topic=f"{application.target}-missing")
                await send("k", b"x" * 30_000, id="large", at=due, target_topic=small)
                await send("k", b"x", id="later", at=due, target_topic=later)

            def refused(records: list[Record]) -> list[int]:
                events = [decode_history(record.value) for record in records]
                return [event.at for event in events if event.event is EventType.RETRIED]

            told = await read_until(servers, [history], lambda records: len(refused(records)) >= 3)
            await application.create_topic(later, partitions=1)
            again_at = clock.let_minute_end_in(2_500)
            assert again_at == end_of_minute(max(refused(told)))
            async with application.sender() as send:
                for number in range(good):
                    at = again_at - 1_000 + number * 100
                    await send("k", b"", id=f"good-{number}", at=at, target_topic=application.target)
            await clock.reaches(again_at - 300)
            await stop(broker, outage)
            await clock.reaches(again_at + 2_500)
            await bring_back(broker, outage)

            letters = await read_until(servers, [dead_letters], lambda records: len(records) >= 2, timeout=90)
            await read_until(servers, [application.target], lambda records: len(records) >= good, timeout=90)
            await read_until(servers, [later], lambda records: len(records) >= 1, timeout=90)
            came = await read_all(servers, application.target)
            made = await read_all(servers, later)
            ends = Counter({EventType.FIRED: good + 1, EventType.DEAD_LETTERED: 2})
            events = await application.whole_history(lambda events: Counter(each.event for each in events) >= ends)
        finally:
            await asyncio.to_thread(application.close)

    assert {(header(letter, "dead-letter-id"), header(letter, "dead-letter-cause")) for letter in letters} == {
        ("unknown", "refused"),
        ("large", "refused"),
    }
    assert Counter(header(record, "schedule-id") for record in came) == {f"good-{number}": 1 for number in range(good)}
    assert [(header(record, "schedule-id"), header(record, "schedule-attempt")) for record in made] == [("later", "1")]
    assert {id: told_of(events, id) for id in ("unknown", "large", "later")} == {
        "unknown": [EventType.SCHEDULED, EventType.RETRIED, EventType.DEAD_LETTERED],
        "large": [EventType.SCHEDULED, EventType.RETRIED, EventType.DEAD_LETTERED],
        "later": [EventType.SCHEDULED, EventType.RETRIED, EventType.FIRED],
    }
    assert all(told_of(events, f"good-{number}") == [EventType.SCHEDULED, EventType.FIRED] for number in range(good))
    assert all(event.at >= again_at for event in events if event.event is EventType.DEAD_LETTERED)


async def stop(broker: EmbeddedBroker, outage: str) -> None:
    """Kill or freeze a broker."""
    if outage == "killed":
        await asyncio.to_thread(broker.kill)
    else:
        broker.send_signal(signal.SIGSTOP)


async def bring_back(broker: EmbeddedBroker, outage: str) -> None:
    """End its outage."""
    if outage == "killed":
        await asyncio.to_thread(broker.start)
    else:
        broker.send_signal(signal.SIGCONT)


def told_of(events: list[HistoryEvent], id: str) -> list[EventType]:
    """Return what the history tells of a schedule."""
    return [event.event for event in events if event.id == id]
