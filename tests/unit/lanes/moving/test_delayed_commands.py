"""A commands topic that has grown: commands above the rate of their tenant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.moving import AFTER, BEFORE, CANCEL, GROWN, MOVES, ONCE, STAYS, grown, mark, passed, record
from support.partition import ANSWER, AT, NAMES, Partition

from light_scheduler.lanes.growing.handover import SOON_MS, HandoverPass
from light_scheduler.lanes.quotas import delayed_commands
from light_scheduler.model import Outcome
from light_scheduler.model.tenant_rules import OverRate, Tenant, TenantBook, TenantRules
from light_scheduler.tables import Overlay
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.lane_marks import FORWARDED_FROM


def delay_above(partition: Partition, rate: float) -> None:
    """Have commands of the tenant above a rate (a second, of all partitions) be delayed; nobody lends tokens."""
    partition.left_alone = frozenset(range(AFTER)) - {partition.number}
    rules = TenantRules(over_rate=OverRate.DELAY, commands_per_second=rate)
    partition.tenants.book = TenantBook([Tenant(name="default", rules=rules)])


async def test_a_delayed_command_is_passed_on_before_its_partition_says_that_it_has_handed_over_everything(
    former: Partition, home: Partition
) -> None:
    delay_above(former, BEFORE)
    await former.run(record(1, *ONCE, offset=1), record(1, *ONCE, offset=2), record(1, CANCEL, offset=3))
    grown(former)
    former.handover = HandoverPass()

    await home.run(record(5, CANCEL, *ANSWER, offset=101))
    (question,) = passed(home, 1)
    await former.run(question)
    assert passed(former, 5) == []

    await former.run(now=AT + 3_100)
    adoption, update, first, second = passed(former, 5, offset=102)
    assert mark(adoption, ADOPTED_FROM) is not None
    assert [mark(each) for each in (update, first)] == [b"1:2:%d:=12" % AT, b"1:3:%d:=12" % AT]
    await home.run(adoption, update, first, second)
    assert [(result.offset, result.outcome) for result in home.results] == [(101, Outcome.NOT_FOUND)]
    await former.run(now=AT + SOON_MS)
    assert [mark(each, EMPTIED) is not None for each in passed(former, 5)] == [True]


async def test_a_command_that_is_back_and_cannot_be_delayed_is_back_all_the_same(
    former: Partition, home: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(former)
    await home.run(*(record(5, CANCEL, *ANSWER, offset=offset) for offset in range(3)))
    await former.run(*passed(home, 1))
    back = passed(former, 5)
    delay_above(home, AFTER)
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 1)
    await home.run(*back)
    assert [(result.offset, result.outcome.value) for result in home.results] == [(1, "rejected"), (2, "rejected")]
    await home.run(now=AT + 1_000)
    assert [(result.offset, result.outcome.value) for result in home.results] == [(0, "not_found")]
    assert not Overlay(home.table).others.any_lent


async def test_a_command_that_another_partition_asks_about_waits_where_it_is_carried_out_while_none_can_be_moved(
    former: Partition, home: Partition
) -> None:
    await former.run(record(1, *ONCE, offset=1))
    grown(former)
    delay_above(former, AFTER)
    former.away = frozenset({5})
    await home.run(*(record(5, ("schedule-command", b"pause"), *ANSWER, offset=offset) for offset in range(3)))
    await former.run(*passed(home, 1))
    assert [(each.offset, each.outcome) for each in former.results] == [(0, Outcome.PAUSED)]
    assert former.dead_letters == []
    for second in (1, 2):
        await former.run(now=AT + 1_050 * second)
        assert [each.offset for each in former.results] == [second]
    former.away = frozenset()
    await former.run(now=AT + 3_000)
    told = passed(former, 5)
    assert [mark(each) for each in told] == [b"5:%d:%d:.12" % (offset, AT) for offset in range(3)]
    await home.run(*told, now=AT + 3_000)
    assert not Overlay(home.table).others.any_lent


async def test_commands_that_another_partition_asks_about_are_rejected_where_they_wait_if_too_many_do(
    former: Partition, home: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await former.run(record(1, *ONCE, offset=1))
    grown(former)
    delay_above(former, AFTER)
    former.away = frozenset({5})
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 1)
    await home.run(*(record(5, ("schedule-command", b"pause"), *ANSWER, offset=offset) for offset in range(5)))
    await former.run(*passed(home, 1))
    assert [(each.offset, each.outcome, each.field) for each in former.results] == [
        (0, Outcome.PAUSED, None),
        (3, Outcome.REJECTED, "quota.commands_per_second"),
        (4, Outcome.REJECTED, "quota.commands_per_second"),
    ]
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 100)
    for second in range(1, 4):
        await former.run(now=AT + 1_050 * second)
    former.away = frozenset()
    await former.run(now=AT + 4_000)
    told = passed(former, 5)
    assert sorted(mark(each) or b"" for each in told) == [b"5:%d:%d:.12" % (offset, AT) for offset in range(5)]
    await home.run(*told, now=AT + 4_000)
    assert not Overlay(home.table).others.any_lent


async def test_one_of_them_is_rejected_also_if_it_is_the_first_that_would_wait(
    former: Partition, home: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    await former.run(record(1, *ONCE, offset=1))
    grown(former)
    delay_above(former, AFTER)
    former.away = frozenset({5})
    monkeypatch.setattr(delayed_commands, "MOST_DELAYED", 0)
    await home.run(*(record(5, ("schedule-command", b"pause"), *ANSWER, offset=offset) for offset in range(2)))
    await former.run(*passed(home, 1))
    assert [(each.offset, each.outcome) for each in former.results] == [(0, Outcome.PAUSED), (1, Outcome.REJECTED)]


async def test_schedules_are_not_gone_through_again_while_delayed_commands_wait(former: Partition) -> None:
    delay_above(former, BEFORE / 60)
    await former.run(*(record(1, *ONCE, key=STAYS, offset=offset) for offset in range(3)))
    grown(former)
    former.handover = handover = HandoverPass()
    await former.run()
    cycle = await former.run(now=AT + SOON_MS)
    assert cycle.delaying.waiting == 2
    assert not handover.is_due(cycle.moving, AT + 10 * SOON_MS)

    await former.run(now=AT + 181_000)
    assert former.sent(NAMES.commands) == []
    await former.run(now=AT + 362_000)
    assert {mark(each, EMPTIED) for each in former.sent(NAMES.commands)} == {b"1:12"}


async def test_schedules_wait_with_a_bulk_command_that_is_delayed_and_do_not_escape_it(former: Partition) -> None:
    delay_above(former, BEFORE)
    bulk = (FORWARDED_FROM, b"0:77:%d:%s" % (AT, b"0" * 32))
    await former.run(
        *(
            record(1, *ONCE, ("schedule-tenant", tenant), offset=offset)
            for offset, tenant in enumerate((b"default", b"b"))
        ),
        *(record(1, *ONCE, key=STAYS, offset=offset) for offset in (2, 3)),
        record(1, CANCEL, ("schedule-id", b"*"), bulk, offset=4),
    )
    grown(former)
    delay_above(former, AFTER)
    former.handover = HandoverPass()
    await former.run()
    assert [mark(each, ADOPTED_FROM) is not None for each in passed(former, 5)] == [True], "that of another tenant"
    for second in range(1, 5):
        await former.run(now=AT + 1_000 * second)
        assert all(mark(each, ADOPTED_FROM) is None for each in passed(former, 5)), "only the command itself follows"
    assert former.table.pending == 0


async def test_a_tenant_that_always_sends_more_than_its_rate_does_not_keep_a_topic_unsettled(former: Partition) -> None:
    delay_above(former, BEFORE)
    await former.run(*(record(1, *ONCE, key=key, offset=offset) for offset, key in enumerate((MOVES, STAYS, STAYS))))
    grown(former)
    delay_above(former, AFTER)
    former.handover = HandoverPass()
    told = []
    for second in range(30):
        now = AT + 1_000 * second
        more = [record(1, *ONCE, key=STAYS, offset=10 + 2 * second + each, timestamp=now) for each in range(2)]
        cycle = await former.run(*more, now=now)
        assert cycle.delaying.waiting > second
        told += passed(former, 5)
    assert [(mark(each, ADOPTED_FROM) is not None, mark(each, EMPTIED) is not None) for each in told] == [
        (True, False),
        (False, True),
    ]


async def test_commands_above_a_rate_wait_in_a_partition_that_has_not_got_its_part_of_it_yet(
    former: Partition, home: Partition
) -> None:
    home.tenants.book = TenantBook([Tenant(name="default", rules=TenantRules(commands_per_second=AFTER))])
    grown(home, replace(GROWN, running=frozenset(range(BEFORE, AFTER))))
    grown(former)
    await former.run(record(1, CANCEL, *ANSWER))
    cycle = await home.run(*passed(former, 5))
    assert (home.results, cycle.delaying.waiting) == ([], 1)

    grown(home)
    await home.run(now=AT + 100)
    assert home.results == []
    await home.run(now=AT + 1_200)
    assert [result.outcome for result in home.results] == [Outcome.NOT_FOUND]

    grown(home, replace(GROWN, settled=frozenset(range(AFTER))))
    await home.run(
        *(record(5, CANCEL, *ANSWER, offset=offset, timestamp=AT + 1_300) for offset in (50, 51)), now=AT + 1_300
    )
    assert [result.outcome for result in home.results] == 2 * [Outcome.REJECTED]
