"""Every order of commands and firings that explains a line of history."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import msgspec

from light_scheduler.engine import Decision, FiringRules, Turn, concerns, decide, decide_bulk, take_turn
from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    NEVER,
    PARTITION_AWAY,
    BulkCommand,
    BulkPart,
    Command,
    CompleteCommand,
    DeadLetterCause,
    Entry,
    EventType,
    ExtendCommand,
    HistoryEvent,
    Outcome,
    ScheduleCommand,
)
from light_scheduler.model.tenant_rules import TENANT_DELETED

from .promises import Refused

ASKED = frozenset(
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
"""Events that only a command can cause."""

OVERTAKING = frozenset({EventType.COMPLETED, EventType.UPDATED, EventType.REJECTED, EventType.MOVED})
"""Events that commands cause that do not wait behind those of their tenant which its quotas delay."""


class Line(NamedTuple):
    """An event that the history must have."""

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
            # A command without a target has that of its tenant, which is not known here.
            and self.subject.schedule.target.topic in ("", event.target_topic)
            and (None if event.count is msgspec.UNSET else event.count) == self.stands_for
        )


class State(NamedTuple):
    """How far the commands have been carried out, what is pending then, and which lines have to follow at once.

    `since` is when the last command that had an effect was recorded, or a run was over that nobody completed in time
    (UTC epoch ms); `refused` is how many of those that cannot be understood history has told of. `ahead` are the places
    of commands behind `position` that were carried out before it, in their order. History has not told yet of the
    refusal of so many commands that were to be passed on and are `stranded`: they are among the dead letters.
    """

    position: int
    entry: Entry | None
    since: int
    refused: int = 0
    following: tuple[Line, ...] = ()
    ahead: tuple[int, ...] = ()
    stranded: int = 0

    def at(self, position: int) -> State:
        """Return the state with all commands before a position carried out."""
        ahead = tuple(place for place in self.ahead if place >= position)
        while ahead and ahead[0] == position:
            position, ahead = position + 1, ahead[1:]
        return self._replace(position=position, ahead=ahead)


Way = tuple[State, Line | None]
"""The state that a line of history leads to, and what explains the line; None: only a command's refusal does."""


class AskedOf(NamedTuple):
    """The commands to a schedule: `asked` in the order of their log, which is `topic`'s, without those that are
    `refused` because they cannot be understood.

    `rejected` are offsets of commands that are among the dead letters, `passed_on` of those that another lane has
    copies of. The dead letter of a copy of a command for many schedules names the command that was sent: it may have
    been carried out there, and if other lanes have dead letters (`rejected_elsewhere`), they may be of copies here.

    `is_partial`: commands may be gone that later ones have followed. Those may ask for the same, so what history tells
    of before they were sent is not theirs.
    """

    topic: str
    asked: Sequence[Command]
    refused: Sequence[Refused] = ()
    rejected: AbstractSet[int] = frozenset()
    passed_on: AbstractSet[int] = frozenset()
    rejected_elsewhere: bool = False
    is_partial: bool = False


