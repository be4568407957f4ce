"""What a cycle of a lane holds after failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest
from support.foreign import SKYUK_SCHEMA, skyuk_avro, skyuk_json
from support.outages import Topics
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.errors import BrokerError, CycleTimeout
from light_scheduler.kafka.batches import Written
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes import gathering
from light_scheduler.lanes.alarm import Alarm
from light_scheduler.lanes.bulk import commands as bulk
from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.lanes.context.staging import Staging
from light_scheduler.lanes.cycles import CHECKPOINT_MS, LaneCycles
from light_scheduler.lanes.failures.attempt import Attempt
from light_scheduler.lanes.failures.failing_work_search import STRIKES, Kind, Work, WorkFailedError
from light_scheduler.lanes.failures.unresponsive_partitions import FIRST_PAUSE_MS
from light_scheduler.lanes.gathering import Gathering
from light_scheduler.lanes.growing.handover import Slice
from light_scheduler.lanes.input.incoming import Incoming
from light_scheduler.lanes.input.intake import Intake
from light_scheduler.lanes.input.position import InputPosition
from light_scheduler.lanes.input.readable import Readable
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.lanes.quotas.unread import Unread
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateName
from light_scheduler.model.room_lending import RoomAsk, RoomGrant
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.dialects.light4j import task_record
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import BULK_REACH, FORWARDED_FROM
from light_scheduler.wire.room_lending import room_headers, room_in
from light_scheduler.wire.schemas import Schemas
from light_scheduler.wire.state import POSITION_KEY, decode_entry, emptied_key, encode_emptied

OTHER = ("schedule-tenant", b"other")
KEYS = [key for key in (b"%d" % number for number in range(40)) if partition_for(key, 2) == 0]


@pytest.fixture
async def partition() -> Partition:
    """Partition 0 of 2 of a tenant that may have two pending schedules, so one here."""
    partition = Partition(FakeProducer(), of=2)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))])
    partition.partitionings = SimpleNamespace(of=lambda topic: Partitioning(2, secret=SECRET))
    return partition


def schedule(offset: int, *headers: tuple[str, bytes]) -> Any:
    return command(due_at(AT + HOUR), *TO_REMINDERS, *headers, key=KEYS[offset], offset=offset)


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

    cycles = cycles_on(partition, [schedule(offset, OTHER) for offset in (5, 6)], Clock())
    cycles.failures.work_search.failed(4, [])
    while Kind.DELAYED not in cycles.failures.work_search.share(1).kinds:
        cycles.failures.work_search.rested(is_caught_up=True)
    made = await cycles._make(partition.table)
    assert (cycles.failures.attempt.works, made.taken.position) == ([Work(Kind.COMMAND, 2)], None)


async def test_room_is_asked_for_when_that_is_possible_again_though_the_rules_changed_before(
    partition: Partition,
) -> None:
    partition.tenants.book = TenantBook()
    await partition.run(*map(schedule, range(3)))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))], {"default": 1})
    cycles = cycles_on(partition, [], clock := Clock())
    cycles.failures.neighbours.failed([(NAMES.commands, 1)], {(NAMES.history, 0)}, AT)
    asked = []
    for _ in range(2):
        made = await cycles._make(partition.table)
        cycles._growth.settle(made.cycle, made.slice, made.now)
        asked.append([place for place in made.batches.places if place[0] == NAMES.commands])
        clock.at += FIRST_PAUSE_MS
    assert asked == [[], [(NAMES.commands, 1)]]


async def test_room_is_asked_for_of_a_partition_that_had_no_leader_once_it_has_one_and_not_again(
    partition: Partition,
) -> None:
    partition.tenants.book = TenantBook()
    await partition.run(*map(schedule, range(3)))
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(max_pending=2))], {"default": 1})
    cycles = cycles_on(partition, [], Clock())
    topic, asked = partition.topics[NAMES.commands], []
    for unavailable in (frozenset({1}), frozenset({1}), frozenset[int](), frozenset[int]()):
        partition.topics[NAMES.commands] = topic._replace(unavailable=unavailable)
        made = await cycles._make(partition.table)
        cycles._growth.settle(made.cycle, made.slice, made.now)
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
    cycles, producer = cycles_on(partition, [], Clock()), cast(Any, Unanswered())
    made = await cycles._make(partition.table)
    with pytest.raises(CycleTimeout) as error:
        await cycles._commit(made, partition.table, producer)
    cycles.failures.failed(error.value, may_count=False)
    assert isinstance(partition.topics, Topics)
    assert partition.topics.doubted == {NAMES.commands}
    assert cycles.failures.left_alone(AT) == {1}


@pytest.mark.parametrize(("counts", "left"), [(True, 1), (False, 3)])
async def test_commands_and_firings_count_for_their_rates_once_a_commit_without_an_answer_is_known_to_count(
    partition: Partition, counts: bool, left: int
) -> None:
    rules = TenantRules(commands_per_second=8, firings_per_second=32)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    await partition.run(command(due_at(AT + 1), *TO_REMINDERS, key=KEYS[0], offset=0))
    cycles = cycles_on(partition, [schedule(offset) for offset in (1, 2)], clock := Clock())
    clock.at += 1
    cycles._budget.follow_tenants(clock.at)
    await commit_in_doubt(cycles, partition, counts=counts)
    rates, firing_rates = cycles._context.command_rates, cycles._context.firing_rates
    rates.begin()
    assert rates.take("default", 8, AT, clock.at)
    assert (rates.left("default") + 1, firing_rates.allowed("default", clock.at)) == (left, 4 - counts)


async def commit_in_doubt(cycles: LaneCycles, partition: Partition, *, counts: bool) -> None:
    """Run a cycle whose commit is not answered, and have its lane find out after a restart whether it counts."""

    class Unanswered:
        transactional_id = "id"

        async def commit(self, batches: Any, *_: Any, **__: Any) -> None:
            await batches.send(partition.producer)
            raise CycleTimeout("no answer")

    made = await cycles._make(partition.table)
    with pytest.raises(CycleTimeout) as error:
        await cycles._commit(made, partition.table, cast(Any, Unanswered()))
    cycles.failures.failed(error.value, may_count=True)

    async def untouched(_first: int, _end: int) -> bool:
        return not counts

    await cycles.decide(untouched)


RATE = 2
OTHERS_END = 1_000


async def with_a_staged_commit_in_doubt(partition: Partition) -> tuple[LaneCycles, int, int]:
    """Return the cycles of a lane with a tenant's rate, whose staged commit was not answered, and where it stands."""

    class Unanswered:
        transactional_id = "id"

        async def commit(self, batches: Any, *_: Any, **__: Any) -> dict[tuple[str, int], int]:
            ends: dict[tuple[str, int], int] = await batches.send(partition.producer)
            return ends

        async def commit_when(self, batches: Any, _: Any) -> None:
            await batches.send(partition.producer)
            raise CycleTimeout("no answer")

    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=RATE)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    cycles, producer = cycles_on(partition, [due(0, AT + 1_000)], Clock()), cast(Any, Unanswered())
    await cycles._commit(await cycles._make(partition.table), partition.table, producer)
    begin = partition.producer.ends[cycles._context.changelog]
    with pytest.raises(CycleTimeout) as error:
        await cycles._stage(AT + 1_000, partition.table, producer)
    cycles.failures.failed(error.value, may_count=True)
    return cycles, begin, partition.producer.ends[cycles._context.changelog]


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("others", [False, True], ids=["nobody else wrote", "another lane committed"])
async def test_after_a_staged_commit_without_an_answer_delayed_commands_catch_up_unless_another_lane_had_the_partition(
    partition: Partition, counts: bool, others: bool
) -> None:
    cycles, begin, end = await with_a_staged_commit_in_doubt(partition)
    assert begin < end

    async def untouched(first: int, until: int) -> bool:
        return not ((counts and first < end and begin < until) or (others and until == OTHERS_END))

    await cycles.decide(untouched)
    await cycles.notice_others(OTHERS_END if others else end + 1, untouched)
    assert partition.command_rates.catch_up("default", RATE, AT + 60_000) is not others


