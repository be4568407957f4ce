"""Bulk commands, over the partitions of a commands topic: slices, totals, and what happens meanwhile."""

from __future__ import annotations

import pytest
from support.bulk import ALL, COUNT, Topic
from support.partition import AT, HOUR, TO_REMINDERS, due_at

from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.model import EventType, Outcome, Result
from light_scheduler.tables import MemoryStore, Overlay
from light_scheduler.wire.state import identity


@pytest.mark.parametrize("most_bulk", [1, 3, 1_000])
@pytest.mark.parametrize("sent_to", range(COUNT))
async def test_a_cancel_for_all_reaches_every_partition_and_is_answered_once_with_the_total(
    filled: Topic, sent_to: int, most_bulk: int
) -> None:
    for partition in filled.partitions:
        partition.most_bulk = most_bulk
    offset = filled.control(sent_to, "cancel", "*")
    await filled.settle()

    assert filled.pending == {}
    answer = Result("cancel", "default", "*", Outcome.CANCELLED, partition=sent_to, offset=offset, count=33)
    assert filled.results == [answer]
    (total,) = [event for event in filled.history if event.id == "*"]
    assert (total.event, total.count, total.partition) == (EventType.CANCELLED, 33, sent_to)
    assert sorted(str(event.id) for event in filled.history if event.id != "*") == ALL


@pytest.mark.parametrize(
    ("id", "labels", "count"),
    [
        ("*", "", 33),
        ("1/*", "", 11),
        ("1/order-*", "", 10),
        ("1/order-3*", "", 1),
        ("4/*", "", 0),
        ("*", "kind=order", 30),
        ("*", "kind=order,partition=p2", 10),
        ("1/*", "kind=other", 1),
        ("1/*", "partition=p2", 0),
    ],
)
async def test_prefix_and_labels_select(filled: Topic, id: str, labels: str, count: int) -> None:
    filled.control(1, "pause", id, ("schedule-labels", labels.encode()))
    await filled.settle()

    assert filled.totals == [("pause", id, Outcome.PAUSED, count)]
    assert sum(filled.pending.values()) == count


async def test_tenants_have_equal_parts_of_a_slice_and_the_commands_of_one_their_order(filled: Topic) -> None:
    acme = ("schedule-tenant", b"acme")
    partition = filled.partitions[0]
    for number in range(10):
        filled.send(
            0, due_at(AT + HOUR), *TO_REMINDERS, acme, ("schedule-id", b"0/%d" % number), ("schedule-labels", b"")
        )
    await filled.settle()
    partition.most_bulk = 4
    for name in ("pause", "resume", "pause"):
        filled.control(0, name, "0/*")
    filled.control(0, "pause", "0/*", acme)
    await filled.settle()
    done = [(event.tenant, event.event) for event in filled.history if event.id == "0/*"]
    assert done.index(("acme", EventType.PAUSED)) == 0, "it is not behind thirty schedules of another tenant"
    assert [event for tenant, event in done if tenant == "default"] == [
        EventType.PAUSED,
        EventType.RESUMED,
        EventType.PAUSED,
    ]


async def test_each_tenant_is_the_first_of_a_slice_in_turn(filled: Topic) -> None:
    acme = ("schedule-tenant", b"acme")
    filled.send(0, due_at(AT + HOUR), *TO_REMINDERS, acme, ("schedule-id", b"0/0"))
    await filled.settle()
    filled.partitions[0].most_bulk = 1
    filled.control(0, "pause", "0/*")
    filled.control(0, "pause", "0/*", acme)
    first = []
    for filled.now in range(AT, AT + 8):
        before = len(filled.history)
        await filled.cycle(0)
        first += [event.tenant for event in filled.history[before:] if event.id != "0/*"][:1]
    assert first[0] != first[1], "with a limit of one, both come alone"


async def test_another_tenant_is_not_touched(filled: Topic) -> None:
    filled.control(1, "cancel", "*", ("schedule-tenant", b"acme"))
    await filled.settle()

    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, 0)]
    assert len(filled.pending) == 33


async def test_only_what_changes_is_counted(filled: Topic) -> None:
    filled.control(0, "pause", "0/order-0")
    filled.control(2, "pause", "*")
    filled.control(0, "pause", "*")
    await filled.settle()

    (first, second) = filled.totals
    assert first[3] + second[3] == 32, "each partition takes them in the order in which they come there"
    assert all(filled.told(id) == ["paused"] for id in filled.pending)


async def test_reschedule_and_trigger_reach_all(filled: Topic) -> None:
    filled.control(0, "reschedule", "*", ("schedule-after", b"10s"))
    await filled.settle()
    assert filled.totals == [("reschedule", "*", Outcome.RESCHEDULED, 33)]

    filled.control(0, "trigger", "2/order-*")
    await filled.settle()
    for number in range(COUNT):
        await filled.cycle(number)
    assert sorted(filled.fired) == sorted(f"2/order-{each}" for each in range(10))
    filled.now += 10_000
    for number in range(COUNT):
        await filled.cycle(number)
    assert sorted(filled.fired) == ALL


