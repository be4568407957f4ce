"""The scheduler in a test's own process: the client's calls, a clock that the test moves, and what was delivered."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from light_scheduler.client import Firing, SchedulerClient, parse_firing
from light_scheduler.client.serializers import Serializer
from light_scheduler.clock import SystemClock
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.in_memory.broker import Record
from light_scheduler.model import DEFAULT_TENANT, DeadLetter, HistoryEvent
from light_scheduler.settings import Settings
from light_scheduler.wire import decode_dead_letter, decode_history, instant_of

from .channel import MemoryChannel


class InMemoryScheduler(SchedulerClient):
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
        start = SystemClock().now() if now is None else _instant(now)
        self._scheduler = scheduler = MemoryScheduler(settings or Settings(), start, topics=topics)
        super().__init__(
            app_id=scheduler.names.app_id,
            tenant=tenant,
            commands_topic=scheduler.commands_topic,
            serializer=serializer,
            clock=scheduler.clock,
        )
        self._channel = MemoryChannel(scheduler)

    @property
    def now(self) -> datetime:
        """The scheduler's time, in UTC."""
        return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=self._scheduler.clock.now())

    @property
    def delivered(self) -> list[Record]:
        """The messages delivered so far, in order: topic, partition, key, value, headers, as consumers receive them."""
        return self._scheduler.delivered

    @property
    def firings(self) -> list[Firing]:
        """The messages delivered so far, read by `parse_firing`: id, due time, attempt, the user's own headers."""
        return [parse_firing(record) for record in self.delivered]

    @property
    def history(self) -> list[HistoryEvent]:
        """What has happened to schedules so far, in order."""
        return [decode_history(record.value) for record in self.records(self._scheduler.names.history)]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The commands that were refused without anybody waiting, and the firings that could not be delivered."""
        return [decode_dead_letter(record)[0] for record in self.records(self._scheduler.names.dead_letters)]

    def records(self, topic: str) -> list[Record]:
        """Return all records of a topic, in the order in which they were written."""
        return [record for record in self._scheduler.broker.records if record.topic == topic]

    async def advance(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock on, as `timedelta` names it: `advance(minutes=5)`. What is due on the way is delivered.

        Each message is delivered at its own time. Other tasks run between one due time and the next: what they send
        then is carried out then. Raises ValueError for a time that is not ahead.
        """
        by += timedelta(**units)
        await self.advance_to(self._scheduler.clock.now() + _milliseconds(by))

    async def advance_to(self, instant: datetime | int) -> None:
        """Move the clock on to an instant (aware datetime or UTC epoch ms), as `advance` does."""
        until = _instant(instant)
        self._check_ahead(until)
        for _ in self._scheduler.rounds(until):
            await asyncio.sleep(0)

    async def outage(self, by: timedelta = timedelta(0), **units: float) -> None:
        """Move the clock on while no worker runs. Then one starts: misfire policies decide on what was missed."""
        until = self._scheduler.clock.now() + _milliseconds(by + timedelta(**units))
        self._check_ahead(until)
        self._scheduler.clock.set(until)
        self._scheduler.settle()

    def _check_ahead(self, until: int) -> None:
        if until < self._scheduler.clock.now():
            raise ValueError(f"{until} is before the scheduler's time, {self._scheduler.clock.now()} ms")


def _instant(moment: datetime | int) -> int:
    return moment if isinstance(moment, int) else instant_of(moment)


def _milliseconds(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)
