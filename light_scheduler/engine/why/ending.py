"""Explains how a schedule that is not pending ended, from its history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from light_scheduler.model import EventType, HistoryEvent
from light_scheduler.wire import format_instant

from .sentences import by

State = Literal[
    "pending", "paused", "awaiting",
    "delivered", "completed", "finished", "cancelled", "skipped", "expired", "missed", "dead_lettered", "rejected",
    "moving", "gone", "unreachable", "unknown",
]  # fmt: skip
"""The first three are pending. `moving`: on its way to another partition. `gone`: not pending, and the history does not
show why. `unreachable`: its partition does not answer. `unknown`: nothing is known about it.
"""


class Outlook(NamedTuple):
    """The state of a schedule, its next due time (UTC epoch ms), and a summary in words."""

    state: State
    next_due: int | None
    summary: str


_STATES: dict[EventType, State] = {
    EventType.FIRED: "delivered",
    EventType.COMPLETED: "completed",
    EventType.FINISHED: "finished",
    EventType.CANCELLED: "cancelled",
    EventType.SKIPPED: "skipped",
    EventType.EXPIRED: "expired",
    EventType.MISSED: "missed",
    EventType.DEAD_LETTERED: "dead_lettered",
    EventType.REJECTED: "rejected",
    EventType.MOVED: "moving",
}


def is_final(events: Sequence[HistoryEvent]) -> bool:
    """Return whether a history ends with an event after which a schedule of any kind is no longer pending."""
    life = _life(events)
    return bool(life) and life[-1].event in (EventType.CANCELLED, EventType.FINISHED)


def ending(events: Sequence[HistoryEvent]) -> Outlook:
    """Explain how a schedule ended. `events` is its history in order, with at least one event."""
    life = _life(events)
    last = life[-1] if life else events[-1]
    state = _STATES.get(last.event, "gone") if life or last.event is EventType.REJECTED else "gone"
    return Outlook(state, None, _summary(state, last))


def _life(events: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    """Return the events of a schedule, without events of commands that did not change it."""
    return [each for each in events if each.event is not EventType.REJECTED and each.version is not None]


def _summary(state: State, last: HistoryEvent) -> str:
    at = format_instant(last.at)
    was_due = "" if last.due is None else f" It was due at {format_instant(last.due)}."
    match state:
        case "delivered":
            return f"It was delivered at {at}, and does not fire again."
        case "completed":
            return f"It was delivered, and reported at {at}. It does not fire again."
        case "finished":
            why = f" ({last.reason})" if last.reason else ""
            return f"The series was finished at {at}{why}: it does not fire again."
        case "cancelled":
            why = f" ({last.reason})" if last.reason else ""
            return f"It was cancelled at {at}{by(last)}{why}, and does not fire.{was_due}"
        case "skipped":
            return f"Its last firing was skipped at {at}: {last.reason}. It does not fire again."
        case "expired":
            return f"It expired at {at}: {last.reason}. It does not fire.{was_due}"
        case "missed" | "dead_lettered":
            return f"It became a dead letter at {at}: {last.reason}. It does not fire again.{was_due}"
        case "rejected":
            return f"It is not pending: its command was rejected at {at}: {last.reason}."
        case "moving":
            return f"It has been moving to another partition since {at}: {last.reason}.{was_due}"
    return f"It is not pending, and the history does not say what happened to it after {at} ({last.event.value})."
