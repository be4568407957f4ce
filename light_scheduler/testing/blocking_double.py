"""The scheduler in a test's own process, for code with the blocking client."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from light_scheduler.client import BlockingSchedulerClient
from light_scheduler.client.serializers import Serializer
from light_scheduler.connection import Connection
from light_scheduler.in_memory.broker import Record
from light_scheduler.model import DEFAULT_TENANT
from light_scheduler.settings import Settings

from .blocking_channel import BlockingMemoryChannel
from .observed import Observed, memory_scheduler


class BlockingInMemoryScheduler(Observed, BlockingSchedulerClient):
    """A scheduler without Kafka, and its blocking client. Thread-safe.

        scheduler = BlockingInMemoryScheduler(now=datetime(2030, 1, 1, tzinfo=UTC))
        scheduler.schedule("order-1", b"pay!", topic="reminders", after="15m")
        scheduler.advance(minutes=15)
        assert [record.value for record in scheduler.delivered] == [b"pay!"]

    Otherwise it is like `InMemoryScheduler`.
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
        """The arguments are those of `InMemoryScheduler`. Raises ValueError for a `now` without a time zone."""
        self._scheduler = scheduler = memory_scheduler(settings, now, topics)
        super().__init__(
            app_id=scheduler.names.app_id,
            tenant=tenant,
            commands_topic=scheduler.commands_topic,
            serializer=serializer,
            clock=scheduler.clock,
        )
        channel = BlockingMemoryChannel(scheduler, Connection("in memory"))
        self._channel, self._turn = channel, channel.turn

    @property
    def delivered(self) -> list[Record]:
        """The messages delivered so far, as `InMemoryScheduler.delivered`. Any thread can call it."""
        with self._turn:
            return super().delivered

    def records(self, topic: str) -> list[Record]:
        """Return all records of a topic, as `InMemoryScheduler.records`. Any thread can call it."""
        with self._turn:
            return super().records(topic)

    def advance(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock forward, as `InMemoryScheduler.advance`. Other threads run between one due time and the
        next."""
        self.advance_to(self._after(by, units))

    def advance_to(self, instant: datetime | int) -> None:
        """Move the clock forward to an instant (aware datetime or UTC epoch ms), as `advance` does."""
        rounds, is_over = self._scheduler.rounds(self._ahead(instant)), False
        while not is_over:
            with self._turn:
                is_over = next(rounds, self) is self
                self._turn.notify_all()

    def outage(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock forward while no worker runs. Then a worker starts, and misfire policies apply to missed
        firings."""
        with self._turn:
            self._scheduler.clock.set(self._after(by, units))
            self._scheduler.settle()
            self._turn.notify_all()
