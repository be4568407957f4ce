"""The cycles of a lane without the lane: over a partition for which commands wait in the log."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.alarm import Alarm
from light_scheduler.lanes.context.staging import Staging
from light_scheduler.lanes.cycles import LaneCycles
from light_scheduler.lanes.gathering import Gathering
from light_scheduler.lanes.input.incoming import Incoming
from light_scheduler.lanes.input.intake import Intake
from light_scheduler.lanes.input.position import InputPosition
from light_scheduler.lanes.input.readable import Readable
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.wire import partition_for
from support.outages import Topics
from support.partition import AT, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

OTHER = ("schedule-tenant", b"other")
KEYS = [key for key in (b"%d" % number for number in range(40)) if partition_for(key, 2) == 0]
PAUSE = (("schedule-command", b"pause"), ("schedule-id", b"*"))


def half() -> Partition:
    """Return partition 0 of 2 of a tenant that may have two pending schedules, so one here."""
    partition = Partition(FakeProducer(), of=2)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))])
    partition.partitionings = SimpleNamespace(of=lambda topic: Partitioning(2, secret=SECRET))
    return partition


def schedule(offset: int, *headers: tuple[str, bytes]) -> Any:
    return command(due_at(AT + HOUR), *TO_REMINDERS, *headers, key=KEYS[offset], offset=offset)


def due(offset: int, at: int = AT, *headers: tuple[str, bytes]) -> Any:
    return command(due_at(at), *TO_REMINDERS, *headers, key=KEYS[offset], offset=offset)


class Clock:
    """Stands still."""

    at = AT

    def now(self) -> int:
        return self.at


def cycles_on(partition: Partition, waiting: list[Any], clock: Clock) -> LaneCycles:
    """Return the cycles of a lane at a partition for which commands wait in the log."""

    def ignore() -> None:
        pass

    intake = Intake(ignore, ignore)
    first = waiting[0].offset if waiting else 0
    intake.open(first, 0)
    if waiting:
        intake.offer(intake.epoch, first, waiting)
    services: Any = SimpleNamespace(clock=clock, max_clock_skew=1_000, group="app", processor_waits=lambda: 0.0)
    place: Any = SimpleNamespace(topic=NAMES.commands, partition=0)
    timer: Any = None
    return LaneCycles(
        partition.context,
        services,
        incoming=Incoming(
            intake, Readable(partition.dialect, None, ignore), InputPosition(place, "app", "changelog", lambda: 0.0)
        ),
        alarm=Alarm(lambda _: timer),
        is_closing=lambda: False,
    )


class TakesAll:
    """A producer whose transactions are all committed."""

    transactional_id = "id"

    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    async def commit(self, batches: Any, *_: Any, **__: Any) -> dict[tuple[str, int], int]:
        await batches.send(self._partition.producer)
        return dict.fromkeys(batches.places, 0)


def crowded_on(partition: Partition, waiting: list[Any], at: int = AT) -> LaneCycles:
    """Return the cycles of a lane whose machine is short of processors; full hours are prepared for."""
    clock = Clock()
    clock.at = at
    cycles = cycles_on(partition, waiting, clock)
    cycles._gathering = Gathering(lambda: 1.0, lambda: 100.0)
    cycles._context = replace(partition.context, staging=Staging(ahead_ms=70, grid_ms=HOUR))
    return cycles


async def committed(partition: Partition, *waiting: Any, at: int = AT) -> LaneCycles:
    """Return the cycles of such a lane after one of them."""
    cycles = crowded_on(partition, list(waiting), at)
    made = await cycles._make(partition.table)
    assert not made.is_empty
    await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    return cycles
