"""The positions of the rules, in a compacted topic. They are written in the transactions that forward, and never
expire.

Offsets of a consumer group would be forgotten some days after its last member left, and everything would be forwarded
again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.connection import Address, connection_to
from light_scheduler.errors import BrokerError, FormatError
from light_scheduler.kafka.connection import stop_consumer
from light_scheduler.kafka.lasting_logins import keep_logged_in
from light_scheduler.wire.delays import DelayPosition, decode_position

STALL_TIMEOUT_S = 30.0
FETCH_BYTES = 8 << 20

log = logging.getLogger(__name__)


class Positions:
    """Reads positions. Concurrent callers share one reading of the topic."""

    def __init__(self, connection: Address, topic: str) -> None:
        self._connection = connection_to(connection)
        self._place = TopicPartition(topic, 0)
        self._lock = asyncio.Lock()
        self._asked = self._answered = 0
        self._found: Mapping[bytes, DelayPosition] = {}

    async def read(self, key: bytes) -> DelayPosition | None:
        """Return a position. Only the owner may call it, after fencing. Raises BrokerError.

        The reading begins after the call, so it includes everything committed before the call.
        """
        self._asked += 1
        ticket = self._asked
        async with self._lock:
            if self._answered < ticket:
                asked = self._asked
                self._found = await self._read_all()
                self._answered = asked
        return self._found.get(key)

    async def _read_all(self) -> dict[bytes, DelayPosition]:
        consumer = AIOKafkaConsumer(
            **self._connection.aiokafka(),
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=FETCH_BYTES,
        )
        keep_logged_in(consumer._client)
        found: dict[bytes, DelayPosition] = {}
        try:
            async with asyncio.timeout(STALL_TIMEOUT_S):
                await consumer.start()
                consumer.assign([self._place])
                await consumer.seek_to_beginning(self._place)
                end = await self._end()
                # Open transactions of others hold a reader back, and the position may have been committed behind them.
                while await consumer.position(self._place) < end:
                    for record in (await consumer.getmany(timeout_ms=200)).get(self._place, ()):
                        _keep(found, record.key, record.value)
        except TimeoutError as error:
            raise BrokerError(f"{self._place.topic} could not be read within {STALL_TIMEOUT_S:.0f} s") from error
        except (KafkaError, OSError) as error:
            raise BrokerError(f"reading {self._place.topic}: {error!r}") from error
        finally:
            await stop_consumer(consumer)
        return found

    async def _end(self) -> int:
        """Return the offset after the last record, committed or not."""
        consumer = AIOKafkaConsumer(**self._connection.aiokafka(), isolation_level="read_uncommitted")
        keep_logged_in(consumer._client)
        try:
            await consumer.start()
            end: int = (await consumer.end_offsets([self._place]))[self._place]
        finally:
            await stop_consumer(consumer)
        return end


def _keep(found: dict[bytes, DelayPosition], key: bytes | None, value: bytes | None) -> None:
    try:
        found[key or b""] = decode_position(value or b"")
    except FormatError as error:
        log.warning("skipping a record of the delay positions: %s", error)
