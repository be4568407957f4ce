"""What a lane learns from a transaction that another partition of the commands topic did not answer."""

from __future__ import annotations

import asyncio
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaConnectionError, MessageSizeTooLargeError, NotEnoughReplicasError, UnknownError
from support.lane_cycles import Clock, cycles_on
from support.moving import Known
from support.outages import Settling, Topics
from support.partition import AT, HOUR, NAMES, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.errors import CycleTimeout, InputInDoubt, Overtaken, TransactionStuck
from light_scheduler.kafka.batches import Written
from light_scheduler.kafka.refusals import RecordsRefusedError, TargetsStalledError
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.cycles import LaneCycles
from light_scheduler.lanes.failures import transactions
from light_scheduler.lanes.failures.failing_work_search import STRIKES, Kind, Work
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.place import Place
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for

HERE, AWAY = 0, 1
OTHER = (NAMES.commands, AWAY)
NUMBERS = [b"%d" % number for number in range(60)]
MINE, STRAY = ([key for key in NUMBERS if partition_for(key, 2) == number] for number in (HERE, AWAY))


@pytest.fixture
async def partition() -> Partition:
    """Partition 0 of two."""
    partition = Partition(FakeProducer(), of=2)
    partition.topics = Topics(partition.topics, Outages(lambda: 0.0))
    return partition


def outages(partition: Partition) -> Outages:
    assert isinstance(partition.topics, Topics)
    return partition.topics.outages


def schedule(key: bytes, offset: int) -> Any:
    return command(due_at(AT + HOUR), *TO_REMINDERS, key=key, offset=offset)


def lane_at(partition: Partition, *keys: bytes) -> LaneCycles:
    return cycles_on(partition, [schedule(key, offset) for offset, key in enumerate(keys)], Clock())


class Taking:
    """Takes what it is sent, or fails with an error after some places have answered."""

    transactional_id = "id"

    def __init__(self, partition: Partition, error: Exception | None = None, *written: Place) -> None:
        self._partition = partition
        self._error = error
        self._written = written

    async def commit(self, batches: Any, *_: Any, **__: Any) -> Any:
        if self._error is not None:
            batches.written |= dict.fromkeys(self._written, Written(1, 1))
            raise self._error
        return await batches.send(self._partition.producer)


async def attempt(lane: LaneCycles, partition: Partition, error: Exception | None = None, *written: Place) -> Any:
    """Run a cycle; return the partitions of the topic that it wrote to."""
    made = await lane._make(partition.table)
    partition.producer.records.clear()
    if error is None:
        await lane._commit(made, partition.table, cast(Any, Taking(partition)))
        return [each.partition for each in partition.sent(NAMES.commands)]
    with pytest.raises(type(error)):
        await lane._commit(made, partition.table, cast(Any, Taking(partition, error, *written)))
    if isinstance(error, TargetsStalledError):
        for place in lane.failures.stalled(error):
            outages(partition).suspect([place], "silent", AT)
    else:
        lane.failures.failed(error, may_count=False)
    return None


CHANGELOG: Place = ("app-schedules-changelog", 0)
SILENT = {
    "no answer in time": TargetsStalledError([OTHER], [], 2.0),
    "a time-out": CycleTimeout("it took too long"),
    "an error that says nothing of records": RecordsRefusedError(NAMES.commands, NotEnoughReplicasError(), [], AWAY),
}


@pytest.mark.parametrize("error", SILENT.values(), ids=SILENT)
async def test_after_one_failure_its_commands_wait_no_work_is_suspected_and_others_go_on(
    partition: Partition, error: Exception
) -> None:
    lane = lane_at(partition, STRAY[0], MINE[0])
    await attempt(lane, partition, error, CHANGELOG)
    assert not lane.failures.work_search.is_active
    assert lane.failures.away() == {AWAY}
    assert lane.failures.left_alone(AT) >= {AWAY}

    again = lane_at(partition, STRAY[0], MINE[0])
    again.failures = lane.failures
    assert await attempt(again, partition) == []
    assert partition.table.pending == 1
    assert waiting(partition) == 1
    outages(partition).close([OTHER])
    assert await attempt(again, partition) == [AWAY]
    assert waiting(partition) == 0


