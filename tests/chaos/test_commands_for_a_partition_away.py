"""Commands that need a partition of the commands topic without a leader, or with too few copies in sync.

They were sent to another partition, by a producer with a partitioner of its own, or are for all partitions.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]
from support.application import Application
from support.placing import await_leaders_elsewhere
from support.reading import header, read_all, read_until
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedCluster
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.wire import decode_result, partition_for

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.every_case, pytest.mark.timeout(420)]

COPIES = {"one copy": [[1], [2], [1], [3]], "two copies": [[1, 2], [2, 1], [1, 2], [1, 3]]}
"""The brokers of each partition of the commands topic, all of which have to be there."""
PARTITIONS, AWAY, BROKER = 4, 3, 3
"""This partition takes nothing while the broker is killed or frozen."""

SECONDS = 45
"""How long the broker is away: longer than a lane takes to have seen a command fail three times, and to condemn it."""
DETECTION_MS = 6_000
"""Within which a lane finds out that the partition takes nothing, and fires again what is due."""
LATE_MS = 2_500
"""How late firings may be from then on, on a machine that does other things as well."""
RETURN_S = 60
"""Within which everything is done once the broker answers again; its start is part of that."""
HOUR_MS = 3_600_000


def key_of(partition: int, name: str) -> str:
    """Return a key that begins with a name and belongs to a partition."""
    keys = (f"{name}-{number}" for number in count())
    return next(key for key in keys if partition_for(key.encode(), PARTITIONS) == partition)


class Outside:
    """A producer with a partitioner of its own; `due` has when each schedule is due (UTC epoch ms), by id."""

    def __init__(self, producer: AIOKafkaProducer, application: Application) -> None:
        self._producer = producer
        self._topics = application.settings.topics
        self._target = application.target
        self.due: dict[str, int] = {}

    async def send(self, partition: int, command: str, id: str, key: str | None, **headers: object) -> None:
        """Send a command to a partition, whichever its key belongs to; its answer is correlated by its id."""
        said = {"command": command, "id": id, "reply_topic": self._topics.results, "correlation_id": id, **headers}
        written = [("schedule-" + name.replace("_", "-"), str(value).encode()) for name, value in said.items()]
        await self._producer.send_and_wait(
            self._topics.commands, b"x", None if key is None else key.encode(), partition=partition, headers=written
        )

    async def schedule(self, partition: int, key: str, wait_ms: int, **headers: object) -> None:
        """Send a schedule under its key."""
        self.due[key] = SystemClock().now() + wait_ms
        await self.send(partition, "schedule", key, key, at=self.due[key], target_topic=self._target, **headers)


async def place_commands(servers: str, topic: str, copies: list[list[int]]) -> None:
    """Create the commands topic, each partition of which these brokers have."""
    admin = admin_client(servers)  # its end would be that of what it was asked to do
    config = {"min.insync.replicas": str(len(copies[AWAY]))}
    new = NewTopic(topic, PARTITIONS, replica_assignment=copies, config=config)
    await asyncio.to_thread(admin.create_topics([new])[topic].result, 60)


@pytest.mark.parametrize(("deed", "copies"), [("kill", "one copy"), ("freeze", "one copy"), ("kill", "two copies")])
async def test_commands_for_a_partition_that_takes_nothing_wait_for_it_and_nothing_waits_for_them(
    tmp_path: Path, deed: str, copies: str
) -> None:
    with EmbeddedCluster(3) as cluster:
        servers, app_id = cluster.bootstrap_servers, f"test-{uuid.uuid4().hex[:8]}"
        await place_commands(servers, f"{app_id}-commands", COPIES[copies])
        application = await Application.create(servers, tmp_path, app_id=app_id, replication_factor="3")
        producer = await started_producer({"bootstrap_servers": servers})
        try:
            worker = await application.start_worker()
            outside = Outside(producer, application)
            many = [key_of(partition, f"many-{n}") for partition in range(PARTITIONS) for n in range(2)]
            for key in many:
                await outside.schedule(partition_for(key.encode(), PARTITIONS), key, HOUR_MS)
            topics = application.settings.topics
            await read_until(servers, [topics.results], lambda answers: len(answers) == len(many))
            await asyncio.to_thread(cluster.wait_in_sync)

            broker = cluster.nodes[BROKER - 1]
            if deed == "kill":
                await asyncio.to_thread(broker.kill)
            else:
                broker.send_signal(signal.SIGSTOP)
            survivors = ",".join(node.bootstrap_servers for node in cluster.nodes if node is not broker)
            elsewhere_at = await asyncio.to_thread(await_leaders_elsewhere, survivors, BROKER, but=topics.commands)
            restarts = await restarts_of(worker, 0)
            strays = [key_of(AWAY, "keyed"), key_of(AWAY, "without-key"), key_of(AWAY, "twice")]
            await outside.schedule(0, strays[0], 1_000)
            outside.due[strays[1]] = SystemClock().now()
            await outside.send(
                0, "schedule", strays[1], None, at=outside.due[strays[1]], target_topic=application.target
            )
            await outside.schedule(0, strays[2], HOUR_MS)
            await outside.schedule(0, strays[2], 2_000)
            await outside.send(0, "cancel", "many-*", None)
            homely: list[str] = []
            while SystemClock().now() < elsewhere_at + SECONDS * 1_000:
                homely.append(key_of(0, f"homely-{len(homely)}"))
                await outside.schedule(0, homely[-1], 500)
                await asyncio.sleep(0.25)
            restarts = await restarts_of(worker, 0) - restarts
            during = await read_all(survivors, application.target)
            dead = await read_all(survivors, topics.dead_letters)
            broker.send_signal(signal.SIGCONT)
            await asyncio.to_thread(broker.start)

            async def is_whole() -> bool:
                fired = [header(record, "schedule-id") for record in await read_all(servers, application.target)]
                return {*strays, *homely} <= {*fired} and "many-*" in await answered(servers, topics.results)

            await eventually(is_whole, within=RETURN_S, every=1.0)
            fired = [str(header(record, "schedule-id")) for record in await read_all(servers, application.target)]
            answers = await answered(servers, topics.results)
            dead += await read_all(servers, topics.dead_letters)
            pending = [row["id"] for row in await worker.listed()]
        finally:
            await stop_producer(producer)
            with suppress(TimeoutError):
                await asyncio.to_thread(application.close)

    late = {id: record.timestamp - outside.due[id] for record in during if (id := str(header(record, "schedule-id")))}
    detected = [id for id in homely if outside.due[id] > elsewhere_at + DETECTION_MS]
    assert dead == []
    assert [id for id in detected[:-8] if late.get(id, LATE_MS) >= LATE_MS] == []
    assert restarts <= 2, "the broker has led other partitions that the lane writes to, and then it was this one"
    assert not set(strays) & late.keys()
    assert sorted(fired) == sorted([*strays, *homely]), "each once"
    assert answers["many-*"] == [("cancelled", len(many))]
    assert answers[strays[2]] == [("scheduled", None), ("updated", None)]
    assert pending == []


async def restarts_of(worker: Any, partition: int) -> int:
    document = await worker.get("/info")
    return next(int(lane["restarts"]) for lane in document["lanes"] if lane["partition"] == partition)


async def answered(servers: str, topic: str) -> dict[str, list[tuple[str, int | None]]]:
    """Return the outcomes, and counts, of the answers to commands for each id."""
    found: dict[str, list[tuple[str, int | None]]] = {}
    for record in await read_all(servers, topic):
        result = decode_result(record.value)
        count_told = result.count if isinstance(result.count, int) else None
        found.setdefault(str(result.id), []).append((result.outcome.value, count_told))
    return found
