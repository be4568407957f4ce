"""Services shared by the lanes and standbys of a worker."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from aiokafka import TopicPartition

from light_scheduler.clock import Clock
from light_scheduler.kafka.clients import LaneClients
from light_scheduler.kafka.schema_registry import SchemaRegistry
from light_scheduler.kafka.topic_ids import TopicIds

from .load_turns import Loads
from .rebuilding import Rebuilding
from .rocks import RocksStore
from .store import Stores
from .usable_copy import ChangelogFacts


class Timer(Protocol):
    """Wakes a lane when its next schedule is due."""

    def arm(self, due: int | None) -> None:
        """Tick at an instant (UTC epoch ms), or sooner; None: nothing is pending."""
        ...

    def cancel(self) -> None:
        """Tick no more."""
        ...


async def _unknown(_topic: str) -> str:
    return ""


def _no_ids() -> TopicIds:
    return TopicIds(_unknown, time.monotonic)


@dataclass(frozen=True)
class LaneServices:
    """Kafka clients, storage, clock and what else a lane does not have of its own.

    `clients` makes a lane's own Kafka clients and `stores` opens what is under its table. `confirm` sends a heartbeat
    and tells whether a partition is ours, `changelog_facts` looks a changelog up, `commands_ids` the ids of commands
    topics (empty: not known), `make_room` tells the fetcher that commands are wanted, and `fail` ends the worker with
    an error. A clock that is off by more than `max_clock_skew` (ms) is warned of. `loads` bounds how many tables are
    filled from nothing at a time, and so the memory, and lets lanes go first: while one waits for the broker, another
    one has work to do. `rebuilding` starts processes that fill large ones; None: lanes do it themselves.
    `schema_registry` is asked for the schemas of Avro commands; None: there is none. `processor_waits` tells which
    share of the time in which the lanes' thread has something to do it waits for a processor.
    """

    clients: LaneClients
    group: str
    clock: Clock
    confirm: Callable[[TopicPartition], Awaitable[bool]]
    changelog_facts: Callable[[str], Awaitable[ChangelogFacts]]
    new_timer: Callable[[Callable[[], None]], Timer]
    make_room: Callable[[], None]
    fail: Callable[[BaseException], Awaitable[None]]
    commands_ids: TopicIds = field(default_factory=_no_ids)
    stores: Stores = RocksStore
    max_clock_skew: int = 1_000
    loads: Loads = field(default_factory=Loads)
    rebuilding: Rebuilding | None = None
    schema_registry: SchemaRegistry | None = None
    processor_waits: Callable[[], float] = lambda: 0.0
