"""One schedule's commands and history, replayed through the engine.

History tells when each thing happened, commands tell what was asked for, and the engine what has to follow. A command
without effect leaves no history, so where it stood among the firings may be open: the replay follows every order that
is possible, and finds fault only if none of them explains what history tells.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from light_scheduler.engine import Decision, FiringRules, Turn, concerns, decide, decide_one_of_many, take_turn
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    NEVER,
    Command,
    CommandForMany,
    DeadLetterCause,
    Entry,
    EventType,
    HistoryEvent,
    Once,
    Outcome,
    Sweep,
)

from .faults import Fault, FaultKind, Place

MOST_STATES = 64
"""Orders of commands that are followed at a time."""

MOST_PASSED = 1_000
"""Firings in a row that are told to be missing one by one."""

_ASKED = frozenset(
    {
        EventType.SCHEDULED,
        EventType.UPDATED,
        EventType.CANCELLED,
        EventType.PAUSED,
        EventType.RESUMED,
        EventType.REJECTED,
        EventType.MOVED,
    }
)
"""What only a command can be the cause of."""


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A command that cannot be understood, or passes a limit."""

    partition: int
    offset: int
    recorded_at: int


Asked = Command | Refused


Name = tuple[int | None, int | None, int | None, int | None]
"""(due, attempt, version, sequence): what tells the messages of a schedule apart, while it lives."""


class Told(NamedTuple):
    """A line of history, and where it is."""

    event: HistoryEvent
    place: Place


class Promise(NamedTuple):
    """What history says was delivered, or put among the dead letters if `cause` is given.

    `subject` is the schedule as the firing saw it, None if the replay had lost track of it. `ready_at` (UTC epoch ms)
    is since when only the scheduler was in its way.
    """

    told: Told
    subject: Entry | None
    ready_at: int | None
    cause: DeadLetterCause | None = None

    @property
    def name(self) -> Name:
        return name_of(self.told.event)


class Ending(NamedTuple):
    """That a definition was replaced or taken away at an instant (UTC epoch ms)."""

    at: int
    event: EventType
    version: int


class _Line(NamedTuple):
    """A line that history has to have."""

    event: EventType
    subject: Entry
    stands_for: int | None = None
    ready_at: int = 0
    cause: DeadLetterCause | None = None

    def is_told_by(self, event: HistoryEvent) -> bool:
        progress = self.subject.progress
        return (
            event.event is self.event
            # Where nothing is planned, history tells what was asked for instead; it did not always.
            and event.due in ((progress.due,) if progress.due != NEVER else (progress.next_due, NEVER))
            and event.version == self.subject.schedule.version
            and event.sequence == progress.sequence
            and event.attempt == progress.attempt
            and event.target_topic == self.subject.schedule.target.topic
            and (None if event.count is msgspec.UNSET else event.count) == self.stands_for
        )


class _State(NamedTuple):
    """How far the commands have been carried out, what is pending then, and which lines have to follow at once.

    `since` is when the last command that had an effect was recorded (UTC epoch ms), `refused` how many of those that
    cannot be understood history has told of.
    """

    position: int
    entry: Entry | None
    since: int
    refused: int = 0
    following: tuple[_Line, ...] = ()


