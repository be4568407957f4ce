"""Finds the fault behind a history event that no order of commands explains, and how to go on after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from light_scheduler.engine import take_turn
from light_scheduler.model import Entry, EventType, HistoryEvent, Once

from .faults import Fault, FaultKind, RecordId
from .orders import ASKED, Orders, State, Way, lines_of
from .promises import Ending, HistoryRecord

MOST_PASSED = 1_000
"""Firings in a row that are told to be missing one by one."""


class Diagnosis(NamedTuple):
    """The faults found, and how to go on.

    With a `way` the faults explain the history event. Otherwise, the replay goes on in `state`, or in its state before,
    or `is_lost`: the state of the schedule is not known any more. `subject` is the schedule as a firing saw it, if it
    is known.
    """

    faults: Sequence[Fault]
    way: Way | None = None
    state: State | None = None
    subject: Entry | None = None
    is_lost: bool = False


class Diagnoses:
    """Finds the fault that explains most: a history event is compared with one of the states possible before it."""

    def __init__(self, orders: Orders, commands_topic: str) -> None:
        self._orders = orders
        self._topic = commands_topic

    def of(
        self, recorded: HistoryRecord, state: State, last_fired: HistoryEvent | None, last_ending: Ending | None
    ) -> Diagnosis:
        """Find the fault of a history event, given the last firing and the last definition that ended."""
        event, entry = recorded.event, state.entry
        if event.event is EventType.MOVED and entry is None and state.position < len(self._orders.asked):
            fault = _fault(recorded, FaultKind.IGNORED, "it was passed on to another partition, and is in none")
            return Diagnosis([fault], state=state.at(state.position + 1))
        if event.event in ASKED or event.event is EventType.COMPLETED:
            detail = f"history tells {event.event}, and no command asked for it"
            return self._without_some(recorded, state) or _lost(recorded, FaultKind.UNEXPECTED, detail)
        if event.event is not EventType.FIRED:
            return _lost(recorded, *self._undelivered(event, entry))
        last = last_fired
        if last is not None and (last.due, last.version, last.attempt) == (event.due, event.version, event.attempt):
            return Diagnosis([_fault(recorded, FaultKind.DUPLICATE, "history tells it twice")])
        if entry is None:
            was_cancelled = last_ending is not None and last_ending.event is EventType.CANCELLED
            kind = FaultKind.AFTER_CANCEL if was_cancelled else FaultKind.UNEXPECTED
            return Diagnosis([_fault(recorded, kind, "nothing was pending when it fired")])
        if event.version is not None and event.version < entry.schedule.version:
            detail = f"version {entry.schedule.version} had taken its place"
            return Diagnosis([_fault(recorded, FaultKind.SUPERSEDED, detail)])
        if entry.progress.paused:
            return _lost(recorded, FaultKind.UNEXPECTED, "it was paused when it fired")
        if event.due == entry.progress.due and event.at < entry.progress.wakes_at:
            early = entry.progress.wakes_at - event.at
            fault = _fault(recorded, FaultKind.EARLY, f"it fired {early} ms before it was due")
            turn = take_turn(entry, entry.progress.wakes_at, self._orders.rules)
            following = tuple(lines_of(turn, entry, state.since)[1:])
            on_time = state._replace(entry=turn.entry, following=following)
            return Diagnosis([fault], state=on_time, subject=turn.subject)
        return self._with_missing(recorded, state) or _lost(recorded, FaultKind.UNEXPECTED, f"due was {_shown(entry)}")

    def _undelivered(self, event: HistoryEvent, entry: Entry | None) -> tuple[FaultKind, str]:
        """Say what is wrong with a line that says why something was not delivered."""
        if entry is None:
            return FaultKind.UNEXPECTED, f"history tells {event.event}, and nothing was pending"
        if entry.progress.wakes_at <= event.at and take_turn(entry, event.at, self._orders.rules).delivers:
            return FaultKind.MISSING, f"history tells {event.event}, where it should have been delivered"
        return FaultKind.UNEXPECTED, f"history tells {event.event}; due was {_shown(entry)}"

    def _without_some(self, recorded: HistoryRecord, state: State) -> Diagnosis | None:
        """Explain a line by a later command than the next one: those before it had no effect."""
        asked, state = self._orders.asked, state._replace(following=())
        for position in range(state.position + 1, len(asked)):
            found = list(self._orders.ways([state.at(position)], recorded.event))
            if found:
                detail = "a later command had its effect, and this one none"
                ignored = [
                    Fault(
                        FaultKind.IGNORED,
                        None,
                        each.recorded_at,
                        RecordId(self._topic, each.partition, each.offset),
                        detail,
                    )
                    for place, each in enumerate(asked[state.position : position], state.position)
                    if place not in state.ahead
                ]
                return Diagnosis(ignored, found[0])
        return None

    def _with_missing(self, recorded: HistoryRecord, state: State) -> Diagnosis | None:
        """Explain a firing of a series as a later one than the next: those before it are missing."""
        entry, event = state.entry, recorded.event
        missing: list[Fault] = []
        while entry is not None and len(missing) < MOST_PASSED and entry.progress.wakes_at <= event.at:
            turn = take_turn(entry, entry.progress.wakes_at, self._orders.rules)
            if turn.entry is None or turn.entry == entry:
                return None
            if turn.delivers:
                due, ready_at = turn.subject.progress.due, max(entry.progress.wakes_at, state.since)
                detail = f"history goes on with {event.due}"
                missing.append(Fault(FaultKind.MISSING, due, ready_at, recorded.place, detail, is_told=False))
            entry = turn.entry
            passed = state._replace(entry=entry, following=())
            progress = msgspec.structs.replace(entry.progress, sequence=event.sequence or entry.progress.sequence)
            renumbered = passed._replace(entry=Entry(entry.schedule, progress))
            for candidate in (passed, renumbered):
                if found := list(self._orders.by_turn(candidate, event)):
                    return Diagnosis(missing, found[0])
        return None


def _fault(recorded: HistoryRecord, kind: FaultKind, detail: str) -> Fault:
    return Fault(kind, recorded.event.due, recorded.event.at, recorded.place, detail)


def _lost(recorded: HistoryRecord, kind: FaultKind, detail: str) -> Diagnosis:
    return Diagnosis([_fault(recorded, kind, detail)], is_lost=True)


def _shown(entry: Entry) -> str:
    progress, schedule = entry.progress, entry.schedule
    what = "once" if isinstance(schedule.trigger, Once) else f"number {progress.sequence}"
    return f"version {schedule.version}, {what}, at {progress.due}{', paused' if progress.paused else ''}"
