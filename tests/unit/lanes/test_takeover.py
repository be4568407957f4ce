"""What a lane that takes over its partition again learns from the changelog of what others did meanwhile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaConnectionError
from support.outages import Topics
from support.partition import AT, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.errors import BrokerError, CycleTimeout
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.lane import Lane
from light_scheduler.model.tenant_rules import Tenant, TenantBook, TenantRules
from light_scheduler.tables.recovery import Restored
from light_scheduler.tables.services import LaneServices

RATE = 10


class Changelog:
    """A changelog and the clients of its lane. Records at the offsets in `counted` are committed."""

    transaction_timeout_ms = 10_000

    def __init__(self) -> None:
        self.end = 0
        self.counted: set[int] = set()
        self.is_down = False
        self.looked_up: list[int] = []
        self._at = 0

    async def fence(self, *_: Any) -> bool:
        return True

    def producer(self, _: str) -> Any:
        async def nothing() -> None:
            pass

        return SimpleNamespace(start=nothing, cut_off=nothing, _txn_manager=SimpleNamespace(txn_partitions=set()))

    def reader(self) -> Any:
        return self

    async def start(self) -> None:
        if self.is_down:
            raise KafkaConnectionError

    async def stop(self) -> None:
        pass

    async def end_offsets(self, tps: list[Any]) -> dict[Any, int]:
        return dict.fromkeys(tps, self.end)

    def assign(self, tps: list[Any]) -> None:
        (self._assigned,) = tps

    def seek(self, _: Any, offset: int) -> None:
        self.looked_up.append(offset)
        self._at = offset

    async def position(self, _: Any) -> int:
        return self._at

    async def getmany(self, **_: Any) -> dict[Any, list[int]]:
        found = [offset for offset in self.counted if offset >= self._at]
        self._at = self.end
        return {self._assigned: found}


class Copy:
    """A local copy that has applied what the lane itself has committed. Others' records are `ahead` once."""

    def __init__(self, partition: Partition, log: Changelog) -> None:
        self.table: Any = partition.table
        self.ahead = 0
        self._log = log

    async def bring_up(self, **_: Any) -> tuple[Any, Restored]:
        applied, self.ahead = self.ahead, 0
        return self.table, Restored(applied, self._log.end, 1)

    def close(self) -> None:
        """It is opened again where it was."""


class Committing:
    """The producer of a lane. Commits are answered or not."""

    transactional_id = "id"

    def __init__(self, partition: Partition, *, answers: bool = True) -> None:
        self._partition = partition
        self._answers = answers

    async def commit(self, batches: Any, *_: Any, **__: Any) -> dict[tuple[str, int], int]:
        ends: dict[tuple[str, int], int] = await batches.send(self._partition.producer)
        if not self._answers:
            raise CycleTimeout("no answer")
        return ends


def ignore(*_: Any) -> None:
    pass


class Owner:
    """A lane of a tenant with a rate for commands, whose second commit was not answered."""

    def __init__(self, path: Path) -> None:
        partition = self.partition = Partition(FakeProducer())
        partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
        partition.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(commands_per_second=RATE))])
        self.log = Changelog()
        unused: Any = None
        clock: Any = SimpleNamespace(now=lambda: AT)
        services = LaneServices(cast(Any, self.log), "app", clock, unused, unused, lambda _: unused, ignore, unused)
        self.lane = Lane(partition.context, services, path)
        self.lane.copy = self.copy = cast(Any, Copy(partition, self.log))

    async def commit(self, offset: int, *, answers: bool) -> None:
        """Run a cycle with one command."""
        lane, cycles = self.lane, self.lane._cycles
        lane.intake.open(offset, offset)
        lane.intake.offer(lane.intake.epoch, offset, [command(due_at(AT + 1_000), *TO_REMINDERS, offset=offset)])
        made = await cycles._make(self.partition.table)
        producer: Any = Committing(self.partition, answers=answers)
        changelog = self.partition.context.changelog
        begin = self.partition.producer.ends[changelog]
        try:
            await cycles._commit(made, self.partition.table, producer)
        except CycleTimeout as error:
            cycles.failures.failed(error, may_count=True)
        end = self.partition.producer.ends[changelog]
        self.log.counted |= set(range(begin, end))
        self.log.end = end + 1
        self.partition.producer.ends[changelog] += 1  # the marker

    def others_commit(self) -> None:
        self.log.counted.add(self.log.end)
        self.log.end += 2
        self.copy.ahead = 1

    async def take_over(self) -> None:
        await self.lane._take_over()

    async def fail_to_take_over(self) -> None:
        self.log.is_down = True
        with pytest.raises((BrokerError, KafkaConnectionError)) as error:
            await self.take_over()
        await self.lane._recover(error.value)
        self.log.is_down = False

    @property
    def may_catch_up(self) -> bool:
        return self.partition.command_rates.catch_up("default", RATE, AT + 60_000)


@pytest.fixture
async def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


async def test_a_lane_that_starts_again_lets_tenants_catch_up_and_looks_nothing_up(owner: Owner) -> None:
    await owner.commit(0, answers=True)
    await owner.take_over()
    assert owner.log.looked_up == []
    assert owner.may_catch_up


async def test_a_lane_whose_unanswered_commit_counts_lets_tenants_catch_up(owner: Owner) -> None:
    await owner.commit(0, answers=True)
    await owner.commit(1, answers=False)
    await owner.take_over()
    assert owner.may_catch_up


async def test_nobody_catches_up_with_the_time_of_another_lane_that_was_noticed_while_taking_over_failed(
    owner: Owner,
) -> None:
    """The copy has the other lane's records then, so there is nothing more to apply."""
    await owner.commit(0, answers=True)
    await owner.commit(1, answers=False)
    owner.others_commit()
    await owner.fail_to_take_over()
    await owner.take_over()
    assert not owner.may_catch_up


async def test_what_was_looked_at_is_not_looked_at_again(owner: Owner) -> None:
    await owner.commit(0, answers=True)
    owner.log.end += 3  # of aborted transactions
    await owner.take_over()
    looked_up = list(owner.log.looked_up)
    await owner.lane._recover(BrokerError("restart"))
    await owner.take_over()
    assert (len(looked_up), owner.log.looked_up) == (1, looked_up)
    assert owner.may_catch_up


async def test_nobody_catches_up_where_the_changelog_is_another_one(owner: Owner) -> None:
    await owner.commit(0, answers=True)
    owner.log.end = 1
    owner.log.counted.clear()
    await owner.take_over()
    assert not owner.may_catch_up