async def with_a_refusal(partition: Partition) -> LaneCycles:
    """Return the cycles of a lane that knows of a firing that its topic refuses, and of a condemned command."""
    await partition.run(command(due_at(AT + 1), *TO_REMINDERS, key=KEYS[0], offset=0))
    cycles = cycles_on(partition, [schedule(1, OTHER)], clock := Clock())
    clock.at += 1
    cycles._record_search.refuse([("default", KEYS[0].decode(), AT + 1, 1)], "it is too large", clock.at, None)
    cycles._work_search.condemn(Work(Kind.COMMAND, 1), "why")
    return cycles


def cannot_be_written(*_: Any, **__: Any) -> None:
    raise OSError("the disk is full")


@pytest.mark.parametrize(("counts", "left"), [(True, 0), (False, 1)])
async def test_what_a_commit_without_an_answer_has_refused_is_not_refused_again_if_it_counts(
    partition: Partition, counts: bool, left: int
) -> None:
    cycles = await with_a_refusal(partition)
    await commit_in_doubt(cycles, partition, counts=counts)
    assert (len(cycles._record_search.refusals), len(cycles._work_search.condemned)) == (left, left)


async def test_what_a_committed_cycle_has_refused_is_not_refused_again_though_the_table_cannot_be_written(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles = await with_a_refusal(partition)
    made = await cycles._make(partition.table)
    monkeypatch.setattr(Overlay, "apply", cannot_be_written)
    with pytest.raises(OSError, match="full") as error:
        await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    cycles.failures.failed(error.value, may_count=False)
    assert (cycles._record_search.refusals, cycles._work_search.condemned) == ({}, {})


async def test_a_committed_transaction_is_not_taken_for_an_aborted_one_though_the_table_cannot_be_written(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS, key=KEYS[0], offset=0), now=AT - 1)
    cycles = cycles_on(partition, [], Clock())
    cycles.failures.attempt = Attempt("id")
    made = await cycles._make(partition.table)
    monkeypatch.setattr(Overlay, "apply", cannot_be_written)
    with pytest.raises(OSError, match="full") as error:
        await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    assert not cycles.failures.failed(error.value, may_count=False)
    (touched,) = cycles.failures.holding._markers._touched.values()
    assert (touched["id"].end, touched["id"].has_written_since) == (0, False)
    assert not cycles._work_search.is_active, "nor does it say anything of the work"