def waiting(partition: Partition) -> int:
    return sum(queue.waiting for queue in Overlay(partition.table).others.waiting().values())


async def test_a_command_is_never_condemned_for_a_partition_that_fails_whenever_it_is_written_to(
    partition: Partition,
) -> None:
    failures = lane_at(partition).failures
    for number in count():
        lane = lane_at(partition, STRAY[0], MINE[0])
        lane.failures, lane._work_search = failures, failures.work_search
        if number == 3 * STRIKES:
            break
        await attempt(lane, partition, CycleTimeout("it took too long"), CHANGELOG)
        outages(partition).close([OTHER])
    assert failures.work_search.condemned == {}
    assert not failures.work_search.is_active


@pytest.mark.parametrize("cause", [MessageSizeTooLargeError(), UnknownError()])
async def test_a_record_that_is_refused_is_the_fault_of_its_command_and_not_of_the_partition(
    partition: Partition, cause: Any
) -> None:
    lane = lane_at(partition, STRAY[0])
    await attempt(lane, partition, RecordsRefusedError(NAMES.commands, cause, [], AWAY), CHANGELOG)
    assert lane.failures.work_search.is_active
    assert lane.failures.away() == frozenset()


async def test_a_transaction_that_times_out_though_the_others_have_answered_may_be_the_fault_of_its_work(
    partition: Partition,
) -> None:
    lane = lane_at(partition, STRAY[0], MINE[0])
    await attempt(lane, partition, CycleTimeout("it took too long"), CHANGELOG, OTHER)
    assert lane.failures.work_search.is_active
    assert lane.failures.away() == frozenset()


ANY = {
    "a broken connection": KafkaConnectionError(),
    "a refusal": RecordsRefusedError(NAMES.commands, UnknownError(), []),
}


@pytest.mark.parametrize("error", ANY.values(), ids=ANY)
async def test_what_has_waited_is_left_for_later_if_the_transaction_fails_that_sends_it(
    partition: Partition, error: Exception
) -> None:
    outages(partition).suspect([OTHER], "silent", AT)
    await attempt(lane_at(partition, STRAY[0]), partition)
    outages(partition).close([OTHER])
    lane = lane_at(partition, MINE[0])
    await attempt(lane, partition, error, CHANGELOG)
    assert (lane.failures.work_search.is_active, waiting(partition)) == (False, 1)
    assert lane.failures.away() == {AWAY}


@pytest.mark.parametrize("error", [TransactionStuck("id"), Overtaken("id"), InputInDoubt("id")])
async def test_an_error_that_has_nothing_to_do_with_writes_is_held_against_no_partition(
    partition: Partition, error: Exception
) -> None:
    outages(partition).suspect([OTHER], "silent", AT)
    await attempt(lane_at(partition, STRAY[0]), partition)
    outages(partition).close([OTHER])
    lane = lane_at(partition)
    await attempt(lane, partition, error)
    assert lane.failures.away() == frozenset()


async def test_what_the_metadata_tell_is_known_before_anything_fails(partition: Partition) -> None:
    topic = partition.topics[NAMES.commands]
    partition.topics[NAMES.commands] = topic._replace(unavailable=frozenset({AWAY}))
    lane = lane_at(partition, STRAY[0], MINE[0])
    assert await attempt(lane, partition) == []
    assert (waiting(partition), partition.table.pending) == (1, 1)
    partition.topics[NAMES.commands] = topic
    assert await attempt(lane, partition) == [AWAY]


