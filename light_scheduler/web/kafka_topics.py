"""The application's topics, as the handlers use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from light_scheduler.kafka.atomic_writer import AtomicWriter, NewRecord
from light_scheduler.kafka.log_readers import LogReaders
from light_scheduler.model.place import Place
from light_scheduler.settings import Settings

from .cluster import Peers
from .command_channel import CommandChannel, Commands, largest_record
from .looking_back import OpenLog
from .request_limits import SEARCHES

WriteTogether = Callable[[Sequence[NewRecord]], Awaitable[list[tuple[Place, int]]]]
"""Writes records in one transaction; raises BrokerError, InvalidCommand."""


class KafkaTopics(NamedTuple):
    """Sends commands and receives their answers, looks back through logs, and writes records together.

    `close_logs` lets go of what was kept to look back.
    """

    commands: Commands
    logs: OpenLog
    write_together: WriteTogether
    close_logs: Callable[[], Awaitable[None]]


def topics_of(settings: Settings, peers: Peers) -> KafkaTopics:
    """Return the topics of the application of these settings. Nothing is connected before it is used."""
    writer = AtomicWriter(
        settings.connection, lambda: f"{settings.app_id}-redrive/{peers.own_url}", largest_record(settings)
    )
    readers = LogReaders(settings.connection, SEARCHES)
    return KafkaTopics(CommandChannel(settings), readers.open, writer, readers.close)