# -- slices -----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def halfway(filled: Topic) -> Topic:
    """A cancel for all at work in partition 0, which has dealt with order-0 to order-3."""
    filled.partitions[0].most_bulk = 4
    filled.control(0, "cancel", "*")
    await filled.cycle(0)
    await filled.cycle(0)
    assert len(filled.partitions[0].history) == 4
    assert sorted(filled.pending)[:2] == ["0/order-4", "0/order-5"]
    return filled


async def test_a_cycle_deals_with_no_more_than_a_slice(halfway: Topic) -> None:
    await halfway.cycle(0)
    assert len(halfway.partitions[0].history) == 4
    await halfway.cycle(0)
    assert len(halfway.partitions[0].history) == 3
    assert not halfway.at_work(0)


async def test_a_slice_ends_with_the_bytes_that_it_has_looked_at(commands: Topic) -> None:
    commands.put(0, *"abcdef", value=b"x" * 400_000)
    await commands.cycle(0)
    commands.control(0, "pause", "*")
    await commands.cycle(0)

    overlay = Overlay(commands.partitions[0].table)
    cycle = Cycle(commands.partitions[0].context, overlay, RecordBatches(AT), AT)
    assert cycle.advance_bulk(1_000, 1_000_000)

    entries = [overlay.get(identity("default", id)) for id in "abcdef"]
    assert [entry is not None and entry.progress.paused for entry in entries] == [True] * 3 + [False] * 3


async def test_what_is_due_and_was_cancelled_does_not_fire_before_its_slice_has_come(halfway: Topic) -> None:
    halfway.now = AT + HOUR
    await halfway.cycle(0)

    assert halfway.fired == []
    assert sorted(id for id in halfway.pending if id.startswith("0/")) == []
    await halfway.settle()
    assert halfway.fired == []
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


async def test_a_new_schedule_is_not_touched(halfway: Topic) -> None:
    halfway.put(0, "0/order-1", "0/order-77", "0/zzz")
    await halfway.settle()

    assert sorted(halfway.pending) == ["0/order-1", "0/order-77", "0/zzz"]
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


async def test_a_schedule_that_is_replaced_was_cancelled_before(halfway: Topic) -> None:
    halfway.put(0, "0/order-8")
    halfway.put(0, "0/order-8")
    await halfway.settle()

    assert halfway.told("0/order-8") == ["cancelled", "scheduled", "updated"]
    assert sorted(halfway.pending) == ["0/order-8"]
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


async def test_a_command_for_a_schedule_that_was_cancelled_finds_nothing(halfway: Topic) -> None:
    halfway.control(0, "trigger", "0/order-8")
    await halfway.settle()

    assert ("0/order-8", Outcome.NOT_FOUND) in [(result.id, result.outcome) for result in halfway.results]
    assert halfway.told("0/order-8") == ["cancelled"]
    assert halfway.totals == [("cancel", "*", Outcome.CANCELLED, 33)]


@pytest.mark.parametrize("paused_before", [False, True])
async def test_what_was_resumed_after_all_were_paused_stays_so(filled: Topic, paused_before: bool) -> None:
    if paused_before:
        filled.control(0, "pause", "0/order-8")
        await filled.settle()
    filled.partitions[0].most_bulk = 4
    filled.control(0, "pause", "*")
    await filled.cycle(0)
    filled.control(0, "resume", "0/order-8")
    await filled.settle()

    assert [id for id, paused in filled.pending.items() if not paused] == ["0/order-8"]
    assert filled.told("0/order-8") == ["paused", "resumed"]
    assert filled.totals == [("pause", "*", Outcome.PAUSED, 32 if paused_before else 33)]


async def test_bulk_commands_take_effect_in_their_order(filled: Topic) -> None:
    filled.partitions[0].most_bulk = 1
    for name in ("pause", "resume", "pause"):
        filled.control(0, name, "0/*")
    filled.now = AT + HOUR  # all of them are due
    await filled.settle()

    assert sorted(filled.fired) == [id for id in ALL if not id.startswith("0/")]
    assert all(paused for id, paused in filled.pending.items())
    assert len(filled.pending) == 11
    assert all(filled.told(id) == ["paused", "resumed", "paused"] for id in filled.pending)
    assert [count for *_, count in filled.totals] == [11, 11, 11]


# -- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [True, False])
async def test_a_crash_between_any_two_cycles_neither_loses_nor_doubles_a_count(filled: Topic, kept: bool) -> None:
    for partition in filled.partitions:
        partition.most_bulk = 3
    filled.control(1, "pause", "*")
    while any(filled.waiting) or any(filled.at_work(number) for number in range(COUNT)):
        for number, partition in enumerate(filled.partitions):
            await filled.cycle(number, applies=False)
            partition.compact()
            partition.restart(partition.table.store if kept else MemoryStore(), now=filled.now)

    assert filled.totals == [("pause", "*", Outcome.PAUSED, 33)]
    assert all(filled.told(id) == ["paused"] for id in filled.pending)
    assert all(paused for paused in filled.pending.values())


async def test_the_json_form_selects_too(filled: Topic) -> None:
    filled.send(
        2,
        ("content-type", b"application/vnd.light-scheduler.command+json"),
        value=b'{"command": "cancel", "id": "*", "labels": {"kind": "other"}, "reply_topic": "answers"}',
    )
    await filled.settle()

    assert filled.totals == [("cancel", "*", Outcome.CANCELLED, 3)]