FORMER, PARTITIONS = 2, 4
LEAVES = next(key for key in KEYS if partition_for(key, PARTITIONS) == 2)
"""A key that moves from partition 0 to partition 2."""
PAUSE = (("schedule-command", b"pause"), ("schedule-id", b"*"))


@pytest.fixture
def growing() -> Partition:
    """Partition 0 of a topic that had two partitions and has four."""
    partition = Partition(FakeProducer(), of=PARTITIONS)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    all = frozenset(range(PARTITIONS))
    grow(partition, Partitioning(PARTITIONS, FORMER, running=all, secret=SECRET, following=all))
    return partition


def grow(partition: Partition, partitioning: Partitioning) -> None:
    partition.partitionings = SimpleNamespace(of=lambda topic: partitioning)


async def with_a_copy_for_many(growing: Partition) -> LaneCycles:
    """Return the cycles of a lane that has a schedule to hand over, and reads a copy of a bulk command."""
    now = growing.context.partitioning
    grow(growing, Partitioning(FORMER, secret=SECRET))
    await growing.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=LEAVES, offset=0))
    grow(growing, now)
    copy = command(*PAUSE, (FORWARDED_FROM, b"1:77:%d:%s" % (AT, b"0" * 32)), key=None, value=None, offset=9)
    return cycles_on(growing, [copy], Clock())


async def test_schedules_are_handed_over_while_a_bulk_command_is_at_work_and_as_it_leaves_them(
    growing: Partition,
) -> None:
    cycles = await with_a_copy_for_many(growing)
    made = await cycles._make(growing.table)
    await made.batches.send(growing.producer)
    copy, adoption, emptied = (each for each in growing.sent(NAMES.commands) if each.partition == 2)
    assert [each.headers[-1][0] for each in (copy, adoption, emptied)] == [BULK_REACH, ADOPTED_FROM, EMPTIED]
    assert decode_entry(adoption.value).progress.paused


