"""The application's topics, as the handlers use them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from light_scheduler.kafka.atomic_writer import AtomicWriter, NewRecord
from light_scheduler.kafka.log_readers import LogReaders
from light_scheduler.kafka.topic_admin import REACH_S, admin_client, partition_counts
from light_scheduler.model.place import Place
from light_scheduler.settings import Settings

from .commands.channel import CommandChannel, Commands, largest_record
from .interfaces import Peers
from .looking_back import OpenLog
from .request_limits import SEARCHES

WriteTogether = Callable[[Sequence[NewRecord]], Awaitable[list[tuple[Place, int]]]]
"""Writes records in one transaction; raises BrokerError, InvalidCommand."""


class KafkaTopics(NamedTuple):
    """Sends commands and receives their answers, searches logs backwards, and writes records in one transaction.

    `close_logs` releases the readers kept for searches. `count_partitions` asks Kafka for the number of partitions of
    each topic that the worker may see; it raises BrokerError.
    """

    commands: Commands
    logs: OpenLog
    write_together: WriteTogether
    close_logs: Callable[[], Awaitable[None]]
    count_partitions: Callable[[], Awaitable[Mapping[str, int]]]


def topics_of(settings: Settings, peers: Peers) -> KafkaTopics:
    """Return the application's topics. They connect on first use."""
    writer = AtomicWriter(
        settings.connection, lambda: f"{settings.topics.redrives}{peers.own_url}", largest_record(settings)
    )
    readers = LogReaders(settings.connection, SEARCHES)

    async def count_partitions() -> Mapping[str, int]:
        connection = settings.connection
        return await asyncio.to_thread(lambda: partition_counts(admin_client(connection), connection, REACH_S))

    return KafkaTopics(CommandChannel(settings), readers.open, writer, readers.close, count_partitions)
