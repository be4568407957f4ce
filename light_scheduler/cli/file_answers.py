"""Answers about the rows of a file, read from a position that is known before the rows are sent.

So a run after a crash reads the same answers again. Correlation ids consist of the load's name and a line number.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Self

from aiokafka import AIOKafkaConsumer, TopicPartition

from light_scheduler.kafka.connection import broker_errors, stop_consumer
from light_scheduler.kafka.lasting_logins import keep_logged_in
from light_scheduler.model import ReplyTo, Result
from light_scheduler.wire import correlation_id_of, decode_result

FETCH_MS = 500


class From(NamedTuple):
    """Where to begin to read answers: a partition of the results topic, and an offset; None: its end."""

    partition: int
    offset: int | None


class LoadAnswers:
    """Reads one partition of the results topic completely, and skips answers of others."""

    def __init__(self, consumer: AIOKafkaConsumer, place: TopicPartition, name: str) -> None:
        self._consumer = consumer
        self._place = place
        self._name = name

    @classmethod
    async def open(cls, options: Mapping[str, Any], topic: str, begin: From, name: str) -> Self:
        """Return a reader at a position. Raises BrokerError."""
        place = TopicPartition(topic, begin.partition)
        consumer = AIOKafkaConsumer(
            group_id=None,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",  # answers at the position may have been deleted
            **options,
        )
        keep_logged_in(consumer._client)
        try:
            with broker_errors(f"cannot read {topic}"):
                await consumer.start()
                consumer.assign([place])
                offset = begin.offset
                consumer.seek(place, (await consumer.end_offsets([place]))[place] if offset is None else offset)
        except BaseException:
            await stop_consumer(consumer)
            raise
        return cls(consumer, place, name)

    async def position(self) -> From:
        """Return the position before the answers to the rows that are sent next."""
        return From(self._place.partition, await self._consumer.position(self._place))

    def reply_to(self, line: int) -> ReplyTo:
        """Return the reply address for a row."""
        return ReplyTo(self._place.topic, self._id(line), self._place.partition)

    async def wait(self, lines: Collection[int], timeout_s: float) -> dict[int, Result]:
        """Return the answers about rows, by line; late ones are missing. Raises BrokerError."""
        waiting = {self._id(line): line for line in lines}
        found: dict[int, Result] = {}
        deadline = asyncio.get_running_loop().time() + timeout_s
        with broker_errors(f"cannot read {self._place.topic}"):
            while waiting and asyncio.get_running_loop().time() < deadline:
                records = await self._consumer.getmany(self._place, timeout_ms=FETCH_MS)
                for record in records.get(self._place, ()):
                    line = waiting.pop(correlation_id_of(record.headers) or b"", None)
                    if line is not None:
                        found[line] = decode_result(record.value)
        return found

    async def close(self) -> None:
        await stop_consumer(self._consumer)

    def _id(self, line: int) -> bytes:
        return f"{self._name}-{line}".encode()