async def test_a_bulk_command_is_to_blame_for_what_it_raises_on_a_schedule_that_is_handed_over(
    growing: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no good")

    cycles = await with_a_copy_for_many(growing)
    monkeypatch.setattr(bulk, "decide_bulk", fail)
    with pytest.raises(WorkFailedError) as error:
        await cycles._make(growing.table)
    assert error.value.work == Work(Kind.BULK, 9)


async def test_a_lane_that_takes_over_a_partition_that_has_settled_copies_its_first_bulk_command_to_all(
    growing: Partition,
) -> None:
    """The lane before may have reported that, and the topic can grow again as soon as the report is read."""
    overlay = Overlay(growing.table)
    for number in range(FORMER):
        overlay.others.put(emptied_key(PARTITIONS, number), encode_emptied())
    overlay.apply(changelog_offset=0, complete_at=AT)
    cycles = cycles_on(growing, [command(*PAUSE, key=None, value=None, offset=9)], Clock())
    made = await cycles._make(growing.table)
    assert {place[1] for place in made.batches.places if place[0] == NAMES.commands} == {1, 2, 3}


async def test_a_lane_remembers_that_it_has_told_that_nothing_is_left_to_be_moved(growing: Partition) -> None:
    overlay, told = Overlay(growing.table), []
    for number in range(FORMER):
        overlay.others.put(emptied_key(PARTITIONS, number), encode_emptied())
    overlay.apply(changelog_offset=0, complete_at=AT)
    growing.partitionings.report = lambda topic, _id, *report: told.append((topic, *report))
    cycles = cycles_on(growing, [], Clock())
    made = await cycles._make(growing.table)
    cycles._growth.settle(made.cycle, made.slice, made.now)
    assert told == [(NAMES.commands, 0, PARTITIONS, Stage.SETTLED)]
    assert growing.queue_ends.has_settled(PARTITIONS)


async def test_a_lane_tells_that_bulk_commands_follow_schedules_before_it_tells_that_it_runs(
    growing: Partition,
) -> None:
    told: list[Stage] = []
    grow(growing, Partitioning(PARTITIONS, FORMER, secret=SECRET))
    growing.partitionings.report = lambda *report: told.append(report[-1])
    cycles = cycles_on(growing, [], Clock())
    made = await cycles._make(growing.table)
    cycles._growth.settle(made.cycle, made.slice, made.now)
    assert told == [Stage.FOLLOWING, Stage.RUNNING]


async def test_a_lane_tells_it_too_where_an_earlier_version_has_moved_everything(
    growing: Partition,
) -> None:
    told: list[Stage] = []
    everywhere, here = frozenset(range(PARTITIONS)), frozenset({0})
    grow(growing, Partitioning(PARTITIONS, FORMER, secret=SECRET, running=everywhere, settled=here))
    growing.partitionings.report = lambda *report: told.append(report[-1])
    cycles = cycles_on(growing, [], Clock())
    made = await cycles._make(growing.table)
    cycles._growth.settle(made.cycle, made.slice, made.now)
    assert told == [Stage.FOLLOWING]


async def test_a_letter_about_rates_takes_no_room_from_commands_that_are_still_to_be_read(partition: Partition) -> None:
    partition.partitionings = None  # so lanes of the topic share no log
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(commands_per_second=20))])
    owned = {"http://own": {NAMES.commands: [0, 1]}}
    owners: Any = SimpleNamespace(own_url="http://own", owners=lambda: owned)
    exchange = RateExchange(owners, [NAMES.commands])
    partition.rate_post, other = (exchange.post_of((NAMES.commands, number)) for number in (0, 1))
    for post in (partition.rate_post, other):
        post.open(lambda: None)

    def cancels(at: int, first: int) -> list[Any]:
        headers = ("schedule-command", b"cancel"), *ANSWER
        return [command(*headers, key=KEYS[0], offset=first + number, timestamp=at) for number in range(10)]

    await partition.run(*cancels(AT, 0))
    clock = Clock()
    clock.at = AT + 5_000
    cycles = cycles_on(partition, cancels(AT + 1_000, 10), clock)
    cycles.failures.work_search.failed(4, [])
    other.send((NAMES.commands, 0), RateAsk(RateName(RateKind.COMMANDS, "default"), 1, 7, 100_000))
    await cycles._make(partition.table)
    assert [message.said.number for message in other.received()] == [7]
    await partition.run(*cancels(AT + 2_000, 10), now=clock.at)
    assert [result.outcome.value for result in partition.results] == 10 * ["not_found"]


class Unknown:
    """A schema registry that knows no schema yet."""

    def __init__(self) -> None:
        self.schemas = Schemas()
        self.trouble: str | None = "it does not answer"

    def ask_for(self, id: int, wake: Any, on_trouble: Any) -> None:
        """It takes long."""

    def trouble_with(self, id: int) -> str | None:
        return self.trouble


def task(tenant: str, offset: int, at: int, *, framed: bool = False) -> Any:
    """Return a command of light-4j, whose value needs a schema of a registry if it is framed."""
    fields = {"host": tenant, "name": f"t-{offset}", "action": "INSERT", "frequency": {"timeUnit": "HOURS", "time": 1}}
    key, value = task_record({**fields, "topic": "reminders", "start": at, "data": None}, None, 7 if framed else None)
    return command(key=key, value=value, offset=offset, timestamp=at)


