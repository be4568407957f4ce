"""Schedules and events to explain, and what is known of them."""

from __future__ import annotations

from typing import Any

from light_scheduler.engine.progress import standing as standing_entry
from light_scheduler.engine.why import Facts, Standing
from light_scheduler.model import Entry, EventType, HistoryEvent, Once, Progress, Schedule, Target

DUE = 1_767_225_600_000
"""2026-01-01T00:00Z."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
MIDNIGHT, ONE = "2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"
UNKNOWN = (
    "the history does not say why (workers that were down or restarting, an unavailable target topic, a rate cap and a "
    "backlog leave no event)"
)


def event(kind: str, at: int, **fields: Any) -> HistoryEvent:
    told: dict[str, Any] = {
        "version": 1, "due": DUE, "sequence": 1, "attempt": 1, "target_topic": "out", "reason": None, "partition": 3,
    } | fields  # fmt: skip
    return HistoryEvent(EventType(kind), "acme", "a", at=at, **told)


def pending(progress: dict[str, Any] | None = None, **definition: Any) -> Entry:
    """Return a pending schedule that is due at `DUE`."""
    told: dict[str, Any] = {"trigger": Once(DUE), "target": Target("out"), "version": 1} | definition
    schedule = Schedule(
        "acme", "a", payload=None, headers=[], source_partition=3, source_offset=7, accepted_at=DUE - HOUR, **told
    )
    entry = standing_entry(schedule, Progress(**{"due": DUE, "arrival": 7, **(progress or {})}))
    assert entry is not None
    return entry


def facts(now: int, entry: Entry | None = None, **known: Any) -> Facts:
    place = {name: known.pop(name, None) for name in ("outage", "clock_skew")}
    standing = None if entry is None else Standing(entry=entry, topic="commands", partition=3, **place)
    return Facts(now=now, searched_from=DUE - 24 * HOUR, standing=standing, **known)


ACCEPTED = event("scheduled", DUE - HOUR)
