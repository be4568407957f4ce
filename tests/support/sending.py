"""Commands as any producer writes them: header by header, without the project's client."""

from __future__ import annotations

from typing import Self

from aiokafka import AIOKafkaProducer
from aiokafka.structs import RecordMetadata

from light_scheduler.kafka.connection import started_producer, stop_producer


class Sender:
    """Writes commands to a topic; its partitioner is Kafka's. A context manager."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._producer: AIOKafkaProducer | None = None

    async def __aenter__(self) -> Self:
        self._producer = await started_producer({"bootstrap_servers": self._bootstrap_servers})
        return self

    async def __aexit__(self, *failure: object) -> None:
        assert self._producer is not None
        await stop_producer(self._producer)

    async def __call__(self, key: str, value: bytes | None = b"", /, **headers: object) -> RecordMetadata:
        """Send one: `send("k", b"payload", id="a", at=1767225600000, target_topic="t")`. A header may be None: null.

        Returns when the broker has it.
        """
        assert self._producer is not None
        written = [
            ("schedule-" + name.replace("_", "-"), None if given is None else str(given).encode())
            for name, given in headers.items()
        ]
        return await self._producer.send_and_wait(self._topic, value, key.encode(), headers=written)