@pytest.mark.parametrize("is_backlog", [False, True])
async def test_while_the_next_command_waits_for_its_schema_tenants_of_no_command_that_waits_lend_tokens(
    is_backlog: bool,
) -> None:
    partition = Partition(FakeProducer(), of=2, dialect="light4j", schemas=Schemas())
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    rules = TenantRules(commands_per_second=20)
    partition.tenants.book = TenantBook([Tenant(name=name, rules=rules) for name in ("waits", "other")])
    owners: Any = SimpleNamespace(own_url="http://own", owners=lambda: {"http://own": {NAMES.commands: [0, 1]}})
    exchange = RateExchange(owners, [NAMES.commands])
    partition.rate_post, other = (exchange.post_of((NAMES.commands, number)) for number in (0, 1))
    for post in (partition.rate_post, other):
        post.open(lambda: None)
    clock = Clock()
    cycles = cycles_on(partition, [task("waits", 5, AT, framed=True)], clock)
    registry: Any = Unknown()
    readable = Readable(partition.dialect, registry, lambda: None)
    cycles._incoming = cycles._incoming._replace(readable=readable)
    cycles._unread = Unread(cycles._incoming, partition.dialect)
    cycles._intake.backlog_taken = not is_backlog

    async def lent(tenant: str) -> int:
        other.send((NAMES.commands, 0), RateAsk(RateName(RateKind.COMMANDS, tenant), 1, 7, 100_000))
        made = await cycles._make(partition.table)
        partition.command_rates.commit()
        assert made.taken.read == 0
        return sum(message.said.amount for message in other.received() if isinstance(message.said, RateGrant))

    lent_first = {tenant: await lent(tenant) for tenant in ("waits", "other")}
    assert all(lent_first.values())
    for _ in range(3):
        clock.at += 10_000
        assert (await lent("waits"), await lent("other")) == (0, lent_first["other"])


def cancel(key: bytes, offset: int) -> Any:
    return command(("schedule-command", b"cancel"), key=key, offset=offset, timestamp=AT)


@pytest.mark.parametrize("most", [3, 5_000])
async def test_delayed_commands_whose_turn_came_while_no_worker_ran_are_carried_out_before_anything_is_fired(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    partition = Partition(FakeProducer())
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    owners: Any = SimpleNamespace(own_url="http://own", owners=lambda: {"http://own": {NAMES.commands: [0, 1]}})
    exchange = RateExchange(owners, [NAMES.commands])
    partition.rate_post, other = (exchange.post_of((NAMES.commands, number)) for number in (0, 1))
    partition.rate_post.open(lambda: None)
    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=2)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    soon = due_at(AT + HOUR // 2)
    await partition.run(*(command(soon, *TO_REMINDERS, key=key, offset=at) for at, key in enumerate((b"a", b"b"))))
    clock = Clock()
    clock.at = AT + HOUR
    cycles = cycles_on(partition, [], clock)
    monkeypatch.setattr(cycles._budget, "most", lambda _: most)
    backlog = [*(cancel(b"none-%d" % number, number) for number in range(2, 11)), cancel(b"a", 11)]
    cycles._incoming.open(2, 12)
    cycles._intake.offer(cycles._intake.epoch, 2, backlog)
    fired: list[str] = []
    delayed = 0
    while not (made := await cycles._make(partition.table)).is_empty:
        other.send((NAMES.commands, 0), RateAsk(RateName(RateKind.COMMANDS, "default"), 1, 7, 1_000))
        delayed += made.cycle.transaction.delayed
        fired += [entry.schedule.id for entry in made.due.entries]
        await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    assert delayed == 10
    assert fired == ["b"]
    assert partition.table.pending == 0


async def test_commands_that_are_delayed_while_a_worker_runs_hold_up_no_firing_and_keep_to_the_rate() -> None:
    partition = Partition(FakeProducer())
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=2)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=b"a", offset=0))
    clock = Clock()
    cycles = cycles_on(partition, [cancel(b"none-%d" % number, number) for number in range(1, 11)], clock)
    made = await cycles._make(partition.table)
    await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    clock.at = AT + HOUR
    made = await cycles._make(partition.table)
    assert made.cycle.delaying.taken == 2
    assert [entry.schedule.id for entry in made.due.entries] == ["a"]


BEHIND = 7
"""The offset of a command that needs a schema of the registry, and that the backlog ends with."""


async def held_up(registry: Unknown) -> tuple[Partition, LaneCycles]:
    """Return a partition with a schedule that is due, and the cycles of a lane that takes it over with a backlog."""
    partition = Partition(FakeProducer(), dialect="skyuk", schemas=registry.schemas)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    await partition.run(command(key=b"pending", value=skyuk_json(AT + HOUR), offset=0))
    clock = Clock()
    clock.at = AT + HOUR
    cycles = cycles_on(partition, [], clock)
    readable = Readable(partition.dialect, cast(Any, registry), cycles._alarm.ring)
    cycles._incoming = cycles._incoming._replace(readable=readable)
    cycles._incoming.open(BEHIND, BEHIND + 1)
    arrive(cycles)
    return partition, cycles


def arrive(cycles: LaneCycles) -> None:
    framed = command(key=b"framed", value=skyuk_avro(AT + HOUR, id=7), offset=BEHIND)
    cycles._intake.offer(cycles._intake.epoch, BEHIND, [framed])


