"""When a lane waits for more firings to become due."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from support.lane_cycles import committed, crowded_on, due, half
from support.partition import AT, HOUR, Partition

from light_scheduler.lanes import gathering
from light_scheduler.lanes.cycles import LaneCycles
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState


@pytest.fixture
async def partition() -> Partition:
    return half()


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
