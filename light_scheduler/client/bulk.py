"""Sends many commands in whole record batches, built per partition in the given order."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.kafka.connection import broker_errors
from light_scheduler.wire import partition_for

from .commands import CommandToSend
from .receipt import Receipt
from .unacknowledged import Unacknowledged

log = logging.getLogger(__name__)


class Failed(NamedTuple):
    """A command that the broker has not acknowledged, and the reason."""

    command: CommandToSend
    error: BrokerError


@dataclass
class _Batch:
    records: BatchBuilder
    places: list[int] = field(default_factory=list)
    acknowledged: asyncio.Future[RecordMetadata] | None = None


class BulkSender:
    """Sends commands in batches to the partitions of their keys.

    The producer provides back-pressure: a partition accepts a batch when its last one has been sent.
    """

    def __init__(self, producer: AIOKafkaProducer, topic: str, partitions: int, unacknowledged: Unacknowledged) -> None:
        self._producer = producer
        self._unacknowledged = unacknowledged
        self._topic = topic
        self._doing = f"cannot send commands to {topic}"
        self._partitions = partitions
        self._open: dict[int, _Batch] = {}
        self._sent: list[tuple[int, _Batch]] = []
        self._commands: list[CommandToSend] = []

    async def add(self, command: CommandToSend) -> None:
        """Add a command to a batch, which is sent when it is full or finished. Raises BrokerError."""
        partition = partition_for(command.key, self._partitions)
        batch = self._open.get(partition) or self._begin(partition)
        if not _append(batch.records, command):
            await self._send(partition)
            batch = self._begin(partition)
            if not _append(batch.records, command):
                raise InvalidCommand("payload", f"of {command.tenant}/{command.id} is too large for a record")
        batch.places.append(len(self._commands))
        self._commands.append(command)

    async def finish(self, timeout: float) -> list[Receipt | Failed]:
        """Send the remaining commands and wait for acknowledgements, at most `timeout` seconds.

        Returns a receipt or a failure for each command, in the order of `add`.
        """
        with suppress(TimeoutError):  # commands that are not acknowledged in time have no receipt
            async with asyncio.timeout(timeout):
                for partition in list(self._open):
                    await self._send(partition)
                if self._sent:
                    await asyncio.wait([batch.acknowledged for _, batch in self._sent if batch.acknowledged])
        log.debug("%d commands sent to %s", len(self._commands), self._topic)
        late = BrokerError(f"{self._doing}: the broker did not answer in time")
        outcomes: list[Receipt | Failed] = [Failed(command, late) for command in self._commands]
        for partition, batch in self._sent:
            try:
                first = self._first_offset(batch)
            except BrokerError as error:
                for place in batch.places:
                    outcomes[place] = Failed(self._commands[place], error)
                continue
            for position, place in enumerate(batch.places):
                command = self._commands[place]
                outcomes[place] = Receipt(command.tenant, command.id, partition, first + position)
        return outcomes

    def _first_offset(self, batch: _Batch) -> int:
        assert batch.acknowledged is not None
        with broker_errors(self._doing):
            if not batch.acknowledged.done():
                raise TimeoutError
            return int(batch.acknowledged.result().offset)

    def _begin(self, partition: int) -> _Batch:
        batch = self._open[partition] = _Batch(self._producer.create_batch())
        return batch

    async def _send(self, partition: int) -> None:
        batch = self._open.pop(partition)
        with broker_errors(self._doing):
            batch.acknowledged = await self._producer.send_batch(batch.records, self._topic, partition=partition)
        self._unacknowledged.add(batch.acknowledged, [self._commands[place] for place in batch.places])
        self._sent.append((partition, batch))


def _append(records: BatchBuilder, command: CommandToSend) -> bool:
    appended = records.append(timestamp=None, key=command.key, value=command.value, headers=command.headers)
    return appended is not None
