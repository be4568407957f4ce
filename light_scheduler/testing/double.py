"""The scheduler in a test's own process: the client's calls, a clock that the test moves, and what was delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta

from light_scheduler.client import SchedulerClient
from light_scheduler.client.serializers import Serializer
from light_scheduler.model import DEFAULT_TENANT
from light_scheduler.settings import Settings

from .channel import MemoryChannel
from .observed import Observed, memory_scheduler


class InMemoryScheduler(Observed, SchedulerClient):
    """A scheduler without Kafka, and the client of it. Time stands still until the test moves it.

        scheduler = InMemoryScheduler(now=datetime(2030, 1, 1, tzinfo=UTC))
        await scheduler.schedule("order-1", b"pay!", topic="reminders", after="15m")
        await scheduler.advance(minutes=15)
        assert [record.value for record in scheduler.delivered] == [b"pay!"]

    Commands, decisions, state and records are those of a worker; a command is carried out when its call returns. Rate
    caps, unavailable targets and failures are not simulated.
    """

    def __init__(
        self,
        *,
        now: datetime | int | None = None,
        tenant: str = DEFAULT_TENANT,
        topics: Mapping[str, int] | None = None,
        settings: Settings | None = None,
        serializer: Serializer | None = None,
    ) -> None:
        """`now` is an aware datetime or UTC epoch ms; default: the machine's time at this moment.

        Every target topic exists, with `settings.partitions` partitions (4); with `topics` (name -> partitions) only
        those do. `settings` are those of the workers: limits, misfires, retries. Raises ValueError for a `now` without
        a time zone.
        """
        self._scheduler = scheduler = memory_scheduler(settings, now, topics)
        super().__init__(
            app_id=scheduler.names.app_id,
            tenant=tenant,
            commands_topic=scheduler.commands_topic,
            serializer=serializer,
            clock=scheduler.clock,
        )
        self._channel = MemoryChannel(scheduler)

    async def advance(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock on, as `timedelta` names it: `advance(minutes=5)`. What is due on the way is delivered.

        Each message is delivered at its own time. Other tasks run between one due time and the next: what they send
        then is carried out then. Raises ValueError for a time that is not ahead.
        """
        await self.advance_to(self._after(by, units))

    async def advance_to(self, instant: datetime | int) -> None:
        """Move the clock on to an instant (aware datetime or UTC epoch ms), as `advance` does."""
        for _ in self._scheduler.rounds(self._ahead(instant)):
            await asyncio.sleep(0)

    async def outage(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock on while no worker runs. Then one starts: misfire policies decide on what was missed."""
        self._scheduler.clock.set(self._after(by, units))
        self._scheduler.settle()
