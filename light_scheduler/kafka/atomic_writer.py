"""Writes a few records to several topics in one transaction, for occasional use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Headers
from light_scheduler.model.place import Place
from light_scheduler.wire import partition_for

from .connection import broker_errors, partitions_of, stop_producer
from .quiet_producer import QuietProducer

TIMEOUT_S = 10.0
"""Maximum duration of a transaction, including connecting."""


class NewRecord(NamedTuple):
    """A record to write. Its partition is `partition` modulo their number, or murmur2 of `partition_key` if None.

    With `is_exact`, a `partition` that does not exist is an error.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition_key: bytes = b""
    partition: int | None = None
    is_exact: bool = False

    def partition_of(self, count: int) -> int:
        """Return its partition in a topic of `count`. Raises InvalidCommand if it needs one that does not exist."""
        if self.partition is None:
            return partition_for(self.partition_key, count)
        if self.is_exact and self.partition >= count:
            raise InvalidCommand("target.partition", f"topic {self.topic} has no partition {self.partition}")
        return self.partition % count


class AtomicWriter:
    """Connects for each transaction; transactions run one at a time.

    `transactional_id` is called for each transaction, and no other writer may use the same id. `max_request_bytes`
    limits the size of a record.
    """

    def __init__(self, connection: Address, transactional_id: Callable[[], str], max_request_bytes: int) -> None:
        self._connection = connection
        self._transactional_id = transactional_id
        self._max_request_bytes = max_request_bytes
        self._turn = asyncio.Lock()

    async def __call__(self, records: Sequence[NewRecord]) -> list[tuple[Place, int]]:
        """Write all records or none, and return their places and offsets.

        Raises BrokerError, and InvalidCommand if a record is too large for its topic or its partition does not exist.
        """
        with broker_errors(f"cannot write to {', '.join(dict.fromkeys(record.topic for record in records))}"):
            async with asyncio.timeout(TIMEOUT_S), self._turn:
                producer = QuietProducer(
                    **connection_to(self._connection).aiokafka(),
                    transactional_id=self._transactional_id(),
                    transaction_timeout_ms=int(TIMEOUT_S * 1_000),
                    max_request_size=self._max_request_bytes,
                )
                try:
                    await producer.start()
                    return await self._written(producer, records)
                finally:
                    await stop_producer(producer)

    async def _written(self, producer: QuietProducer, records: Sequence[NewRecord]) -> list[tuple[Place, int]]:
        partitions = {
            record.topic: len(await partitions_of(producer, record.topic, TIMEOUT_S / 2)) for record in records
        }
        async with producer.transaction():
            sent = [
                await producer.send(
                    record.topic,
                    record.value,
                    record.key,
                    partition=record.partition_of(partitions[record.topic]),
                    headers=record.headers,
                )
                for record in records
            ]
            # Await each one: a commit succeeds even if the broker has refused a record.
            written = [await acknowledged for acknowledged in sent]
        return [((each.topic, each.partition), each.offset) for each in written]
