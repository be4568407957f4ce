"""The partitions of a commands topic, to which bulk commands are sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiokafka.structs import ConsumerRecord

from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.failures.condemned_work import NOTHING_CONDEMNED
from light_scheduler.lanes.failures.failing_work_search import Work
from light_scheduler.model import Headers, HistoryEvent, Outcome, Result
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from support.partition import ANSWER, AT, HOUR, NAMES, TO_REMINDERS, Partition, command, due_at
from support.tables import by_due

COUNT = 3
KEYS = [next(key for key in map(str.encode, "abcdefgh") if partition_for(key, COUNT) == n) for n in range(COUNT)]
"""One that belongs to each partition."""

ALL = sorted(f"{number}/{name}" for number in range(COUNT) for name in (*(f"order-{n}" for n in range(10)), "other"))
"""The schedules that the cases begin with."""


class Topic:
    """The partitions of a commands topic: what they pass on to each other waits to be read there, in order."""

    def __init__(self, producer: Any) -> None:
        self.partitions = [Partition(producer, number=number, of=COUNT) for number in range(COUNT)]
        self.waiting: list[list[ConsumerRecord]] = [[] for _ in range(COUNT)]
        self.ends = [1] * COUNT
        self.logs = 0
        self.history: list[HistoryEvent] = []
        self.results: list[Result] = []
        self.fired: list[str] = []
        self.rejected: list[tuple[str | None, int, int]] = []
        self.now = AT

    def send(self, number: int, *headers: tuple[str, bytes | None], value: bytes | None = b"") -> int:
        """Have a record wait in a partition; return its offset."""
        offset = self.ends[number]
        self.ends[number] += 1
        self.waiting[number].append(
            command(*headers, key=KEYS[number], value=value, offset=offset, partition=number, timestamp=self.now)
        )
        return offset

    def control(self, number: int, name: str, id: str, *headers: tuple[str, bytes | None]) -> int:
        """Send a command for one schedule, or for many; return its offset."""
        return self.send(number, ("schedule-command", name.encode()), ("schedule-id", id.encode()), *ANSWER, *headers)

    def put(self, number: int, *ids: str, due: int = AT + HOUR, labels: str = "", value: bytes = b"") -> None:
        """Send schedules."""
        ours: Headers = [due_at(due), *TO_REMINDERS, ("schedule-labels", labels.encode())]
        for id in ids:
            self.send(number, *ours, ("schedule-id", id.encode()), ("schedule-target-key", id.encode()), value=value)

    async def cycle(
        self, number: int, *, applies: bool = True, condemned: Mapping[Work, str] = NOTHING_CONDEMNED
    ) -> Cycle:
        """Run a cycle of a partition with what waits there."""
        partition, taken = self.partitions[number], self.waiting[number]
        self.waiting[number] = []
        cycle = await partition.run(*taken, now=self.now, applies=applies, condemned=condemned)
        self.history += partition.history
        self.results += partition.results
        self.rejected += [(each.field, each.source_partition, each.source_offset) for each in partition.dead_letters]
        self.fired += [record.key.decode() for record in partition.sent("reminders")]
        for record in partition.sent(NAMES.commands):
            self.send(record.partition, *record.headers, value=record.value)
        return cycle

    async def settle(self) -> None:
        """Run cycles until nothing waits and nothing is at work."""
        while any(self.waiting) or any(self.at_work(number) for number in range(COUNT)):
            for number in range(COUNT):
                await self.cycle(number)

    def at_work(self, number: int) -> bool:
        return bool(Overlay(self.partitions[number].table).others.bulk_parts())

    def created_again(self) -> None:
        """Have the topic deleted and created again: offsets begin anew, and what waits is lost."""
        self.waiting = [[] for _ in range(COUNT)]
        self.ends = [1] * COUNT
        self.logs += 1
        for partition in self.partitions:
            partition.read_from(f"log {self.logs}", COUNT)

    @property
    def pending(self) -> dict[str, bool]:
        """All ids that are pending, and whether they are paused."""
        entries = [entry for partition in self.partitions for _, entry in by_due(partition.table, "default")]
        return {entry.schedule.id: entry.progress.paused for entry in entries}

    @property
    def totals(self) -> list[tuple[str, str, Outcome, Any]]:
        """The answers to bulk commands."""
        return [(r.command, str(r.id), r.outcome, r.count) for r in self.results if str(r.id).endswith("*")]

    def told(self, id: str) -> list[str]:
        """Return the history of an id."""
        return [event.event.value for event in self.history if event.id == id]