class Orders:
    """Goes from state to state by the engine."""

    def __init__(self, commands: AskedOf, rules: FiringRules) -> None:
        # What cannot be understood is refused on sight: a bulk command before it may have its effect after it.
        self.asked = commands.asked
        self.refused = sorted(
            commands.refused, key=lambda each: each.may_be_report
        )  # what has to be rejected comes first
        self.rules = rules
        self._rejected = commands.rejected
        self._passed_on = commands.passed_on
        self._rejected_elsewhere = commands.rejected_elsewhere
        self._is_partial = commands.is_partial

    def ways(self, states: Iterable[State], event: HistoryEvent, most: int | None = None) -> Iterator[Way]:
        """Yield the ways to come from states to a line of history: from each the first `most` (None: all).

        What an earlier state comes to by commands that change nothing is not looked at again: a series has many states
        that differ in how many of the reports on its later firings have been read.
        """
        reached: defaultdict[int, list[State]] = defaultdict(list)
        for state in states:
            yield from islice(self._ways_from(state, event, reached), most)

    def _ways_from(self, state: State, event: HistoryEvent, reached: defaultdict[int, list[State]]) -> Iterator[Way]:
        if state.following:
            line, *rest = state.following
            if line.is_told_by(event):
                yield state._replace(following=tuple(rest)), line
            return
        for idle in self.idle(state, event.at):
            if idle in reached[idle.position]:
                return
            reached[idle.position].append(idle)
            for quiet in self.quiet(idle, event.at):
                yield from self.by_command(quiet, event)
                yield from self.by_removal(quiet, event)
                if event.event not in ASKED:
                    yield from self.by_turn(quiet, event)

    def overtaking(self, state: State, event: HistoryEvent) -> Iterator[Way]:
        """Yield the ways in which a command explains a line that was carried out while those before it waited."""
        if state.following or event.event not in OVERTAKING:
            return
        for idle in self.idle(state, event.at):
            yield from self._ahead_of(idle, self._overtaking[bisect_right(self._overtaking, idle.position) :], event)

    def overtaking_idle(self, states: Sequence[State], event: HistoryEvent) -> Iterator[Way]:
        """Yield those of these ways that `ways` takes for others: it has commands that change nothing carried out, or
        explains a line by a command that was passed on later.

        For an order of the lane it matters that they may wait. The first one that may is left waiting, with all behind
        it: those can be carried out before the next line.
        """
        if event.event not in OVERTAKING:
            return
        reached: defaultdict[int, list[State]] = defaultdict(list)
        for state in sorted(states, key=lambda each: each.position):
            if state.following:
                continue
            yield from self._ahead_of_idle(state, event, reached)
            if event.event is EventType.MOVED:
                passed_on = self._reports_passed_on
                yield from self._ahead_of(state, passed_on[bisect_right(passed_on, state.position) :], event)

    def _ahead_of_idle(
        self, state: State, event: HistoryEvent, reached: defaultdict[int, list[State]]
    ) -> Iterator[Way]:
        first = bisect_left(self._waiting, state.position)
        if first == len(self._waiting):
            return
        place = self._waiting[first]
        behind = bisect_right(self._overtaking, place)
        if behind == len(self._overtaking):
            return
        waits, last = None, state.position
        for idle in self.idle(state, event.at):
            if idle in reached[idle.position]:  # an earlier state comes to it, of which as many commands wait
                break
            reached[idle.position].append(idle)
            last = idle.position
            if last == place:
                waits = idle
        if waits is not None and last > place:
            end = bisect_right(self._overtaking, last)
            yield from self._ahead_of(waits, self._overtaking[behind:end], event)

    def _ahead_of(self, state: State, places: Sequence[int], event: HistoryEvent) -> Iterator[Way]:
        """Yield the ways in which a command at one of these places explains a line before those from a state on."""
        for quiet in self.quiet(state, event.at):
            for place in places:
                if place in quiet.ahead:
                    continue
                for after, line in self.by_command(quiet._replace(position=place, ahead=()), event):
                    ahead = tuple(sorted((*quiet.ahead, place)))
                    yield after._replace(position=quiet.position, ahead=ahead), line

    @cached_property
    def _overtaking(self) -> array[int]:
        """The places of commands that do not wait, in their order."""
        return array("q", (place for place, asked in enumerate(self.asked) if self.overtakes(asked)))

    @cached_property
    def _waiting(self) -> array[int]:
        """The places of commands that may have to wait, in their order."""
        return array("q", (place for place, asked in enumerate(self.asked) if not self.overtakes(asked)))

    @cached_property
    def _reports_passed_on(self) -> list[int]:
        """The places of commands that do not wait and of which another lane has copies."""
        return [place for place in self._overtaking if self.asked[place].offset in self._passed_on]

    def overtakes(self, asked: Command) -> bool:
        """Return whether a command does not wait while quotas delay those of its tenant before it.

        Reports of consumers never do, and what finds no room in the queue is rejected.
        """
        return isinstance(asked, CompleteCommand | ExtendCommand) or asked.offset in self._rejected

    def keeps_order(self, place: int) -> bool:
        """Return whether the command at a place must have its effect before all that follow it.

        Of a command for many schedules, this copy may be for others: while a topic grows, each schedule has one.
        """
        asked = self.asked[place]
        return not (self.overtakes(asked) or _is_for_many(asked))

    def idle(self, state: State, now: int) -> Iterator[State]:
        """Yield a state, and those after commands that change nothing in it."""
        yield state
        while not state.following and state.position < len(self.asked):
            asked = self.asked[state.position]
            if self._is_too_young(asked, now):
                return
            if not (_is_for_many(asked) and asked.offset in self._rejected):  # of which history tells under its own id
                try:
                    decision = _decided(asked, state.entry, now)
                except InvalidCommand:
                    return
                if decision.event is not None:
                    return
            state = state.at(state.position + 1)
            yield state

    def replaced_by(self, position: int, event: HistoryEvent) -> Entry | None:
        """Return what stands for the schedule that a command replaced, as a line tells; None: it replaces none."""
        asked = self.asked[position]
        if not isinstance(asked, ScheduleCommand) or event.version is None:
            return None
        try:
            made = _decided(asked, None, event.at).entry
        except InvalidCommand:
            return None
        version = event.version - 1
        return None if made is None else Entry(msgspec.structs.replace(made.schedule, version=version), made.progress)

    def _is_too_young(self, asked: Command, now: int) -> bool:
        """Return whether a command cannot have been carried out by an instant, but one that is gone."""
        return self._is_partial and asked.recorded_at > now

    def _is_rejected_copy(self, asked: Command, event: HistoryEvent) -> bool:
        """Return whether a line may tell of the refusal of this copy of a command for many schedules."""
        return self._rejected_elsewhere and _is_for_many(asked) and asked.id == event.id

    def quiet(self, state: State, now: int) -> Iterator[State]:
        """Yield a state, and those after turns of which history does not tell: a firing went to the queue.

        When that was makes no difference, so it is taken to have been at once.
        """
        yield state
        while (entry := state.entry) is not None and _may_queue(entry) and entry.progress.wakes_at <= now:
            turn = take_turn(entry, entry.progress.wakes_at, self.rules)
            if turn.entry == entry or lines_of(turn, entry, 0):
                return
            state = state._replace(entry=turn.entry)
            yield state

    def by_command(self, state: State, event: HistoryEvent) -> Iterator[Way]:
        """Yield the ways in which the next command explains a line."""
        if event.event is EventType.REJECTED and state.refused < len(self.refused):
            yield state._replace(refused=state.refused + 1), None
        if event.event is EventType.REJECTED and state.stranded:
            yield state._replace(stranded=state.stranded - 1), None
        if state.position == len(self.asked):
            return
        asked = self.asked[state.position]
        if self._is_too_young(asked, event.at):
            return
        after = state.at(state.position + 1)
        if event.event is EventType.MOVED:
            waits = (event.reason or "").endswith(PARTITION_AWAY)  # it will have a copy, unless that is too large then
            if state.entry is None and (waits or asked.offset in self._passed_on):
                is_stranded = waits and asked.offset in self._rejected
                yield after._replace(stranded=after.stranded + is_stranded), None
            return
        is_rejected = asked.offset in self._rejected
        if event.event is EventType.REJECTED:
            is_rejected = is_rejected or self._is_rejected_copy(asked, event)
            if is_rejected or self._refuses(asked, state.entry, event.at):
                yield after, None
            return
        if is_rejected and not _is_for_many(asked):
            return
        try:
            decision = _decided(asked, state.entry, event.at)
        except InvalidCommand:
            return
        if decision.event is None or decision.subject is None:
            return
        line, *rest = _lines_of_decision(decision, state.entry)
        if line.is_told_by(event):
            since = min(asked.recorded_at, event.at)
            yield after._replace(entry=decision.entry, since=since, following=tuple(rest)), line

    @staticmethod
    def by_removal(state: State, event: HistoryEvent) -> Iterator[Way]:
        """Yield the way in which the deletion of its tenant explains a line."""
        if event.event is EventType.CANCELLED and event.reason == TENANT_DELETED and state.entry is not None:
            line = Line(EventType.CANCELLED, state.entry)
            if line.is_told_by(event):
                yield state._replace(entry=None), line

    @staticmethod
    def _refuses(asked: Command, entry: Entry | None, now: int) -> bool:
        if isinstance(asked, ScheduleCommand) and not asked.target.topic:
            return True  # its tenant may have no target
        try:
            _decided(asked, entry, now)
        except InvalidCommand:
            return True
        return False

    def by_turn(self, state: State, event: HistoryEvent) -> Iterator[Way]:
        """Yield the ways in which a turn of the schedule, at the line's own instant, explains it."""
        refusals: tuple[str | None, ...] = (None,)
        if event.event in (EventType.RETRIED, EventType.DEAD_LETTERED, EventType.SKIPPED):  # one may be refused then
            refusals = (None, event.reason)
        for refusal in refusals:
            entry = state.entry
            if entry is None or entry.progress.wakes_at > event.at:
                return
            turn = take_turn(entry, event.at, self.rules, refusal)
            lines = lines_of(turn, entry, state.since)
            if lines and lines[0].is_told_by(event):
                since = max(state.since, entry.progress.wakes_at) if _ends_run(turn, entry) else state.since
                yield state._replace(entry=turn.entry, since=since, following=tuple(lines[1:])), lines[0]


