"""What the lanes and standbys of a worker share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from aiokafka import TopicPartition

from light_scheduler.clock import Clock
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Stores

from .clients import LaneClients
from .rebuilding import Rebuilding
from .recovery import MAX_LOADS, ChangelogFacts


class Timer(Protocol):
    """Wakes a lane when its next schedule is due."""

    def arm(self, due: int | None) -> None:
        """Tick at an instant (UTC epoch ms), or sooner; None: nothing is pending."""
        ...

    def cancel(self) -> None:
        """Tick no more."""
        ...


@dataclass(frozen=True)
class LaneServices:
    """Kafka clients, storage, clock and what else a lane does not have of its own.

    `clients` makes a lane's own Kafka clients and `stores` opens what is under its table. `confirm` returns when an
    accepted heartbeat has shown that a partition is ours, `changelog_facts` looks a changelog up, `make_room` tells the
    fetcher that commands are wanted, and `fail` ends the worker with an error. A clock that is off by more than
    `max_clock_skew` (ms) is warned of. `loads` bounds how many tables are filled from nothing at a time, and so the
    memory: while one waits for the broker, another one has work to do. `rebuilding` starts processes that fill large
    ones; None: lanes do it themselves.
    """

    clients: LaneClients
    group: str
    clock: Clock
    confirm: Callable[[TopicPartition], Awaitable[None]]
    changelog_facts: Callable[[str], Awaitable[ChangelogFacts]]
    new_timer: Callable[[Callable[[], None]], Timer]
    make_room: Callable[[], None]
    fail: Callable[[BaseException], Awaitable[None]]
    stores: Stores = RocksStore
    max_clock_skew: int = 1_000
    loads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_LOADS))
    rebuilding: Rebuilding | None = None
