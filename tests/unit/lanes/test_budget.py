"""What caps leave of a lane's firings and commands."""

from __future__ import annotations

import dataclasses
from itertools import count
from typing import Any

import pytest
from support.partition import ANSWER, AT, NAMES, Partition, command, due_at, topic
from support.producing import FakeProducer

from light_scheduler.lanes.cycle.budget import Budget, TurnBudget
from light_scheduler.model import Shares
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules, TenantState
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for

USED = 4
KEY = next(key for key in map(b"%d".__mod__, count()) if partition_for(key, USED) == 1)


class Known:
    """Keys belong to four partitions, whatever topics have."""

    def of(self, topic: str) -> Partitioning:
        assert topic == NAMES.commands
        return Partitioning(USED)


@pytest.fixture(params=["changelog", "commands"])
def partition(request: pytest.FixtureRequest) -> Partition:
    """A partition of a topic that has more partitions than are used, or whose changelog does."""
    partition = Partition(FakeProducer(), number=1, of=USED)
    larger = NAMES.commands if request.param == "commands" else NAMES.changelog(NAMES.commands)
    partition.topics[larger] = topic(5 * USED)
    partition.partitionings = Known()
    return partition


def test_a_cap_of_firings_is_shared_among_the_partitions_that_keys_belong_to(partition: Partition) -> None:
    no_part: Any = None
    context = dataclasses.replace(partition.context, shares=Shares({}, 400.0, {"*": 200.0}))
    budget = Budget(context, no_part, lambda: None)
    budget.follow_tenants(AT)
    turns = budget.turns(AT, 1_000, 1 << 20)
    assert turns == TurnBudget(400 // USED // 4, 1 << 20, is_capped=True), "a quarter of a second's"
    assert budget.turns(AT, 24, 1 << 20) == TurnBudget(24, 1 << 20), "a cycle that holds less is not held up by the cap"


async def test_a_rate_of_commands_is_shared_among_the_partitions_that_keys_belong_to(partition: Partition) -> None:
    partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(commands_per_second=12))])
    cancels = [command(("schedule-command", b"cancel"), *ANSWER, key=KEY, offset=at, partition=1) for at in range(5)]
    await partition.run(*cancels)
    assert [result.outcome.value for result in partition.results] == 3 * ["not_found"] + 2 * ["rejected"]


async def test_what_a_paused_tenant_has_due_is_not_late() -> None:
    partition = Partition(FakeProducer())
    await partition.run(command(due_at(AT + 1), ("schedule-target-topic", b"reminders"), key=KEY))
    partition.tenants.book = TenantBook([Tenant(name="default", state=TenantState.PAUSED)])
    no_part: Any = None
    budget = Budget(partition.context, no_part, lambda: None)
    budget.follow_tenants(AT + 5)
    due = budget.take_due(Overlay(partition.table), AT + 5, TurnBudget(10, 1 << 20))
    assert (due.entries, due.held) == ([], {"default": AT + 1})
    assert budget.next_due is None
