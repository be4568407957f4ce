"""Bulk commands after their topic was deleted and created again, so that offsets begin anew."""

from __future__ import annotations

import pytest
from support.bulk import COUNT, KEYS, Topic
from support.partition import AT, HOUR, TO_REMINDERS, due_at

from light_scheduler.model import Outcome, Result

LATER = due_at(AT + HOUR)
PLAIN = KEYS[0].decode()
"""The id of a plain command in the first partition: its key."""


@pytest.fixture
async def again(commands: Topic) -> Topic:
    """A topic that was created again, with ten schedules of the former one in each partition."""
    commands.created_again()
    for number in range(COUNT):
        commands.put(number, *(f"{number}/former-{each}" for each in range(10)))
    await commands.settle()
    commands.created_again()
    commands.history.clear()
    return commands


@pytest.mark.parametrize("sent_to", range(COUNT))
async def test_schedules_of_the_former_topic_are_older_than_each_bulk_command(again: Topic, sent_to: int) -> None:
    offset = again.control(sent_to, "cancel", "*")
    await again.settle()
    assert again.pending == {}
    assert again.results == [
        Result("cancel", "default", "*", Outcome.CANCELLED, partition=sent_to, offset=offset, count=30)
    ]


@pytest.mark.parametrize("plain_paths", [True, False])
async def test_schedules_that_come_after_a_bulk_command_are_not_its_own(again: Topic, *, plain_paths: bool) -> None:
    partition = again.partitions[0]
    partition.plain_paths, partition.most_bulk = plain_paths, 1
    again.control(0, "cancel", "0/*")
    await again.cycle(0)
    again.put(0, "0/later")
    again.send(0, LATER, *TO_REMINDERS, value=b"plain")
    await again.settle()
    assert [id for id in again.pending if "/former" not in id] == ["0/later", PLAIN]
    assert not any(id.startswith("0/former") for id in again.pending)
    assert again.totals == [("cancel", "0/*", Outcome.CANCELLED, 10)]


async def test_bulk_commands_of_both_topics_at_one_offset_are_carried_out_each(commands: Topic) -> None:
    commands.created_again()
    for number in range(COUNT):
        commands.put(number, *(f"{number}/{each}" for each in range(10)))
    await commands.settle()
    for partition in commands.partitions:
        partition.most_bulk = 1
    former = commands.control(0, "pause", "*")
    for number in range(COUNT):
        await commands.cycle(number)
    waiting = commands.waiting  # reports of the former topic reach the new one if they have waited for a partition
    commands.created_again()
    commands.ends[0] = former
    assert commands.control(0, "cancel", "0/*") == former
    for number in range(COUNT):
        commands.waiting[number] += waiting[number]
    await commands.settle()
    assert sorted(commands.totals) == [("cancel", "0/*", Outcome.CANCELLED, 10), ("pause", "*", Outcome.PAUSED, 30)]


@pytest.mark.parametrize("plain_paths", [True, False])
async def test_a_command_says_at_which_offset_of_its_topic_it_is(again: Topic, *, plain_paths: bool) -> None:
    partition = again.partitions[0]
    partition.plain_paths = plain_paths
    again.ends = [7] * COUNT
    again.send(0, LATER, *TO_REMINDERS, value=b"plain")
    again.control(0, "pause", PLAIN)
    again.control(0, "pause", "nobody")
    again.send(0, ("schedule-command", b"nonsense"))
    await again.cycle(0)
    stored = partition.table.get("default", PLAIN)
    assert stored is not None
    assert (stored.schedule.source_partition, stored.schedule.source_offset) == (0, 7)
    assert [(result.offset, result.outcome.value) for result in again.results] == [(8, "paused"), (9, "not_found")]
    assert [offset for _, _, offset in again.rejected] == [10]


async def test_a_copy_that_is_refused_names_the_offset_of_its_command(again: Topic) -> None:
    again.ends = [7] * COUNT
    offset = again.control(0, "pause", "*")
    await again.cycle(0)
    (copy,) = again.waiting[1]
    again.waiting[1].clear()
    again.send(1, *copy.headers, ("schedule-of-tomorrow", b"1"))
    await again.settle()
    assert again.rejected == [("schedule-of-tomorrow", 0, offset)]
    assert again.totals == [("pause", "*", Outcome.PAUSED, 20)]
