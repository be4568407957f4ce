"""The lines of history of a series that is sent again, or rescheduled, after times that no worker delivered."""

from __future__ import annotations

import pytest
from support.partition import AT, HOUR, TO_REMINDERS, Partition, command

from light_scheduler.model import EventType

HOURLY = ("schedule-cron", b"0 * * * *")
ELSEWHERE = ("schedule-target-topic", b"elsewhere")


@pytest.mark.parametrize(
    ("headers", "done", "topic"),
    [
        ((HOURLY, ELSEWHERE), "replaced", "elsewhere"),
        ((HOURLY, ("schedule-command", b"reschedule")), "rescheduled", "reminders"),
    ],
)
async def test_what_is_skipped_is_told_of_the_old_definition_before_the_new_one(
    partition: Partition, headers: tuple[tuple[str, bytes]], done: str, topic: str
) -> None:
    await partition.run(command(HOURLY, *TO_REMINDERS))
    again = command(*headers, offset=43, timestamp=AT + 3 * HOUR)
    await partition.run(again, now=AT + 3 * HOUR + 30_000)
    skipped, updated = partition.history[-2:]
    first = AT - AT % HOUR + HOUR
    count = (AT + 3 * HOUR) // HOUR - AT // HOUR
    assert (skipped.event, skipped.due, skipped.version, skipped.count) == (EventType.SKIPPED, first, 1, count)
    assert skipped.target_topic == "reminders"
    assert (skipped.reason or "").endswith(f"{done} the schedule")
    assert (updated.event, updated.version, updated.target_topic) == (EventType.UPDATED, 2, topic)
    assert not partition.sent("reminders")
