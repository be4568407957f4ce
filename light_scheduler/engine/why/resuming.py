"""Explains what a paused schedule would do if it were resumed now, according to the engine."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.durations import distance
from light_scheduler.engine.firing import Turn, take_turn
from light_scheduler.engine.firing_rules import FiringRules
from light_scheduler.engine.progress import release_of, standing
from light_scheduler.engine.refused_firings import with_paused
from light_scheduler.model import Entry, EventType
from light_scheduler.wire import format_instant

from .waiting import time_to_live

MOST_TURNS = 50
"""Maximum number of firings that are too late for delivery to check, each in its own turn: up to 0.4 ms for each."""


class Resumed(NamedTuple):
    """The effect of resuming as the end of a sentence, and whether a firing is delivered now."""

    told: str
    is_now: bool = False


def unpaused(entry: Entry, now: int) -> Entry | None:
    """Return a paused schedule as it stands once it is resumed at an instant; None: nothing is left of it."""
    return standing(entry.schedule, with_paused(entry.schedule, entry.progress, now, paused=False))


def if_resumed(entry: Entry, now: int, rules: FiringRules) -> Resumed:
    """Say what a paused schedule does if it is resumed at an instant (UTC epoch ms)."""
    left, turn = unpaused(entry, now), None
    for _ in range(MOST_TURNS):
        if left is None or left.progress.wakes_at > now:
            break
        turn = take_turn(left, now, rules)
        if turn.delivers:
            return Resumed("it fires at once", is_now=True)
        left = turn.entry
    else:
        return Resumed("it first gives up the firings that are too late to be delivered")
    if left is not None:
        return Resumed(_next(left, now))
    return Resumed("it ends" if turn is None else _ends(turn, now))


def _next(entry: Entry, now: int) -> str:
    due, retry_at = entry.progress.next_due, entry.progress.retry_at
    if retry_at is not None and retry_at > now:
        return f"what its target refused is tried again at {format_instant(retry_at)}"
    if due is None and entry.progress.queued is None:
        return "it fires again only if what was delivered is not completed in time"
    if due is None:
        return "its firing waits for the completion of the one before"
    if due > now:
        return f"it fires next at {format_instant(due)} (in {distance(due - now)})"
    return f"it fires within its window, at {format_instant(release_of(entry.schedule, entry.progress))}"


def _ends(turn: Turn, now: int) -> str:
    """Explain how a schedule ends with a turn that delivers nothing."""
    schedule, due = turn.subject.schedule, turn.subject.progress.due
    whose = "it" if turn.finished is None else "its last firing"
    ends = "" if turn.finished is None else f", and it ends: {turn.finished}"
    if turn.event is EventType.EXPIRED:
        return f"{whose} expires ({time_to_live(schedule, due, now)}){ends}"
    if turn.event is not None:
        return f"{whose} becomes a dead letter ({turn.reason}){ends}"
    return f"it ends: {turn.finished}"
