"""A commands topic that has grown: how partitions hand over what belongs to others."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import msgspec
import pytest
from aiokafka.structs import ConsumerRecord
from support import partition as supported
from support.moving import AFTER, BEFORE, CANCEL, MOVES, ONCE, SECRET, STAYS, grown, mark, passed, record
from support.partition import AT, NAMES, Partition

from light_scheduler.errors import LaneError
from light_scheduler.lanes.context.tenancy import FixedTenancy
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.growing.handover import AGAIN_MS, HandoverPass
from light_scheduler.model import EventType, HomeKey
from light_scheduler.model.partitioning import Partitioning
from light_scheduler.model.tenant_rules import TENANT_DELETED, Tenant, TenantBook, TenantState
from light_scheduler.tables import Overlay
from light_scheduler.wire import partition_for
from light_scheduler.wire.handover import ADOPTED_FROM, EMPTIED
from light_scheduler.wire.state import encode_entry, identity


async def handed_over(home: Partition, number: int) -> ConsumerRecord:
    """Return what a partition without schedules says."""
    partition = Partition(type(home.producer)(), number=number, of=AFTER)
    grown(partition)
    partition.handover = HandoverPass()
    await partition.run()
    (emptied,) = passed(partition, 5, offset=80 + number)
    assert mark(emptied, EMPTIED) is not None
    return emptied


async def test_slice_by_slice_all_that_belongs_elsewhere_is_handed_over_and_that_is_said(
    former: Partition,
) -> None:
    keys = [f"s{n}".encode() for n in range(200) if partition_for(f"s{n}".encode(), BEFORE) == 1]
    await former.run(*(record(1, *ONCE, key=key, offset=n) for n, key in enumerate(keys)))
    grown(former)
    former.handover = HandoverPass()
    moved: dict[bytes, int] = {}
    told: list[tuple[str, str]] = []
    said = 0
    while not said:
        await former.run(limit=7)
        told += [(event.id or "", f"{event.event} {event.reason}") for event in former.history]
        for each in former.sent(NAMES.commands):
            if mark(each, EMPTIED):
                said += 1
            else:
                moved[each.key] = each.partition

    assert said == AFTER - 1
    assert moved == {key: home for key in keys if (home := partition_for(key, AFTER)) != 1}
    assert sorted(told) == sorted(
        (key.decode(), f"moved handed over to partition {home}") for key, home in moved.items()
    )
    assert former.table.pending == len(keys) - len(moved)
    await former.run()
    assert former.sent(NAMES.commands) == []


async def test_nothing_is_handed_over_before_every_partition_runs(former: Partition) -> None:
    await former.run(record(1, *ONCE))
    grown(former, Partitioning(AFTER, BEFORE, running=frozenset(range(AFTER - 1)), secret=SECRET))
    former.handover = HandoverPass()
    await former.run()
    assert former.sent(NAMES.commands) == []


async def test_a_schedule_of_an_unknown_key_moves_when_a_command_tells_its_key(former: Partition) -> None:
    await former.run(record(1, *ONCE, ("schedule-id", b"a")))
    stored = former.table.get("default", "a")
    assert stored is not None
    assert stored.schedule.home_key == HomeKey.TARGET_KEY
    await former.run()
    entry = msgspec.structs.replace(stored, schedule=msgspec.structs.replace(stored.schedule, home_key=HomeKey.UNKNOWN))
    old = Partition(former.producer, number=1, of=AFTER)
    forget_key(old, entry)
    grown(old)
    old.handover = HandoverPass()

    await old.run()
    assert old.sent(NAMES.commands) == []
    await old.run(record(1, CANCEL, ("schedule-id", b"a"), offset=50), now=AT + AGAIN_MS)

    adoption, command, *_ = passed(old, 5)
    assert (mark(adoption, ADOPTED_FROM) is not None, mark(command)) == (True, b"1:50:%d:=12" % AT)


def forget_key(partition: Partition, entry: Any) -> None:
    overlay = Overlay(partition.table)
    overlay.put(identity(entry.schedule.tenant, entry.schedule.id), entry, encode_entry(entry))
    overlay.apply(changelog_offset=0, complete_at=AT)


@pytest.mark.parametrize("damage", ["signature", "value", "repeated"])
async def test_what_no_worker_has_handed_over_is_a_dead_letter(former: Partition, home: Partition, damage: str) -> None:
    await former.run(record(1, *ONCE))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    (adoption, _) = passed(former, 5)
    if damage == "repeated":
        await home.run(adoption)
    else:
        said = dict(adoption.headers)[ADOPTED_FROM].replace(b"1:", b"2:", 1) if damage == "signature" else None
        headers = [(ADOPTED_FROM, said)] if said else adoption.headers
        value = adoption.value if said else b"\x03" + b"?" * 40
        adoption = supported.command(*headers, key=MOVES, value=value, partition=5, offset=100)

    await home.run(adoption)

    assert [letter.field for letter in home.dead_letters] == [ADOPTED_FROM]


async def test_what_was_handed_over_late_is_adopted_where_it_goes_on_from_since_the_topic_has_grown_again(
    former: Partition, home: Partition
) -> None:
    """The partition that it was handed over to reads it when the key does not belong there any more."""
    again = Partitioning(2 * AFTER, AFTER, running=frozenset(range(2 * AFTER)), secret=SECRET)
    key = next(
        f"k{n}".encode()
        for n in count()
        if partition_for(f"k{n}".encode(), AFTER) == 5 != partition_for(f"k{n}".encode(), 2 * AFTER)
    )
    await former.run(record(1, *ONCE, key=key))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    adoption, _ = passed(former, 5)
    home.topics[NAMES.commands] = supported.topic(2 * AFTER)
    grown(home, replace(again, settled=frozenset({5})))
    with pytest.raises(LaneError, match="does not know yet"):
        await home.run(adoption)
    grown(home, again)
    await home.run(adoption)
    assert home.table.pending == 1
    home.handover = HandoverPass()
    await home.run()
    (adoption, _) = passed(home, partition_for(key, 2 * AFTER))
    assert mark(adoption, ADOPTED_FROM) == b"5"


async def test_a_schedule_whose_tenant_was_deleted_is_removed_where_it_is_moved_to(
    former: Partition, home: Partition
) -> None:
    await former.run(record(1, *ONCE, ("schedule-tenant", b"acme")))
    grown(former)
    former.handover = HandoverPass()
    await former.run()
    (adoption, _) = passed(former, 5)
    home.tenants = FixedTenancy(TenantBook([Tenant(name="acme", state=TenantState.DELETED)]))
    await home.run()

    cycle = await home.run(adoption)

    assert [(event.event, event.id, event.reason) for event in home.history] == [
        (EventType.CANCELLED, MOVES.decode(), TENANT_DELETED)
    ]
    assert (cycle.moves, home.table.pending) == ((0, 0, 1), 0)


async def test_schedules_that_stay_bound_how_many_a_cycle_looks_at_by_their_payloads(former: Partition) -> None:
    await former.run(
        *(record(1, *ONCE, ("schedule-id", b"%d" % n), key=STAYS, value=bytes(500_000)) for n in range(20))
    )
    grown(former)
    cycle = Cycle(former.context, Overlay(former.table), former.context.new_batches(AT), AT)
    handover = HandoverPass()
    assert handover.is_due(cycle.moving, AT)
    slice = handover.advance(cycle.moving, Overlay(former.table), 5_000)
    assert not slice.is_last
