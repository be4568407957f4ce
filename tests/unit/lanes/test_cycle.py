from __future__ import annotations

import gc
import weakref

import pytest
from support.partition import (
    ANSWER,
    AT,
    CHANGELOG,
    HOUR,
    NAMES,
    PARTITION,
    TO_REMINDERS,
    Partition,
    command,
    due_at,
)
from support.producing import FakeProducer
from support.tables import by_due

from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.model import (
    EventType,
    HistoryEvent,
    Outcome,
)
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire.state import (
    POSITION_KEY,
    SCHEDULE_KIND,
    decode_entry,
    decode_position,
    encode_entry,
    identity,
)


async def test_an_accepted_schedule_is_stored_kept_in_the_changelog_and_told_in_history(partition: Partition) -> None:
    cycle = await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, ("trace", b"\xff")), now=AT + 7)
    stored = partition.table.get("default", "a")
    assert stored is not None
    assert (stored.progress.due, stored.schedule.payload, stored.schedule.headers) == (
        AT + HOUR,
        b"payload",
        [("trace", b"\xff")],
    )
    (kept,) = partition.sent(CHANGELOG)
    assert (kept.partition, kept.key, kept.timestamp) == (PARTITION, SCHEDULE_KIND + identity("default", "a"), AT + 7)
    assert decode_entry(kept.value) == stored
    (told,) = partition.sent(NAMES.history)
    assert (told.partition, told.key) == (PARTITION, b"default/a")
    assert partition.history == [
        HistoryEvent(EventType.SCHEDULED, "default", "a", 1, AT + HOUR, AT + 7, 1, 1, "reminders", None, PARTITION)
    ]
    assert len(partition.producer.records) == 2
    assert cycle.outcomes == {Outcome.SCHEDULED: 1}
    assert cycle.events == {EventType.SCHEDULED: 1}
    assert partition.table.pending == 1


async def test_a_cancel_removes_the_schedule_and_leaves_a_tombstone(partition: Partition) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS))
    await partition.run(command(value=None, offset=43))
    assert partition.table.get("default", "a") is None
    (kept,) = partition.sent(CHANGELOG)
    assert (kept.key, kept.value) == (SCHEDULE_KIND + identity("default", "a"), None)
    assert [(event.event, event.version, event.due) for event in partition.history] == [
        (EventType.CANCELLED, 1, AT + HOUR)
    ]


async def test_what_changes_nothing_leaves_no_record_but_its_answer(partition: Partition) -> None:
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS))
    cycle = await partition.run(
        command(due_at(AT), *TO_REMINDERS, ("schedule-on-conflict", b"keep")),
        command(due_at(AT), *TO_REMINDERS, ("schedule-on-conflict", b"fail")),
        command(value=None, key=b"ghost"),
    )
    assert partition.producer.records == []
    assert cycle.outcomes == {Outcome.KEPT: 1, Outcome.CONFLICT: 1, Outcome.NOT_FOUND: 1}
    assert not cycle.events


async def test_schedule_and_cancel_back_to_back_deliver_nothing(partition: Partition) -> None:
    await partition.run(command(due_at(AT), *TO_REMINDERS), command(value=None, offset=43))
    assert partition.sent("reminders") == []
    assert [record.value for record in partition.sent(CHANGELOG)][-1] is None
    assert [event.event for event in partition.history] == [EventType.SCHEDULED, EventType.CANCELLED]


@pytest.mark.parametrize(("first", "second"), [(AT, AT + HOUR), (AT + HOUR, AT)])
@pytest.mark.parametrize("cycles", [1, 2])
async def test_an_update_delivers_at_the_new_time_only(
    partition: Partition, first: int, second: int, cycles: int
) -> None:
    commands = [
        command(due_at(first), *TO_REMINDERS, value=b"old"),
        command(due_at(second), *TO_REMINDERS, value=b"new", offset=43),
    ]
    if cycles == 2:
        await partition.run(commands.pop(0), now=AT - 1)
    await partition.run(*commands, now=AT)
    delivered = [record.value for record in partition.sent("reminders")]
    await partition.run(now=AT + HOUR)
    delivered += [record.value for record in partition.sent("reminders")]
    assert delivered == [b"new"]


async def test_the_next_command_to_read_is_kept_in_the_changelog(partition: Partition) -> None:
    overlay, batches = Overlay(partition.table), RecordBatches(AT)
    Cycle(partition.context, overlay, batches, AT).moved_to(4711)
    await batches.send(partition.producer)
    (kept,) = partition.sent(CHANGELOG)
    assert (kept.partition, kept.key, decode_position(kept.value)) == (PARTITION, POSITION_KEY, 4711)
    assert overlay.position == 4711


async def test_a_topic_of_ours_with_fewer_partitions_has_all_of_a_lane_in_one(producer: FakeProducer) -> None:
    partition = Partition(producer, number=5, of=6)
    wrong = command(key=b"order", offset=43, partition=5)
    await partition.run(command(due_at(AT + HOUR), *TO_REMINDERS, key=b"ghost", partition=5), wrong)
    partitions = {record.topic: record.partition for record in producer.records}
    assert partitions == {CHANGELOG: 5, NAMES.history: 5 % 3, NAMES.dead_letters: 5 % 2}
    assert {event.partition for event in partition.history} == {5}


async def test_what_a_cycle_stores_is_what_the_changelog_has(partition: Partition) -> None:
    """Rebuilding from the changelog gives the table that the cycles made."""
    log: list[tuple[bytes, bytes | None]] = []
    for now in (AT, AT + 1, AT + HOUR):
        await partition.run(
            *[
                command(due_at(AT + place), *TO_REMINDERS, key=b"%d" % place, offset=now - AT + place)
                for place in (0, 1, 2, 10 * HOUR)
            ],
            command(value=None, key=b"2"),
            now=now,
        )
        log += [(record.key, record.value) for record in partition.sent(CHANGELOG)]
    rebuilt = ScheduleTable(MemoryStore())
    overlay = Overlay(rebuilt)
    for key, value in log:
        overlay.replay(key, value)
    overlay.apply(changelog_offset=len(log), complete_at=AT)
    found = [encode_entry(each) for _, each in by_due(rebuilt, "default")]
    assert found == [encode_entry(each) for _, each in by_due(partition.table, "default")]
    assert len(found) == partition.table.pending == rebuilt.pending == 1


async def test_a_cycle_is_let_go_of_without_the_garbage_collector(producer: FakeProducer) -> None:
    partition = Partition(producer)
    gc.disable()
    try:
        kept = weakref.ref(await partition.run(command(due_at(AT), *TO_REMINDERS)))
        assert kept() is None
    finally:
        gc.enable()


async def test_the_end_of_a_series_whose_times_passed_before_it_was_read_says_why(partition: Partition) -> None:
    """It replaces one whose firing was delivered between the writing of the command and its reading."""
    hourly = ("schedule-cron", b"0 * * * *"), *TO_REMINDERS
    await partition.run(command(*hourly, timestamp=AT), now=AT)
    await partition.run(now=AT + HOUR)
    again = command(*hourly, ("schedule-end", b"%d" % (AT + HOUR)), *ANSWER, offset=1, timestamp=AT + HOUR - 1)
    await partition.run(again, now=AT + HOUR + 1)
    why = "all its times are before the last firing of the schedule that it replaces"
    assert [(event.event, event.reason) for event in partition.history] == [
        (EventType.UPDATED, None),
        (EventType.FINISHED, why),
    ]
    assert [(result.outcome, result.next_due, result.reason) for result in partition.results] == [
        (Outcome.UPDATED, None, why)
    ]
