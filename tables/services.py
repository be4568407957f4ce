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
        """Tick at an instant (UTC epoch ms) or earlier; None if nothing is pending."""
        ...

    def cancel(self) -> None:
        """Stop ticking."""
        ...


async def _unknown(_topic: str) -> str:
    return ""


def _no_ids() -> TopicIds:
    return TopicIds(_unknown, time.monotonic)


@dataclass(frozen=True)
class LaneServices:
    """Kafka clients, storage, clock and other services that lanes share.

    - `clients` makes a lane's own Kafka clients.
    - `confirm` sends a heartbeat and returns whether this worker owns a partition.
    - `changelog_facts` looks up a changelog.
    - `make_room` tells the fetcher that a lane can take more commands.
    - `fail` ends the worker with an error.
    - `commands_ids` looks up the ids of commands topics; an empty id means unknown.
    - `stores` opens the store of a table.
    - `max_clock_skew` (ms): a clock that is off by more causes a warning.
    - `loads` limits how many empty tables are filled at a time, which limits memory. Lanes go first. While one load
      waits for the broker, another can work.
    - `rebuilding` starts processes that fill large tables; None: lanes fill them.
    - `schema_registry` provides the schemas of Avro commands; None: there is no registry.
    - `processor_waits` returns the share of its busy time that the lanes' thread waits for a processor.
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
