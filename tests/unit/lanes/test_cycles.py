"""What a cycle of a lane holds, above all after failures."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import msgspec
import pytest
from support.lane_cycles import KEYS, OTHER, PAUSE, Clock, TakesAll, crowded_on, cycles_on, due, half, schedule
from support.outages import Topics
from support.partition import ANSWER, AT, CHANGELOG, HOUR, NAMES, SECRET, TO_REMINDERS, Partition, command, due_at
from support.producing import FakeProducer

from light_scheduler.errors import BrokerError, CycleTimeout
from light_scheduler.kafka.batches import Written
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.lanes.cycles import CHECKPOINT_MS, LaneCycles
from light_scheduler.lanes.failures.attempt import Attempt
from light_scheduler.lanes.failures.failing_work_search import STRIKES, Kind, Work
from light_scheduler.lanes.failures.unresponsive_partitions import FIRST_PAUSE_MS
from light_scheduler.lanes.growing.handover import Slice
from light_scheduler.model.room_lending import RoomAsk, RoomGrant
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire.room_lending import room_headers, room_in
from light_scheduler.wire.state import POSITION_KEY


@pytest.fixture
async def partition() -> Partition:
    return half()


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
    rates, firing_rates = cycles._context.memory.command_rates, cycles._context.firing_rates
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
