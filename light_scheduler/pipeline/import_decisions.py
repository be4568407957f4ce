"""The decisions of `import`: how a schedule of one application is imported into another."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from light_scheduler.engine.another_log import in_another_log
from light_scheduler.engine.limits import Limits
from light_scheduler.errors import InvalidCommand, JobError
from light_scheduler.model import Entry, Once, ScheduleCommand
from light_scheduler.wire import partition_for

replace = msgspec.structs.replace


class Destination(NamedTuple):
    """The target changelog for schedules of a commands topic, and its number of partitions."""

    changelog: str
    partitions: int


def place_in(destination: Destination, entry: Entry, partition: int, of: int) -> int:
    """Return the partition for a schedule that was in `partition` of `of` partitions.

    If the numbers of partitions differ, the key decides, as when partitions are added. Raises InvalidCommand if the key
    is unknown.
    """
    if destination.partitions == of:
        return partition
    key = entry.schedule.key
    if key is None:
        raise InvalidCommand(
            "partition",
            f"an earlier version stored the schedule without its key, so its partition of {destination.partitions} is "
            f"not known: import into topics with {of}",
        )
    return partition_for(key, destination.partitions)


def adopted(entry: Entry, topics: Mapping[str, str]) -> Entry:
    """Return a schedule for the importing application. `topics` renames targets."""
    schedule = entry.schedule
    if schedule.target.topic in topics:
        schedule = replace(schedule, target=replace(schedule.target, topic=topics[schedule.target.topic]))
    return in_another_log(Entry(schedule, entry.progress))


def adopting_topics(
    sources: Collection[str], commands_topics: Sequence[str], topics: Mapping[str, str]
) -> dict[str, str]:
    """Return the commands topic of the application for each one in the table. Raises JobError if the application does
    not have it.

    `topics` gives new names. None is needed if there is one topic on either side.
    """
    adopting: dict[str, str] = {}
    for source in sources:
        target = topics.get(source, source)
        if source not in topics and len(sources) == len(commands_topics) == 1:
            (target,) = commands_topics
        if target not in commands_topics:
            known = ", ".join(commands_topics)
            raise JobError(f"the table has schedules of the commands topic {source}: map it to {known}")
        adopting[source] = target
    return adopting


def refusal_of(entry: Entry, limits: Limits) -> str | None:
    """Return why a command for this schedule would be refused; None if it is within the limits."""
    schedule = entry.schedule
    asked = ScheduleCommand(
        schedule.tenant, schedule.id, None, Once(0), schedule.target, schedule.payload, [], 0, 0, recorded_at=0
    )
    try:
        limits.check_id(asked.id)
        limits.check(asked)
    except InvalidCommand as error:
        return str(error)
    return None