async def test_commands_wait_for_a_partition_that_may_lack_a_marker_until_that_is_settled(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ends_before(places: list[Place], _: Any, __: Any, trusted: Any) -> dict[Place, int]:
        assert NAMES.commands not in trusted, "a partition that does not answer is left alone"
        return dict.fromkeys(places, 0)

    is_silent = True

    async def may_be_open(_: str, place: Place, end: int) -> bool:
        assert (place, end) == (OTHER, 1)
        if is_silent:
            await asyncio.Event().wait()
        return True

    monkeypatch.setattr(transactions, "stable_ends", ends_before)
    monkeypatch.setattr(transactions, "TIMEOUT_S", 0.01)
    failures = lane_at(partition).failures
    producer: Any = Settling(failures.attempt.transactional_id)
    monkeypatch.setattr(failures._services, "clients", SimpleNamespace(may_be_open=may_be_open), raising=False)
    first, second = lane_at(partition, STRAY[0]), lane_at(partition, STRAY[1])
    first.failures = second.failures = failures
    assert await attempt(first, partition) == [AWAY]
    outages(partition).remember([OTHER])
    assert await attempt(second, partition) == []
    assert failures.away() == failures.left_alone(AT) == {AWAY}
    assert waiting(partition) == 1

    await failures.holding.release(partition.table, producer)
    assert (producer.settled, outages(partition).places) == ([], [OTHER]), "its leader does not tell what is open"
    is_silent = False
    outages(partition).close([OTHER])
    await failures.holding.release(partition.table, producer)
    assert producer.settled == [([OTHER], True)]
    assert failures.away() == failures.left_alone(AT) == frozenset()
    assert await attempt(second, partition) == [AWAY]
    assert waiting(partition) == 0


async def test_while_failing_work_is_sought_what_has_waited_is_sent_in_the_turn_of_delayed_commands_and_alone(
    partition: Partition,
) -> None:
    outages(partition).suspect([OTHER], "silent", AT)
    await attempt(lane_at(partition, *STRAY[:3]), partition)
    outages(partition).close([OTHER])
    lane = lane_at(partition, MINE[0])
    lane.failures.work_search.failed(4, [])
    turns = []
    for _ in range(12):
        made = await lane._make(partition.table)
        if made.is_empty:
            lane._has_searched_on(made)
            continue
        turns.append((made.kinds, made.cycle.waiting.sent, lane.failures.attempt.works))
        await lane._commit(made, partition.table, cast(Any, Taking(partition)))
    delayed = frozenset({Kind.DELAYED})
    assert [(sent, works) for kinds, sent, works in turns if kinds == delayed] == [(1, []), (2, [])]
    assert all(sent == 0 for kinds, sent, _ in turns if kinds != delayed)


async def test_while_failing_work_is_sought_no_delayed_command_shares_a_cycle_with_what_has_waited(
    partition: Partition,
) -> None:
    rules = TenantRules(commands_per_second=2, over_rate=OverRate.DELAY)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])
    outages(partition).suspect([OTHER], "silent", AT)
    made = await lane_at(partition, STRAY[0], MINE[0], MINE[1])._make(partition.table)
    assert (made.cycle.delaying.waiting, made.cycle.waiting.waiting) == (1, 1)
    await attempt(lane_at(partition, STRAY[0], MINE[0], MINE[1]), partition)
    outages(partition).close([OTHER])
    partition.tenants.book = TenantBook()
    lane = lane_at(partition)
    lane.failures.work_search.failed(4, [])
    found = list[tuple[int, list[Work]]]()
    while len(found) < 2:
        made = await lane._make(partition.table)
        if Kind.DELAYED in made.kinds:
            found.append((made.cycle.waiting.sent, lane.failures.attempt.works))
            await lane._commit(made, partition.table, cast(Any, Taking(partition)))
        else:
            lane.failures.work_search.rested(is_caught_up=True)
    assert found == [(1, []), (0, [Work(Kind.COMMAND, 2)])]


class Ids:
    """Tells the id of the commands topic."""

    def __init__(self, id: str) -> None:
        self._id = id

    async def fresh(self, _: str) -> str:
        return self._id


