"""Pending schedules of a cluster in memory, and how a test puts them into its tables."""

from __future__ import annotations

from typing import Any

from light_scheduler.engine.progress import standing
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import Overlay, ScheduleTable
from light_scheduler.wire.state import encode_entry, identity_of

NOW = 1_800_000_000_000
TOPIC = "light-scheduler-commands"


def make_entry(
    id: str,
    *,
    due: int = NOW,
    partition: int = 0,
    offset: int = 0,
    progress: dict[str, Any] | None = None,
    **fields: Any,
) -> Entry:
    """Return a pending schedule; `fields` are those of its definition, `target` may be a topic's name."""
    target = fields.pop("target", "out")
    trigger = fields.pop("trigger", Once(due))
    definition: dict[str, Any] = {
        "tenant": "default",
        "version": 1,
        "payload": b"hello",
        "headers": [],
        "accepted_at": NOW,
        **fields,
    }
    schedule = Schedule(
        id=id,
        trigger=trigger,
        target=Target(target) if isinstance(target, str) else target,
        source_partition=partition,
        source_offset=offset,
        **definition,
    )
    begun = standing(schedule, Progress(due=due, arrival=offset, **(progress or {})))
    assert begun is not None
    return begun


def put(table: ScheduleTable, entry: Entry) -> None:
    """Store a schedule."""
    overlay = Overlay(table)
    overlay.put(identity_of(entry), entry, encode_entry(entry))
    overlay.apply(changelog_offset=table.checkpoint.changelog_offset + 1, complete_at=NOW)


def forget(table: ScheduleTable, entry: Entry) -> None:
    """Remove a schedule."""
    overlay = Overlay(table)
    overlay.remove(identity_of(entry))
    overlay.apply(changelog_offset=table.checkpoint.changelog_offset + 1, complete_at=NOW)
