"""Commands that arrive in another partition than theirs, and topics for them on brokers of a test's choice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from light_scheduler.clock import SystemClock
from light_scheduler.devkit.readiness import admin_client
from light_scheduler.wire import decode_result, partition_for

from .application import Application
from .reading import read_all


def key_of(partition: int, name: str, of: int) -> str:
    """Return a key that begins with a name and belongs to a partition of so many."""
    keys = (f"{name}-{number}" for number in count())
    return next(key for key in keys if partition_for(key.encode(), of) == partition)


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


async def place_commands(servers: str, topic: str, copies: Sequence[Sequence[int]], in_sync: int = 1) -> None:
    """Create the commands topic, each partition of which these brokers have, so many of which have to be there."""
    admin = admin_client(servers)  # its end would be that of what it was asked to do
    placed = [list(each) for each in copies]
    new = NewTopic(topic, len(placed), replica_assignment=placed, config={"min.insync.replicas": str(in_sync)})
    await asyncio.to_thread(admin.create_topics([new])[topic].result, 60)


async def answered(servers: str, topic: str) -> dict[str, list[tuple[str, int | None]]]:
    """Return the outcomes, and counts, of the answers to commands for each id."""
    found: dict[str, list[tuple[str, int | None]]] = {}
    for record in await read_all(servers, topic):
        result = decode_result(record.value)
        count_told = result.count if isinstance(result.count, int) else None
        found.setdefault(str(result.id), []).append((result.outcome.value, count_told))
    return found
