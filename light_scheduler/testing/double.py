"""The scheduler in a test's own process: the client's calls, a clock that the test moves, and the deliveries."""

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
    """A scheduler without Kafka, and its client. Time stands still until the test moves it.

        scheduler = InMemoryScheduler(now=datetime(2030, 1, 1, tzinfo=UTC))
        await scheduler.schedule("order-1", b"pay!", topic="reminders", after="15m")
        await scheduler.advance(minutes=15)
        assert [record.value for record in scheduler.delivered] == [b"pay!"]

    Commands, decisions, state and records are those of a worker. A command has been carried out when its call returns.
    Rate caps, unavailable targets and failures are not simulated.
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

        Every target topic exists, with `settings.partitions` partitions (4). With `topics` (name -> partitions), only
        those exist. `settings` are the workers': limits, misfires, retries. Raises ValueError for a `now` without a
        time zone.
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
        """Move the clock forward by a duration, with the arguments of `timedelta`: `advance(minutes=5)`. Firings that
        are due on the way are delivered.

        Each message is delivered at its own time. Other tasks run between one due time and the next; commands that they
        send are carried out then. Raises ValueError for an instant in the past.
        """
        await self.advance_to(self._after(by, units))

    async def advance_to(self, instant: datetime | int) -> None:
        """Move the clock forward to an instant (aware datetime or UTC epoch ms), as `advance` does."""
        for _ in self._scheduler.rounds(self._ahead(instant)):
            await asyncio.sleep(0)

    async def outage(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock forward while no worker runs. Then a worker starts, and misfire policies apply to missed
        firings."""
        self._scheduler.clock.set(self._after(by, units))
        self._scheduler.settle()
