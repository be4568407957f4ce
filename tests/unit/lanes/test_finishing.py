"""The line of history that a series ends with."""

from __future__ import annotations

from support.partition import AT, HOUR, TO_REMINDERS, Partition, command

from light_scheduler.model import EventType

HOURLY = ("schedule-cron", b"0 * * * *")
UNTIL = ("schedule-end", b"%d" % (AT + HOUR))


async def told(partition: Partition, *headers: tuple[str, bytes | None]) -> list[tuple[EventType, str | None]]:
    """Return the history of a command that was recorded before a firing that was delivered before it is read."""
    await partition.run(command(HOURLY, *TO_REMINDERS))
    await partition.run(now=AT + HOUR)
    await partition.run(command(*headers, offset=43, timestamp=AT + HOUR - 1), now=AT + HOUR + 1)
    return [(event.event, event.reason) for event in partition.history]


async def test_a_series_whose_new_times_have_been_delivered_says_so_twice(partition: Partition) -> None:
    reason = "its new times have been delivered"
    lines = await told(partition, ("schedule-command", b"reschedule"), HOURLY, UNTIL)
    assert lines == [(EventType.UPDATED, f"rescheduled: {reason}"), (EventType.FINISHED, reason)]


async def test_a_series_whose_times_have_passed_when_it_is_replaced_says_so_once(partition: Partition) -> None:
    lines = await told(partition, HOURLY, UNTIL, *TO_REMINDERS)
    reason = "all its times are before the last firing of the schedule that it replaces"
    assert lines == [(EventType.UPDATED, None), (EventType.FINISHED, reason)]
