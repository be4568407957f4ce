"""What comes first while commands are delayed, wait for a schema, or are part of a backlog."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.foreign import SKYUK_SCHEMA, skyuk_avro, skyuk_json
from support.lane_cycles import KEYS, Clock, TakesAll, cycles_on, half
from support.outages import Topics
from support.partition import ANSWER, AT, HOUR, NAMES, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.cycles import LaneCycles
from light_scheduler.lanes.input.readable import Readable
from light_scheduler.lanes.quotas.rate_exchange import RateExchange
from light_scheduler.lanes.quotas.unread import Unread
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateKind, RateName
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.wire.dialects.light4j import task_record
from light_scheduler.wire.schemas import Schemas


@pytest.fixture
async def partition() -> Partition:
    return half()


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
