"""A test's view of a scheduler in memory, for both clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from light_scheduler.client import Firing, parse_firing
from light_scheduler.clock import SystemClock
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.in_memory.broker import Record
from light_scheduler.model import DeadLetter, HistoryEvent
from light_scheduler.settings import Settings
from light_scheduler.settings.values import CommandsTopic
from light_scheduler.wire import decode_dead_letter, decode_history, instant_of


class Observed:
    """The time of a scheduler in memory, and its records."""

    _scheduler: MemoryScheduler

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
        """All history events so far, in order."""
        return [decode_history(record.value) for record in self.records(self._scheduler.names.history)]

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The commands that were refused without a waiting caller, and the firings that could not be delivered."""
        return [decode_dead_letter(record)[0] for record in self.records(self._scheduler.names.dead_letters)]

    def records(self, topic: str) -> list[Record]:
        """Return all records of a topic, in the order of writing."""
        return [record for record in self._scheduler.broker.records if record.topic == topic]

    def _after(self, by: timedelta, units: dict[str, float]) -> int:
        """Return the instant (UTC epoch ms) after this duration. Raises ValueError for one in the past."""
        return self._ahead(self._scheduler.clock.now() + (by + timedelta(**units)) // timedelta(milliseconds=1))

    def _ahead(self, instant: datetime | int) -> int:
        until = epoch_ms(instant)
        if until < self._scheduler.clock.now():
            raise ValueError(f"{until} is before the scheduler's time, {self._scheduler.clock.now()} ms")
        return until


def memory_scheduler(
    settings: Settings | None, now: datetime | int | None, topics: Mapping[str, int] | None
) -> MemoryScheduler:
    """Return a scheduler with workers' settings. It only reads native commands, since only its client sends any."""
    settings = settings or Settings()
    own = CommandsTopic(settings.topics.commands, "native")
    native = next((source for source in settings.inputs if source.dialect == "native"), own)
    return MemoryScheduler(replace(settings, commands_topics=(native,)), start_at(now), topics=topics)


def start_at(now: datetime | int | None) -> int:
    """Return the start time of a scheduler: `now`, or else the machine's time."""
    return SystemClock().now() if now is None else epoch_ms(now)


def epoch_ms(moment: datetime | int) -> int:
    """Return UTC epoch ms. Raises ValueError for a datetime without a time zone."""
    return moment if isinstance(moment, int) else instant_of(moment)