def created_again(lane: LaneCycles, *, is_new: bool = True) -> None:
    """Have the brokers tell the id that the commands topic has when it was created again, or the one before."""
    cast(Any, lane._services).commands_ids = Ids("second" if is_new else "first")


class Checking(Taking):
    """Takes what it is sent if it passes the checks afterwards."""

    async def commit(self, batches: Any, *arguments: Any, last_checks: Any = (), **others: Any) -> Any:
        for check in last_checks:
            await check()
        return await super().commit(batches, *arguments, **others)


@pytest.mark.parametrize("is_new", [True, False])
async def test_what_has_waited_is_sent_only_after_a_look_whether_the_topic_is_still_the_same(
    partition: Partition, is_new: bool
) -> None:
    partition.read_from("first", 2)
    outages(partition).suspect([OTHER], "silent", AT)
    await attempt(lane_at(partition, STRAY[0]), partition)
    outages(partition).close([OTHER])
    lane = lane_at(partition)
    created_again(lane, is_new=is_new)
    made = await lane._make(partition.table)
    assert (made.taken.position, made.cycle.waiting.sent) == (None, 1)
    commit = lane._commit(made, partition.table, cast(Any, Checking(partition)))
    if is_new:
        with pytest.raises(InputInDoubt):
            await commit
    else:
        await commit
    assert waiting(partition) == int(is_new)


async def test_a_lane_with_something_for_a_partition_that_the_topic_does_not_have_asks_whether_it_is_the_same(
    partition: Partition,
) -> None:
    partition.partitionings = Known(Partitioning(2))
    partition.read_from("first", 2)
    outages(partition).suspect([OTHER], "silent", AT)
    await attempt(lane_at(partition, STRAY[0]), partition)
    outages(partition).close([OTHER])
    partition.topics[NAMES.commands] = partition.topics[NAMES.commands]._replace(partitions=1)
    lane = lane_at(partition)
    created_again(lane)
    with pytest.raises(InputInDoubt, match="was deleted and created again"):
        await lane._make(partition.table)
    created_again(lane, is_new=False)
    assert (await lane._make(partition.table)).is_empty


async def test_what_is_dropped_is_counted_and_told_of_when_that_is_committed(
    partition: Partition, caplog: pytest.LogCaptureFixture
) -> None:
    partition.read_from("first", 2)
    outages(partition).suspect([OTHER], "silent", AT)
    cancel = command(("schedule-command", b"cancel"), ("schedule-id", b"*"), key=MINE[0])
    await attempt(cycles_on(partition, [cancel], Clock()), partition)
    partition.read_from("second", 1)
    lane = lane_at(partition)
    created_again(lane)
    made = await lane._make(partition.table)
    assert ("cannot be sent any more" in caplog.text, lane.counters.dropped) == (False, 0)
    await lane._commit(made, partition.table, cast(Any, Taking(partition)))
    assert caplog.text.count(f"lane {NAMES.commands}-0: what waits for partition 1 cannot be sent any more") == 1
    assert (lane.counters.dropped, lane.counters.unsent) == (1, 0)


async def test_while_failing_work_is_sought_a_command_that_is_dealt_with_anew_is_work_that_may_fail(
    partition: Partition,
) -> None:
    partition.read_from("first", 2)
    outages(partition).suspect([OTHER], "silent", AT)
    await attempt(lane_at(partition, *STRAY[:2]), partition)
    partition.read_from("second", 1)
    lane = lane_at(partition)
    created_again(lane)
    lane.failures.work_search.failed(4, [])
    while Kind.DELAYED not in (made := await lane._make(partition.table)).kinds:
        lane._has_searched_on(made)
    assert (made.cycle.waiting.sent, len(lane.failures.attempt.works)) == (1, 1)
    (work,) = lane.failures.attempt.works
    assert work.kind is Kind.COMMAND
    assert isinstance(work.key, int)
    assert work.key < 0, "no record that is read has such an offset"