class Replay:
    """Takes history line by line; afterwards holds what was promised, and what is wrong with it.

    `asked` are the commands in the order of their log. `rejected` are offsets of commands that are among the dead
    letters, `passed_on` of those that another lane has copies of. `sources` maps a firing's name to the offsets of the
    commands that its delivered messages name, in their order: they decide between orders that history alone leaves
    open. `whole_since` (UTC epoch ms) is since when neither commands nor history lack anything.
    """

    def __init__(
        self,
        asked: Sequence[Asked],
        rules: FiringRules,
        *,
        commands_topic: str,
        rejected: AbstractSet[int] = frozenset(),
        passed_on: AbstractSet[int] = frozenset(),
        sources: Mapping[Name, Sequence[int]] | None = None,
        whole_since: int = 0,
    ) -> None:
        # What cannot be understood is refused on sight: a command for many before it may have its effect after it.
        self._asked = [each for each in asked if not isinstance(each, Refused)]
        self._refused = [each for each in asked if isinstance(each, Refused)]
        self._rules = rules
        self._topic = commands_topic
        self._rejected = rejected
        self._passed_on = passed_on
        self._sources = {name: deque(offsets) for name, offsets in (sources or {}).items()}
        self._is_lost = False
        self._has_begun = False
        self._whole_since = whole_since
        self._states = [_State(0, None, 0)]
        self._last_fired: HistoryEvent | None = None
        self.promises: list[Promise] = []
        self.endings: list[Ending] = []
        self.faults: list[Fault] = []
        self.unjudged = 0
        """Lines of history that could be held against nothing."""

    @property
    def handled(self) -> int | None:
        """The offset of the last command that is known to have been carried out."""
        position = min(state.position for state in self._states)
        return self._asked[position - 1].offset if position else None

    def take(self, told: Told) -> None:
        """Explain the next line of history."""
        if self._is_lost and not self._find_again(told):
            self._unexplained(told)
            return
        if self._explain(told):
            return
        if self._whole_since and not self._has_begun:
            self._is_lost = True
            self._unexplained(told)
            return
        self._diagnose(told)

    def end(self, until: int, patience: int) -> None:
        """Judge what is left at an instant: what was due `patience` ms before it should have happened by then."""
        if self._is_lost:
            return
        ends = [
            quiet for state in self._states for idle in self._idle(state, until) for quiet in self._quiet(idle, until)
        ]
        furthest = max(state.position for state in ends)
        state = [state for state in ends if state.position == furthest][-1]
        left = [*self._asked[state.position :], *self._refused[state.refused :]]
        waiting = [asked for asked in left if self._whole_since <= asked.recorded_at <= until]
        for asked in waiting:
            self.faults.append(
                Fault(
                    FaultKind.IGNORED,
                    None,
                    asked.recorded_at,
                    self._place_of(asked.offset, asked.partition),
                    "history tells of no effect of this command",
                )
            )
        entry = state.entry
        if entry is None or waiting:
            return
        ready_at = max(entry.progress.wakes_at, state.since)
        if ready_at + patience <= until:
            schedule = entry.schedule
            self.faults.append(
                Fault(
                    FaultKind.MISSING,
                    entry.progress.next_due,
                    ready_at,
                    self._place_of(schedule.source_offset, schedule.source_partition),
                    f"version {schedule.version} was due and history tells of nothing",
                )
            )

    # -- explaining ---------------------------------------------------------------------------------------------------

    def _explain(self, told: Told) -> bool:
        found: list[tuple[_State, _Line | None]] = []
        for state in self._states:
            found += self._ways(state, told.event)
        if not found:
            return False
        if len(found) > 1:
            found = self._narrowed(found, told.event)
        self._states = [state for state, _ in found[:MOST_STATES]]
        self._has_begun = True
        self._note(told, found[0][1])
        return True

    def _ways(self, state: _State, event: HistoryEvent) -> Iterator[tuple[_State, _Line | None]]:
        if state.following:
            line, *rest = state.following
            if line.is_told_by(event):
                yield state._replace(following=tuple(rest)), line
            return
        for idle in self._idle(state, event.at):
            for quiet in self._quiet(idle, event.at):
                yield from self._by_command(quiet, event)
                if event.event not in _ASKED:
                    yield from self._by_turn(quiet, event)

    def _idle(self, state: _State, now: int) -> Iterator[_State]:
        """Yield a state, and those after commands that change nothing in it."""
        yield state
        while not state.following and state.position < len(self._asked):
            try:
                decision = _decided(self._asked[state.position], state.entry, now)
            except InvalidCommand:
                return
            if decision.event is not None:
                return
            state = state._replace(position=state.position + 1)
            yield state

    def _quiet(self, state: _State, now: int) -> Iterator[_State]:
        """Yield a state, and those after turns of which history does not tell: a firing went to the queue.

        When that was makes no difference, so it is taken to have been at once.
        """
        yield state
        while (entry := state.entry) is not None and _may_queue(entry) and entry.progress.wakes_at <= now:
            turn = take_turn(entry, entry.progress.wakes_at, self._rules)
            if turn.entry == entry or _lines(turn, entry, 0):
                return
            state = state._replace(entry=turn.entry)
            yield state

    def _by_command(self, state: _State, event: HistoryEvent) -> Iterator[tuple[_State, _Line | None]]:
        if event.event is EventType.REJECTED and state.refused < len(self._refused):
            yield state._replace(refused=state.refused + 1), None
        if state.position == len(self._asked):
            return
        asked = self._asked[state.position]
        after = state._replace(position=state.position + 1)
        if event.event is EventType.MOVED:
            if state.entry is None and asked.offset in self._passed_on:
                yield after, None
            return
        is_rejected = asked.offset in self._rejected
        if event.event is EventType.REJECTED:
            if is_rejected or self._refuses(asked, state.entry, event.at):
                yield after, None
            return
        if is_rejected:
            return
        try:
            decision = _decided(asked, state.entry, event.at)
        except InvalidCommand:
            return
        if decision.event is None or decision.subject is None:
            return
        line = _Line(decision.event, decision.subject)
        if line.is_told_by(event):
            following = (_Line(EventType.FINISHED, decision.subject),) if decision.finished else ()
            since = min(asked.recorded_at, event.at)
            yield after._replace(entry=decision.entry, since=since, following=following), line

    @staticmethod
    def _refuses(asked: Command, entry: Entry | None, now: int) -> bool:
        try:
            _decided(asked, entry, now)
        except InvalidCommand:
            return True
        return False

    def _by_turn(self, state: _State, event: HistoryEvent) -> Iterator[tuple[_State, _Line | None]]:
        refusals: tuple[str | None, ...] = (None,)
        if event.event in (EventType.RETRIED, EventType.DEAD_LETTERED):
            refusals = (None, event.reason)
        for refusal in refusals:
            entry = state.entry
            if entry is None or entry.progress.wakes_at > event.at:
                return
            turn = take_turn(entry, event.at, self._rules, refusal)
            lines = _lines(turn, entry, state.since)
            if lines and lines[0].is_told_by(event):
                yield state._replace(entry=turn.entry, following=tuple(lines[1:])), lines[0]

    def _narrowed(
        self, found: list[tuple[_State, _Line | None]], event: HistoryEvent
    ) -> list[tuple[_State, _Line | None]]:
        """Drop ways that come to the same, and those that the delivered message contradicts."""
        different: list[tuple[_State, _Line | None]] = []
        for way in found:
            if way not in different:
                different.append(way)
        if event.event is not EventType.FIRED:
            return different
        sources = self._sources.get(name_of(event))
        fitting = [
            way for way in different if sources and way[1] and way[1].subject.schedule.source_offset == sources[0]
        ]
        return fitting or different

    def _note(self, told: Told, line: _Line | None) -> None:
        event = told.event
        if event.event is EventType.FIRED or (line is not None and line.cause is not None):
            assert line is not None
            self.promises.append(Promise(told, line.subject, line.ready_at, line.cause))
        if event.event is EventType.FIRED:
            self._last_fired = event
            if sources := self._sources.get(name_of(event)):
                sources.popleft()
        if event.event in (EventType.CANCELLED, EventType.UPDATED) and event.version is not None:
            version = event.version if event.event is EventType.CANCELLED else event.version - 1
            self.endings.append(Ending(event.at, event.event, version))

    # -- what cannot be explained -------------------------------------------------------------------------------------

    def _diagnose(self, told: Told) -> None:
        event, state = told.event, self._states[0]
        if event.event is EventType.MOVED and state.entry is None and state.position < len(self._asked):
            self._fault(told, FaultKind.IGNORED, "it was passed on to another partition, and is in none")
            self._states = [state._replace(position=state.position + 1)]
            return
        if event.event in _ASKED or event.event is EventType.COMPLETED:
            if self._explain_without_some(told):
                return
            self._lose(told, FaultKind.UNEXPECTED, f"history tells {event.event}, and no command asked for it")
            return
        entry = state.entry
        if event.event is not EventType.FIRED:
            self._lose(told, *self._undelivered(event, entry))
            return
        last = self._last_fired
        if last is not None and (last.due, last.version, last.attempt) == (event.due, event.version, event.attempt):
            self._fault(told, FaultKind.DUPLICATE, "history tells it twice")
        elif entry is None:
            was_cancelled = bool(self.endings) and self.endings[-1].event is EventType.CANCELLED
            kind = FaultKind.AFTER_CANCEL if was_cancelled else FaultKind.UNEXPECTED
            self._fault(told, kind, "nothing was pending when it fired")
        elif event.version is not None and event.version < entry.schedule.version:
            self._fault(told, FaultKind.SUPERSEDED, f"version {entry.schedule.version} had taken its place")
        elif event.due == entry.progress.due and event.at < entry.progress.wakes_at:
            early = entry.progress.wakes_at - event.at
            self._fault(told, FaultKind.EARLY, f"it fired {early} ms before it was due")
            self._resume(state, event, on_time=entry.progress.wakes_at)
            return
        elif self._explain_with_missing(state, told):
            return
        else:
            self._lose(told, FaultKind.UNEXPECTED, f"due was {_shown(entry)}")
            return
        self._unexplained(told, counts=False)

    def _undelivered(self, event: HistoryEvent, entry: Entry | None) -> tuple[FaultKind, str]:
        """Say what is wrong with a line that says why something was not delivered."""
        if entry is None:
            return FaultKind.UNEXPECTED, f"history tells {event.event}, and nothing was pending"
        if entry.progress.wakes_at <= event.at and take_turn(entry, event.at, self._rules).delivers:
            return FaultKind.MISSING, f"history tells {event.event}, where it should have been delivered"
        return FaultKind.UNEXPECTED, f"history tells {event.event}; due was {_shown(entry)}"

    def _explain_without_some(self, told: Told) -> bool:
        """Explain a line by a later command than the next one: those before it had no effect."""
        state = self._states[0]._replace(following=())
        for position in range(state.position + 1, len(self._asked)):
            found = list(self._ways(state._replace(position=position), told.event))
            if not found:
                continue
            for asked in self._asked[state.position : position]:
                self.faults.append(
                    Fault(
                        FaultKind.IGNORED,
                        None,
                        asked.recorded_at,
                        self._place_of(asked.offset, asked.partition),
                        "a later command had its effect, and this one none",
                    )
                )
            self._states = [found[0][0]]
            self._note(told, found[0][1])
            return True
        return False

    def _explain_with_missing(self, state: _State, told: Told) -> bool:
        """Explain a firing of a series as a later one than the next: those before it are missing."""
        entry, event = state.entry, told.event
        missing: list[Fault] = []
        while entry is not None and len(missing) < MOST_PASSED and entry.progress.wakes_at <= event.at:
            turn = take_turn(entry, entry.progress.wakes_at, self._rules)
            if turn.entry is None or turn.entry == entry:
                return False
            if turn.delivers:
                due = turn.subject.progress.due
                detail = f"history goes on with {event.due}"
                missing.append(Fault(FaultKind.MISSING, due, entry.progress.wakes_at, told.place, detail))
            entry = turn.entry
            passed = state._replace(entry=entry, following=())
            progress = msgspec.structs.replace(entry.progress, sequence=event.sequence or entry.progress.sequence)
            renumbered = passed._replace(entry=Entry(entry.schedule, progress))
            for candidate in (passed, renumbered):
                if found := list(self._by_turn(candidate, event)):
                    self.faults += missing
                    self._states = [found[0][0]]
                    self._note(told, found[0][1])
                    return True
        return False

    def _resume(self, state: _State, event: HistoryEvent, on_time: int) -> None:
        """Go on after a firing as if it had been on time."""
        assert state.entry is not None
        turn = take_turn(state.entry, on_time, self._rules)
        line = _lines(turn, state.entry, state.since)
        self._states = [state._replace(entry=turn.entry, following=tuple(line[1:]))]
        self._last_fired = event

    def _lose(self, told: Told, kind: FaultKind, detail: str) -> None:
        self._fault(told, kind, detail)
        self._is_lost = True
        self._unexplained(told, counts=False)

    def _find_again(self, told: Told) -> bool:
        """Go on where a schedule begins anew."""
        if told.event.event is not EventType.SCHEDULED:
            return False
        for position in range(self._states[0].position, len(self._asked)):
            state = self._states[0]._replace(position=position, entry=None, since=0, following=())
            if any(True for _ in self._by_command(state, told.event)):
                self._states = [state]
                self._is_lost = False
                return True
        return False

    def _unexplained(self, told: Told, *, counts: bool = True) -> None:
        """Note what can be noted of a line without knowing the schedule: whether its message is there."""
        self.unjudged += counts
        if told.event.event is EventType.FIRED:
            self._last_fired = told.event
            self.promises.append(Promise(told, None, None))

    def _fault(self, told: Told, kind: FaultKind, detail: str) -> None:
        self.faults.append(Fault(kind, told.event.due, told.event.at, told.place, detail))

    def _place_of(self, offset: int, partition: int) -> Place:
        return Place(self._topic, partition, offset)