def _is_for_many(command: Command) -> bool:
    return isinstance(command, BulkCommand) and command.selection is not None


def _decided(command: Command, entry: Entry | None, now: int) -> Decision:
    """Decide a command on this schedule, be it for this one or for many. Raises InvalidCommand."""
    if not isinstance(command, BulkCommand) or command.selection is None:
        return decide(command, entry, now, NO_LIMITS)
    if entry is None or not concerns(BulkPart(command, command.partition, command.offset), entry):
        return Decision(Outcome.NOT_FOUND, entry)
    return decide_bulk(command, entry, now, NO_LIMITS)


def _lines_of_decision(decision: Decision, entry: Entry | None) -> list[Line]:
    """Return what history tells of a decision on a schedule that stood as `entry` says; at least its event."""
    lines = []
    if decision.skipped is not None and entry is not None:
        lines.append(Line(EventType.SKIPPED, Entry(entry.schedule, decision.skipped.progress), decision.skipped.count))
    if decision.event is not None and decision.subject is not None:
        lines.append(Line(decision.event, decision.subject))
        if decision.finished is not None:
            lines.append(Line(EventType.FINISHED, decision.subject))
    return lines


def lines_of(turn: Turn, entry: Entry, since: int) -> list[Line]:
    """Return what history tells of a turn of a schedule that stood as `entry` says."""
    lines: list[Line] = []
    ready_at = max(entry.progress.wakes_at, since)
    for skipped in turn.skipped:
        lines.append(Line(EventType.SKIPPED, Entry(entry.schedule, skipped.progress), skipped.count))
    if turn.event is not None:
        ready_at = max(ready_at, turn.subject.progress.due)
        lines.append(Line(turn.event, turn.subject, None, ready_at, turn.dead_letter))
    if turn.finished is not None:
        lines.append(Line(EventType.FINISHED, turn.subject))
    return lines


def _ends_run(turn: Turn, entry: Entry) -> bool:
    """Return whether a turn ends a run that was not completed in time: a firing in the queue has waited for that."""
    return turn.entry is not None and len(turn.entry.progress.awaited) < len(entry.progress.awaited)


def _may_queue(entry: Entry) -> bool:
    waits = entry.schedule.acknowledgement
    return waits is not None and waits.overlap == "queue" and bool(entry.progress.awaited)
