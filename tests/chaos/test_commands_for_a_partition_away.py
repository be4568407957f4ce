"""Commands that need a partition of the commands topic without a leader, or with too few copies in sync.

They were sent to another partition, by a producer with a partitioner of its own, or are for all partitions.
"""

from __future__ import annotations

import asyncio
import signal
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.application import Application
from support.placing import await_leaders_elsewhere
from support.reading import header, read_all, read_until
from support.strays import Outside, answered, key_of, place_commands
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.devkit import EmbeddedCluster
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.wire import partition_for

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


@pytest.mark.parametrize(("deed", "copies"), [("kill", "one copy"), ("freeze", "one copy"), ("kill", "two copies")])
async def test_commands_for_a_partition_that_takes_nothing_wait_for_it_and_nothing_waits_for_them(
    tmp_path: Path, deed: str, copies: str
) -> None:
    with EmbeddedCluster(3) as cluster:
        servers, app_id = cluster.bootstrap_servers, f"test-{uuid.uuid4().hex[:8]}"
        placed = COPIES[copies]
        await place_commands(servers, f"{app_id}-commands", placed, in_sync=len(placed[AWAY]))
        application = await Application.create(servers, tmp_path, app_id=app_id, replication_factor="3")
        producer = await started_producer({"bootstrap_servers": servers})
        try:
            worker = await application.start_worker()
            outside = Outside(producer, application)
            many = [key_of(partition, f"many-{n}", PARTITIONS) for partition in range(PARTITIONS) for n in range(2)]
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
            strays = [key_of(AWAY, name, PARTITIONS) for name in ("keyed", "without-key", "twice")]
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
                homely.append(key_of(0, f"homely-{len(homely)}", PARTITIONS))
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
