"""Follows a topic from its end or its beginning: outside any consumer group, committed records only."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import ConsumerRecord

from light_scheduler.kafka.connection import option_errors, stop_consumer
from light_scheduler.kafka.lasting_logins import keep_logged_in

from .kafka_options import of_consumer


class Reader:
    """Reads partitions of one topic. It reads only while iterated; the iteration never ends."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    @classmethod
    async def open(
        cls, options: Mapping[str, Any], topic: str, partitions: Iterable[int], *, from_beginning: bool = False
    ) -> Self:
        """Return a reader that already has its position: it will read everything committed from now on.

        `options` are those of the connection, as aiokafka's clients take them. Raises aiokafka's errors, and
        InvalidCommand if it refuses an option.
        """
        with option_errors():
            consumer = AIOKafkaConsumer(
                group_id=None, enable_auto_commit=False, isolation_level="read_committed", **of_consumer(options)
            )
        keep_logged_in(consumer._client)
        try:
            await consumer.start()
            places = [TopicPartition(topic, partition) for partition in sorted(partitions)]
            consumer.assign(places)
            offsets = await (consumer.beginning_offsets(places) if from_beginning else consumer.end_offsets(places))
            for place, offset in offsets.items():
                consumer.seek(place, offset)
        except BaseException:
            await stop_consumer(consumer)
            raise
        return cls(consumer)

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord[bytes, bytes]]:
        while True:
            record = await self._consumer.getone()
            yield record

    async def close(self) -> None:
        await stop_consumer(self._consumer)
