"""Sends rows of a file in Kafka transactions. Each has a mark of how far the file is sent, so no row is sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import msgspec

from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.marks import Mark, offsets_of, read_mark
from light_scheduler.clock import Clock
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.clients import KafkaClients, no_stray_cancellation
from light_scheduler.kafka.connection import broker_errors
from light_scheduler.kafka.refusals import RecordsRefusedError, RecordTooLargeError, TargetsStalledError
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.settings import Settings
from light_scheduler.wire import partition_for

from .file_answers import From
from .file_position import Position

TRANSACTION_TIMEOUT_MS = 30_000
PATIENCE_S = 20.0
LOOK_UP_S = 4.0
_ANY_SIZE = 2**31 - 1


class FileMark(msgspec.Struct, frozen=True):
    """How far a file is in Kafka, and where the answers about its last rows begin; None: without answers."""

    sent: Position
    answers: From | None


class LoadTransactions:
    """Sends commands under the name of a load. If several processes use one name, only the last one to `take_over` can
    send."""

    def __init__(self, settings: Settings, topic: str, name: str, clock: Clock) -> None:
        self._connection = settings.connection
        self._topic = topic
        self._name = f"{settings.app_id}-file-{name}"
        self._clock = clock
        self._producer = TransactionalProducer(KafkaClients(self._connection, TRANSACTION_TIMEOUT_MS), self._name)

    async def take_over(self) -> FileMark | None:
        """Abort an earlier process's open transaction, and return the mark; None if there is none.

        Raises BrokerError.
        """
        with broker_errors(f"cannot take over {self._name}"), no_stray_cancellation():
            await self._producer.fence()
        mark = await asyncio.to_thread(read_mark, self._connection, self._name, self._topic)
        return None if mark is None else msgspec.json.decode(mark.identity, type=FileMark)

    async def send(self, commands: Iterable[CommandToSend], mark: FileMark) -> None:
        """Send commands and a mark atomically. Raises BrokerError."""
        partitions = await self.partitions_of(self._topic)
        batches = RecordBatches(self._clock.now(), limit_of=lambda _: _ANY_SIZE)
        for command in commands:
            batches.add((self._topic, partition_for(command.key, partitions)), command.key, command.value,
                        command.headers)  # fmt: skip
        offsets = offsets_of(Mark(mark.sent.lines, msgspec.json.encode(mark).decode()), self._topic)
        try:
            with broker_errors(f"cannot send commands to {self._topic}"), no_stray_cancellation():
                await self._producer.commit(batches, self._name, offsets, PATIENCE_S)
        except (RecordsRefusedError, RecordTooLargeError, TargetsStalledError) as error:
            raise BrokerError(f"cannot send commands to {self._topic}: {error}") from error

    async def partitions_of(self, topic: str) -> int:
        """Return the number of partitions of a topic. Raises BrokerError if it does not exist."""
        try:
            with broker_errors(f"cannot look up topic {topic}"):
                async with asyncio.timeout(LOOK_UP_S):
                    return await self._producer.partitions_of(topic)
        except BrokerError as error:
            if isinstance(error.__cause__, TimeoutError):
                raise BrokerError(
                    f"topic {topic} does not exist or cannot be looked up; `light-scheduler topics create` makes it"
                ) from error
            raise

    async def close(self) -> None:
        """Abort an open transaction, and disconnect."""
        await self._producer.discard()
