"""Many commands at once: whole record batches, built per partition, in the order given."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.connection import broker_errors
from light_scheduler.wire import partition_for

from .commands import CommandToSend
from .receipt import Receipt

log = logging.getLogger(__name__)


@dataclass
class _Batch:
    records: BatchBuilder
    places: list[int] = field(default_factory=list)
    acknowledged: asyncio.Future[RecordMetadata] | None = None


class BulkSender:
    """Sends commands in batches to the partitions that their keys belong to.

    Back-pressure is the producer's: a partition takes a batch when its last one is on its way.
    """

    def __init__(self, producer: AIOKafkaProducer, topic: str, partitions: int) -> None:
        self._producer = producer
        self._topic = topic
        self._doing = f"cannot send commands to {topic}"
        self._partitions = partitions
        self._open: dict[int, _Batch] = {}
        self._sent: list[tuple[int, _Batch]] = []
        self._commands: list[CommandToSend] = []

    async def add(self, command: CommandToSend) -> None:
        """Send a command, sooner or later. Raises BrokerError."""
        partition = partition_for(command.key, self._partitions)
        batch = self._open.get(partition) or self._begin(partition)
        if not _append(batch.records, command):
            await self._send(partition)
            batch = self._begin(partition)
            if not _append(batch.records, command):
                raise InvalidCommand("payload", f"of {command.tenant}/{command.id} is too large for a record")
        batch.places.append(len(self._commands))
        self._commands.append(command)

    async def finish(self) -> list[Receipt]:
        """Send what is left and wait for every acknowledgement. Raises BrokerError.

        Returns the receipts in the order in which commands were added.
        """
        for partition in list(self._open):
            await self._send(partition)
        log.debug("%d commands sent to %s", len(self._commands), self._topic)
        receipts: list[Receipt | None] = [None] * len(self._commands)
        for partition, batch in self._sent:
            assert batch.acknowledged is not None
            with broker_errors(self._doing):
                first = (await batch.acknowledged).offset
            for position, place in enumerate(batch.places):
                command = self._commands[place]
                receipts[place] = Receipt(command.tenant, command.id, partition, first + position)
        return [receipt for receipt in receipts if receipt is not None]

    def abandon(self) -> None:
        """Let go of what has not been acknowledged: it may or may not be in the log."""
        for _, batch in self._sent:
            if batch.acknowledged is not None:
                # Its failure, if it has one, is not news: the caller has had the first.
                batch.acknowledged.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _begin(self, partition: int) -> _Batch:
        batch = self._open[partition] = _Batch(self._producer.create_batch())
        return batch

    async def _send(self, partition: int) -> None:
        batch = self._open.pop(partition)
        with broker_errors(self._doing):
            batch.acknowledged = await self._producer.send_batch(batch.records, self._topic, partition=partition)
        self._sent.append((partition, batch))


def _append(records: BatchBuilder, command: CommandToSend) -> bool:
    appended = records.append(timestamp=None, key=command.key, value=command.value, headers=command.headers)
    return appended is not None
