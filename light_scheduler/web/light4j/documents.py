"""Task definitions as light-4j shows them: with its names, and without members that are null."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.model import Entry, FixedRate
from light_scheduler.wire.dialects.light4j_bytes import UNITS

TimeUnit = Literal["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]

ReadTask = Callable[[bytes | None], Mapping[str, Any]]
"""Decodes the task in the value of a record; empty if there is none."""


class TaskFrequency(msgspec.Struct, frozen=True, rename="camel"):
    """How often a task repeats."""

    time_unit: TimeUnit
    time: Annotated[int, Meta(description="Number of units.", extra_json_schema={"minimum": 1})]


class TaskDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A task that repeats."""

    host: Annotated[str, Meta(description="The tenant.")]
    name: Annotated[str, Meta(description="The id of the schedule.")]
    action: Literal["INSERT", "UPDATE"]
    frequency: TaskFrequency
    topic: Annotated[str, Meta(description="Where its messages go.")]
    start: Annotated[int, Meta(description="Intervals count from the start of its unit; UTC epoch ms.")]
    data: Annotated[dict[str, str], Meta(description="The sender's own.")] | UnsetType = UNSET


def definition(entry: Entry, read: ReadTask) -> TaskDefinition | None:
    """Show a schedule as a task; None if it repeats in a way that a task cannot express.

    Values of the record are shown only where they still hold: HTTP may have changed when the task fires.
    """
    schedule, trigger = entry.schedule, entry.schedule.trigger
    if not isinstance(trigger, FixedRate) or trigger.anchor is None:
        return None
    task = read(schedule.payload)
    if (task.get("host"), task.get("name")) != (schedule.tenant, schedule.id):
        task = {}
    frequency, start, data = _frequency(task.get("frequency"), trigger.interval), task.get("start"), task.get("data")
    if not isinstance(start, int) or start - start % UNITS[frequency.time_unit] != trigger.anchor:
        start = trigger.anchor
    return TaskDefinition(
        host=schedule.tenant,
        name=schedule.id,
        action="UPDATE" if task.get("action") == "UPDATE" else "INSERT",
        frequency=frequency,
        topic=schedule.target.topic,
        start=start,
        data=data if isinstance(data, dict) else UNSET,
    )


def _frequency(given: Any, interval: int) -> TaskFrequency:
    """Return the frequency of a task if it equals this interval (ms), otherwise the interval in the largest unit."""
    if isinstance(given, dict):
        unit, time = given.get("timeUnit"), given.get("time")
        if unit in UNITS and isinstance(time, int) and UNITS[unit] * time == interval:
            return TaskFrequency(unit, time)
    unit = next(name for name in reversed(UNITS) if interval % UNITS[name] == 0)
    return TaskFrequency(unit, interval // UNITS[unit])  # type: ignore[arg-type]  # a name of UNITS