async def test_a_backlog_that_waits_for_a_registry_which_cannot_be_asked_holds_up_no_pending_schedule() -> None:
    partition, cycles = await held_up(Unknown())
    cycles._alarm.reset()
    made = await cycles._make(partition.table)
    assert made.is_empty, "whether the backlog can be read is known after a look at it"
    assert cycles._alarm._rung.is_set()
    made = await cycles._make(partition.table)
    assert [entry.schedule.id for entry in made.due.entries] == ["pending"]
    assert made.taken.read == 0


async def test_a_backlog_that_waits_for_the_answer_of_a_registry_is_read_before_anything_is_fired() -> None:
    registry = Unknown()
    registry.trouble = None
    partition, cycles = await held_up(registry)
    for _ in range(3):
        assert (await cycles._make(partition.table)).is_empty
    registry.trouble = "it does not answer"
    assert (await cycles._make(partition.table)).due.entries


async def test_a_backlog_is_read_on_before_anything_more_is_fired_once_its_schema_is_known() -> None:
    partition, cycles = await held_up(registry := Unknown())
    await cycles._make(partition.table)
    registry.schemas.note(7, SKYUK_SCHEMA)
    registry.trouble = None
    made = await cycles._make(partition.table)
    assert (made.taken.read, made.due.entries) == (1, [])


async def test_a_lane_that_starts_again_does_not_take_another_command_for_the_one_that_waited() -> None:
    partition, cycles = await held_up(Unknown())
    await cycles._make(partition.table)
    cycles._incoming.open(BEHIND - 1, BEHIND + 1)
    assert (await cycles._make(partition.table)).is_empty
    first = command(key=b"pending", value=None, offset=BEHIND - 1)
    cycles._intake.offer(cycles._intake.epoch, BEHIND - 1, [first])
    arrive(cycles)
    made = await cycles._make(partition.table)
    assert (made.taken.read, made.due.entries) == (1, [])
    await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    assert partition.table.pending == 0, "it was cancelled before it could fire"


async def test_work_that_is_to_blame_is_refused_with_the_error_of_its_last_transaction(partition: Partition) -> None:
    failures = cycles_on(partition, [], Clock()).failures
    work = Work(Kind.COMMAND, 7)
    failures.work_search.failed(4, [])
    for number in range(STRIKES):
        failures.attempt = Attempt("id", size=1, is_begun=True, works=[work])
        failures.failed(BrokerError(f"try {number} failed"), may_count=False)
        failures.attempt = Attempt("id", is_begun=True)
        failures.committed({})
    assert failures.work_search.condemned == {work: f"transactions with it fail: try {STRIKES - 1} failed"}


class RefusesAnswers:
    """A producer whose transactions fail with an answer in them."""

    transactional_id = "id"

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.refused = 0

    async def commit(self, batches: Any, *_: Any, **__: Any) -> dict[tuple[str, int], int]:
        if any(topic == "answers" for topic, _ in batches.places):
            self.refused += 1
            raise BrokerError("no transaction takes this answer")
        await batches.send(self._partition.producer)
        return dict.fromkeys(batches.places, 0)


async def test_a_bulk_command_whose_answer_fails_every_transaction_ends_in_silence() -> None:
    """First with an answer that names the partition as missing, and as that fails too, without one."""
    partition = Partition(FakeProducer())
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    await partition.run(command(*PAUSE, *ANSWER, key=None, value=None, offset=9))
    cycles, producer = cycles_on(partition, [], Clock()), RefusesAnswers(partition)
    for _ in range(60):
        made = await cycles._make(partition.table)
        if made.is_empty and made.kinds:
            cycles.failures.work_search.rested(is_caught_up=True)
            continue
        try:
            await cycles._commit(made, partition.table, cast(Any, producer))
        except BrokerError as error:
            cycles.failures.failed(error, may_count=False)
    overlay = Overlay(partition.table)
    assert (overlay.others.bulk_parts(), overlay.others.bulk_totals()) == ([], {})
    assert producer.refused > STRIKES
    assert (cycles.failures.work_search.condemned, cycles.failures.work_search.silenced) == ({}, set())


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


def due(offset: int, at: int = AT, *headers: tuple[str, bytes]) -> Any:
    return command(due_at(at), *TO_REMINDERS, *headers, key=KEYS[offset], offset=offset)


async def test_after_a_few_firings_more_may_gather(partition: Partition) -> None:
    await partition.run(due(0, AT + 1), due(1, AT + 9))
    cycles = await committed(partition, at=AT + 5)
    assert cycles._gathering.left_ms() == gathering.MOST_MS


async def test_after_commands_nothing_gathers(partition: Partition) -> None:
    await partition.run(due(0, AT + 1))
    assert (await committed(partition, due(1, AT + HOUR), at=AT + 5))._gathering.left_ms() == 0


