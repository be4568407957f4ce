"""What a cycle of a lane holds after failures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.outages import Topics
from support.partition import AT, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.errors import CycleTimeout
from light_scheduler.kafka.batches import Written
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.alarm import Alarm
from light_scheduler.lanes.caution import Kind, Work
from light_scheduler.lanes.incoming import Incoming
from light_scheduler.lanes.input_position import InputPosition
from light_scheduler.lanes.intake import Intake
from light_scheduler.lanes.neighbours import FIRST_PAUSE_MS
from light_scheduler.lanes.readable import Readable
from light_scheduler.lanes.work import LaneWork
from light_scheduler.model.lending import RoomAsk, RoomGrant
from light_scheduler.model.placement import Placement
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.wire import partition_for
from light_scheduler.wire.lending import room_headers, room_in

OTHER = ("schedule-tenant", b"other")
KEYS = [key for key in (b"%d" % number for number in range(40)) if partition_for(key, 2) == 0]


@pytest.fixture
async def partition() -> Partition:
    """Partition 0 of 2 of a tenant that may have two pending schedules, so one here."""
    partition = Partition(FakeProducer(), of=2)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))])
    partition.placements = SimpleNamespace(of=lambda topic: Placement(2, secret=SECRET))
    return partition


def schedule(offset: int, *headers: tuple[str, bytes]) -> Any:
    return command(due_at(AT + HOUR), *TO_REMINDERS, *headers, key=KEYS[offset], offset=offset)


class Clock:
    """Stands still."""

    at = AT

    def now(self) -> int:
        return self.at


def work_on(partition: Partition, waiting: list[Any], clock: Clock) -> LaneWork:
    """Return the work of a lane at a partition for which commands wait in the log."""

    def ignore() -> None:
        pass

    intake = Intake(ignore, ignore)
    first = waiting[0].offset if waiting else 0
    intake.open(first, 0)
    if waiting:
        intake.offer(intake.epoch, first, waiting)
    services: Any = SimpleNamespace(clock=clock, max_clock_skew=1_000, group="app")
    place: Any = SimpleNamespace(topic=NAMES.commands, partition=0)
    timer: Any = None
    return LaneWork(
        partition.context,
        services,
        incoming=Incoming(
            intake, Readable(partition.dialect, None, ignore), InputPosition(place, "app", "changelog", lambda: 0.0)
        ),
        alarm=Alarm(lambda _: timer),
        is_closing=lambda: False,
        reason=lambda: None,
    )


async def test_a_delayed_command_that_turns_out_to_wait_for_room_is_all_that_a_cycle_of_one_holds(
    partition: Partition,
) -> None:
    await partition.run(*map(schedule, range(3)))
    asks = [room_in(*each.headers[0]) for each in partition.sent(NAMES.commands)]
    ask = asks[-1]
    assert isinstance(ask, RoomAsk)
    grant = room_headers(RoomGrant("default", 1, ask.number, ask.version, 1, False), NAMES.commands, 0, SECRET)
    await partition.run(command(*grant, key=None, value=None, offset=3))
    await partition.run(limit=1)
    assert partition.table.pending == 2, "there is room for the second and not for the third"

    work = work_on(partition, [schedule(offset, OTHER) for offset in (5, 6)], Clock())
    work._caution.failed(4, [])
    while Kind.COMMAND not in work._caution.share(1).kinds:
        work._caution.rested(is_caught_up=True)
    made = await work._make(partition.table)
    assert (work._attempt.works, made.position) == ([Work(Kind.COMMAND, 2)], None)


async def test_room_is_asked_for_when_that_is_possible_again_though_the_rules_changed_before(
    partition: Partition,
) -> None:
    partition.tenants.book = TenantBook()
    await partition.run(*map(schedule, range(3)))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))], {"default": 1})
    work = work_on(partition, [], clock := Clock())
    work._neighbours.failed([(NAMES.commands, 1)], {(NAMES.history, 0)}, AT)
    asked = []
    for _ in range(2):
        made = await work._make(partition.table)
        work._settle(made)
        asked.append([place for place in made.batches.places if place[0] == NAMES.commands])
        clock.at += FIRST_PAUSE_MS
    assert asked == [[], [(NAMES.commands, 1)]]


async def test_room_is_asked_for_of_a_partition_that_had_no_leader_once_it_has_one_and_not_again(
    partition: Partition,
) -> None:
    partition.tenants.book = TenantBook()
    await partition.run(*map(schedule, range(3)))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))], {"default": 1})
    work = work_on(partition, [], Clock())
    topic, asked = partition.topics[NAMES.commands], []
    for unavailable in (frozenset({1}), frozenset({1}), frozenset[int](), frozenset[int]()):
        partition.topics[NAMES.commands] = topic._replace(unavailable=unavailable)
        made = await work._make(partition.table)
        work._settle(made)
        asked.append([place for place in made.batches.places if place[0] == NAMES.commands])
    assert asked == [[], [], [(NAMES.commands, 1)], []]


async def test_the_metadata_of_the_topic_are_watched_while_others_are_asked_and_one_without_an_answer_is_left_alone(
    partition: Partition,
) -> None:
    class Unanswered:
        transactional_id = "id"

        async def commit(self, batches: Any, *_: Any, **__: Any) -> None:
            batches.written[NAMES.history, 0] = Written(1, 1)
            raise CycleTimeout("a transaction took too long")

    partition.tenants.book = TenantBook()
    await partition.run(*map(schedule, range(3)))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))], {"default": 1})
    work, producer = work_on(partition, [], Clock()), cast(Any, Unanswered())
    made = await work._make(partition.table)
    with pytest.raises(CycleTimeout) as error:
        await work._commit(made, partition.table, producer)
    work.failed(error.value, may_count=False)
    assert isinstance(partition.topics, Topics)
    assert partition.topics.doubted == {NAMES.commands}
    assert work._left_alone(AT) == {1}


@pytest.mark.parametrize(("counts", "left"), [(True, 1), (False, 3)])
async def test_commands_and_firings_count_for_their_rates_once_a_commit_without_an_answer_is_known_to_count(
    partition: Partition, counts: bool, left: int
) -> None:
    rules = TenantRules(commands_per_second=8, firings_per_second=32)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    await partition.run(command(due_at(AT + 1), *TO_REMINDERS, key=KEYS[0], offset=0))

    class Unanswered:
        transactional_id = "id"

        async def commit(self, batches: Any, *_: Any, **__: Any) -> None:
            await batches.send(partition.producer)
            raise CycleTimeout("no answer")

    work = work_on(partition, [schedule(offset) for offset in (1, 2)], clock := Clock())
    clock.at += 1
    work._budget.follow_tenants(clock.at)
    made = await work._make(partition.table)
    with pytest.raises(CycleTimeout) as error:
        await work._commit(made, partition.table, cast(Any, Unanswered()))
    work.failed(error.value, may_count=True)

    async def untouched(_first: int, _end: int) -> bool:
        return not counts

    await work.decide(untouched)
    rates, throttle = work._context.rates, work._context.throttle
    rates.begin()
    assert rates.take("default", 8, AT, clock.at)
    assert (rates.left("default") + 1, throttle.allowed("default", clock.at)) == (left, 4 - counts)
