"""The whole scheduler in memory: a lane's cycles for each partition, and a clock that jumps from one wake-up to the
next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from light_scheduler.clock import SettableClock
from light_scheduler.engine import FiringRules, Limits
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.model import Headers
from light_scheduler.model.tenant_rules import NO_TENANTS, TenantBook
from light_scheduler.settings import Settings
from light_scheduler.tables import ScheduleTable
from light_scheduler.wire import dialect_named, partition_for

from .broker import MemoryBroker, Record
from .partition import MemoryPartition


class MemoryScheduler:
    """Carries out the commands of one topic. `now` is UTC epoch ms; `topics` are as for `MemoryBroker`.

    What is sent or due is carried out by `settle`, and by `rounds` as the clock moves. Target topics have
    `target_partitions`, if they are not named in `topics`; default: as many as the application's own. A cycle holds
    `most` commands, and as many firings. `tenants` have no rates, no `max_pending`, and are not paused: nothing waits
    here but for its time.
    """

    def __init__(
        self,
        settings: Settings,
        now: int,
        *,
        topics: Mapping[str, int] | None = None,
        target_partitions: int | None = None,
        most: int = MOST,
        tenants: TenantBook = NO_TENANTS,
    ) -> None:
        self.clock = SettableClock(now)
        self.names = names = settings.topics
        source = settings.inputs[0]
        self.commands_topic = source.name
        changelog = names.changelog(source.name)
        own = {source.name, changelog, *settings.reserved_topics}
        self.broker = MemoryBroker(
            dict.fromkeys(own, settings.partitions), topics, target_partitions or settings.partitions, {changelog}
        )
        self._delivered: list[Record] = []
        self._looked_at = 0  # number of records already examined
        self._internal = settings.internal_topics
        self.limits = limits = Limits.of(settings)
        self.rules = rules = FiringRules(settings.lookback_minutes, settings.missed, settings.delivery_retries)
        self.dialect = dialect = dialect_named(source.dialect)
        shared = dialect, names, limits, rules, self.broker
        tenancy = FixedTenancy(tenants)
        contexts = (
            CycleContext(source.name, number, *shared, tenants=tenancy) for number in range(settings.partitions)
        )
        self._partitions = [MemoryPartition(context, self.broker, most) for context in contexts]

    @property
    def next_due(self) -> int | None:
        """The next time a schedule wakes, UTC epoch ms; None if only a command can cause work."""
        return min((part.next_due for part in self._partitions if part.next_due is not None), default=None)

    @property
    def tables(self) -> dict[tuple[str, int], ScheduleTable]:
        """The pending schedules of each partition of the commands topic."""
        return {(self.commands_topic, number): part.table for number, part in enumerate(self._partitions)}

    @property
    def delivered(self) -> list[Record]:
        """The delivered firings in order, as consumers of the target topics receive them."""
        records = self.broker.records[self._looked_at :]
        self._delivered += self._firings_of(records)
        self._looked_at += len(records)
        return self._delivered[:]

    def delivered_after(self, written: int) -> list[Record]:
        """Return the delivered firings after the first `written` records of all topics."""
        return self._firings_of(self.broker.records[written:])

    def send(
        self, key: bytes | None, value: bytes | None, headers: Headers, partition: int | None = None
    ) -> tuple[int, int]:
        """Write a command. Return its partition and offset. Without `partition`, it goes to the partition of its
        key."""
        if partition is None:
            partition = partition_for(b"" if key is None else key, len(self._partitions))
        place = self.commands_topic, partition
        return partition, self.broker.append(place, key, value, headers, self.clock.now())

    def settle(self) -> None:
        """Carry out everything sent and due at this instant, until nothing is left."""
        for _ in self.rounds(self.clock.now()):
            pass

    def rounds(self, until: int) -> Iterator[None]:
        """Move the clock to `until` (UTC epoch ms), via each instant at which a schedule wakes.

        Yields after each cycle of the partitions with work; a cycle takes at most `most` commands and firings.
        """
        while True:
            now = self.clock.now()
            if waiting := [partition for partition in self._partitions if partition.has_work(now)]:
                for partition in waiting:
                    partition.cycle(now)
                yield
            elif (due := self.next_due) is not None and due <= until:
                self.clock.set(due)
            else:
                self.clock.set(max(until, now))
                return

    def _firings_of(self, records: list[Record]) -> list[Record]:
        return [record for record in records if record.topic not in self._internal and _is_firing(record)]


def _is_firing(record: Record) -> bool:
    return any(name == "schedule-delivery-id" for name, _ in record.headers)