async def test_nothing_gathers_while_something_is_left_to_do(partition: Partition) -> None:
    await partition.run(due(0, AT + 1))
    cycles = crowded_on(partition, [], AT + 5)
    made, slice = await cycles._make(partition.table), cast(Any, object())
    assert cycles._held_firings_only(made, None)
    assert cycles._held_firings_only(made, AT + 6)
    assert not cycles._held_firings_only(made, AT + 5)
    assert not cycles._held_firings_only(made._replace(taken=made.taken._replace(is_bulk_at_work=True)), None)
    assert not cycles._held_firings_only(made._replace(slice=slice), None)
    for soon in (SimpleNamespace(goes_on_at=AT + 6, ask_at=None), SimpleNamespace(goes_on_at=None, ask_at=AT + 6)):
        former = made.cycle
        waiting: Any = SimpleNamespace(
            delaying=soon, rate_lending=soon, transaction=former.transaction, delivered=former.delivered
        )
        assert not cycles._held_firings_only(made._replace(cycle=waiting), None)


async def test_nothing_gathers_while_firings_are_held_by_a_cap(partition: Partition) -> None:
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(firings_per_second=1.0))])
    await partition.run(due(0, AT + 1), due(1, AT + 1))
    assert (await committed(partition, at=AT + 5))._gathering.left_ms() == 0


async def test_nothing_gathers_after_a_firing_that_was_not_delivered(partition: Partition) -> None:
    await partition.run(due(0, AT + 1, ("schedule-ttl", b"1ms")))
    assert (await committed(partition, at=AT + 500))._gathering.left_ms() == 0


@pytest.mark.parametrize("state", [TenantState.PAUSED, TenantState.DELETED])
async def test_a_tenant_that_is_stopped_and_of_which_nothing_is_left_to_remove_lets_firings_gather(
    partition: Partition, state: TenantState
) -> None:
    of_another = ("schedule-tenant", b"another")
    await partition.run(due(0, AT + 1), *([due(1, AT + 1, of_another)] if state is TenantState.PAUSED else []))
    partition.tenants.book = TenantBook([Tenant(name="another", state=state)])
    cycles = await committed(partition, at=AT + 5)
    assert cycles._gathering.left_ms() == gathering.MOST_MS


async def test_nothing_gathers_while_a_deleted_tenant_is_removed(partition: Partition) -> None:
    await partition.run(due(0, AT + 1), due(1, AT + HOUR, ("schedule-tenant", b"gone")))
    partition.tenants.book = TenantBook([Tenant(name="gone", state=TenantState.DELETED)])
    assert (await committed(partition, at=AT + 5))._gathering.left_ms() == 0


@pytest.fixture
def for_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "MOST_MS", 60_000)


async def resting(partition: Partition, at: int = AT) -> LaneCycles:
    """Return the cycles of a lane that had better let firings gather."""
    cycles = crowded_on(partition, [], at)
    cycles._gathering.begin()
    cycles._gathering.ended(1)
    return cycles


@pytest.mark.usefixtures("for_a_minute")
async def test_a_lane_lets_firings_gather_until_somebody_rings(partition: Partition) -> None:
    cycles = await resting(partition)
    pause = asyncio.create_task(cycles._let_gather())
    await asyncio.sleep(0.01)
    assert not pause.done()
    cycles._alarm.ring()
    await asyncio.wait_for(pause, 10)


@pytest.mark.usefixtures("for_a_minute")
async def test_a_lane_that_closes_meanwhile_begins_no_cycle(partition: Partition) -> None:
    cycles = await resting(partition)
    nothing: Any = None
    cycle = asyncio.create_task(cycles.cycle(nothing, nothing))
    await asyncio.sleep(0.01)
    cycles._is_closing = lambda: True
    cycles._alarm.ring()
    await asyncio.wait_for(cycle, 10)


@pytest.mark.usefixtures("for_a_minute")
@pytest.mark.parametrize("what", ["work that fails", "a record that is refused"])
async def test_nothing_gathers_while_a_failure_is_looked_into(partition: Partition, what: str) -> None:
    cycles = await resting(partition)
    if what == "work that fails":
        cycles.failures.work_search.failed(4, [])
    else:
        cycles.failures.record_search.refuse([(b"default", b"a", AT)], "why", AT, ("reminders", 0))  # type: ignore[list-item]
    await asyncio.wait_for(cycles._let_gather(), 10)