def _decided(command: Command, entry: Entry | None, now: int) -> Decision:
    """Decide a command on this schedule, be it for this one or for many. Raises InvalidCommand."""
    if not isinstance(command, CommandForMany) or command.selection is None:
        return decide(command, entry, now, NO_LIMITS)
    if entry is None or not concerns(Sweep(command, command.partition, command.offset), entry):
        return Decision(Outcome.NOT_FOUND, entry)
    return decide_one_of_many(command, entry, now, NO_LIMITS)


def name_of(event: HistoryEvent) -> Name:
    """Name the message that a line of history speaks of."""
    return event.due, event.attempt, event.version, event.sequence


def _lines(turn: Turn, entry: Entry, since: int) -> list[_Line]:
    lines = []
    ready_at = max(entry.progress.wakes_at, since)
    if turn.skipped is not None:
        skipped = Entry(entry.schedule, turn.skipped.progress)
        lines.append(_Line(EventType.SKIPPED, skipped, turn.skipped.count))
    if turn.event is not None:
        ready_at = max(ready_at, turn.subject.progress.due)
        lines.append(_Line(turn.event, turn.subject, None, ready_at, turn.dead_letter))
    if turn.finished:
        lines.append(_Line(EventType.FINISHED, turn.subject))
    return lines


def _may_queue(entry: Entry) -> bool:
    waits = entry.schedule.acknowledgement
    return waits is not None and waits.overlap == "queue" and bool(entry.progress.awaited)


def _shown(entry: Entry) -> str:
    progress, schedule = entry.progress, entry.schedule
    what = "once" if isinstance(schedule.trigger, Once) else f"number {progress.sequence}"
    return f"version {schedule.version}, {what}, at {progress.due}{', paused' if progress.paused else ''}"