@pytest.mark.usefixtures("for_a_minute")
@pytest.mark.parametrize(("before_ms", "gathers"), [(60_069, False), (60_070, True), (40, False)])
async def test_nothing_gathers_into_an_instant_that_is_to_be_prepared(
    partition: Partition, before_ms: int, gathers: bool
) -> None:
    cycles = await resting(partition, at=AT // HOUR * HOUR + HOUR - before_ms)
    pause = asyncio.create_task(cycles._let_gather())
    await asyncio.sleep(0.01)
    assert pause.done() is not gathers
    pause.cancel()


@pytest.mark.parametrize("searches", [True, False])
async def test_what_waits_for_its_target_stays_passed_over_though_a_cycle_holds_nothing(
    partition: Partition, monkeypatch: pytest.MonkeyPatch, searches: bool
) -> None:
    """Else tenants of which much waits would come first again, and others never."""
    cycles = crowded_on(partition, [])
    if searches:
        cycles.failures.work_search.failed(4, [])
    make, fair = cycles._make, cycles._budget._fair

    async def passing_over(table: Any) -> Any:
        made = await make(table)
        fair.share({"waits": lambda asked: asked}, 5.0)
        return made._replace(due=made.due._replace(next_due=AT), taken=made.taken._replace(is_bulk_at_work=False))

    monkeypatch.setattr(cycles, "_make", passing_over)
    monkeypatch.setattr(cycles, "_rest", AsyncMock())
    monkeypatch.setattr(cycles, "_check_own_topics", Mock())
    await cycles.cycle(partition.table, cast(Any, TakesAll(partition)))
    passed_over = dict(fair._served)
    assert passed_over
    cycles._budget.begin()
    assert fair._served == passed_over


@pytest.mark.parametrize(
    ("complete_at", "rests"),
    [(AT, True), (AT - CHECKPOINT_MS + 1, True), (AT - CHECKPOINT_MS, False), (AT + 1, False)],
)
async def test_a_lane_with_nothing_to_do_commits_once_an_hour_and_when_its_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch, complete_at: int, rests: bool
) -> None:
    partition = Partition(FakeProducer())
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    checkpoint = partition.table.checkpoint
    partition.table.checkpoint = msgspec.structs.replace(checkpoint, complete_at=complete_at)
    cycles, rest, commit = cycles_on(partition, [], Clock()), AsyncMock(), AsyncMock()
    monkeypatch.setattr(cycles, "_rest", rest)
    monkeypatch.setattr(cycles, "_commit", commit)
    monkeypatch.setattr(cycles, "_check_own_topics", Mock())
    await cycles.cycle(partition.table, cast(Any, TakesAll(partition)))
    assert (rest.await_count, commit.await_count) == ((1, 0) if rests else (0, 1))


async def test_a_search_goes_on_behind_what_waits_for_its_target(partition: Partition) -> None:
    cycles = crowded_on(partition, [])
    search = cycles.failures.work_search
    search.failed(4, [])
    search.succeeded([])
    made = await cycles._make(partition.table)
    assert made.kinds == {Kind.COMMAND}
    assert cycles._has_searched_on(made._replace(due=made.due._replace(next_due=AT)))
    assert search._limits[Kind.COMMAND] == 2
    assert cycles._has_searched_on(made._replace(due=made.due._replace(next_due=AT + 1)))
    assert Kind.BULK not in search._limits


@pytest.mark.parametrize("reads", [True, False])
async def test_where_a_lane_goes_on_after_its_log_has_changed_is_stored_with_whatever_it_does_first(
    partition: Partition, reads: bool
) -> None:
    """Else another worker would read on where commands of the former log ended."""
    await partition.run(due(0, AT + 1))
    cycles = crowded_on(partition, [due(1, AT + HOUR)] if reads else [], AT + 5)
    partition.table.checkpoint = msgspec.structs.replace(partition.table.checkpoint, position=80)
    cycles._input.has_jumped = True
    made = await cycles._make(partition.table)
    assert (made.taken.position, len(made.due.entries)) == (2 if reads else None, 1)
    await cycles._commit(made, partition.table, cast(Any, TakesAll(partition)))
    assert not cycles._input.has_jumped
    assert POSITION_KEY in [record.key for record in partition.sent(CHANGELOG)]
    assert partition.table.checkpoint.position == (2 if reads else 80)


async def test_where_a_lane_goes_on_after_its_log_has_changed_is_stored_before_it_looks_for_what_moves(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    cycles = crowded_on(partition, [])
    cycles._input.has_jumped = True
    make, stays = cycles._make, Slice(b"z", stayed=1, waiting=0)

    async def looking(table: Any) -> Any:
        return (await make(table))._replace(slice=stays)

    monkeypatch.setattr(cycles, "_make", looking)
    monkeypatch.setattr(cycles, "_check_own_topics", Mock())
    await cycles.cycle(partition.table, cast(Any, TakesAll(partition)))
    assert POSITION_KEY in [record.key for record in partition.sent(CHANGELOG)]
