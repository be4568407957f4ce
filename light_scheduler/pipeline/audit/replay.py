"""One schedule's commands and history, replayed through the engine.

History tells when each thing happened, commands tell what was asked for, and the engine what has to follow. A command
without effect leaves no history, so where it stood among the firings may be open: the replay follows every order that
is possible, and finds fault only if none of them explains what history tells.
"""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.engine import FiringRules
from light_scheduler.model import Entry, EventType, HistoryEvent

from .diagnosis import Diagnoses
from .faults import Fault, FaultKind, RecordId
from .found import MessagesByName
from .lane_order import CarriedOut, PassedOver
from .orders import ASKED, AskedOf, Line, Orders, State, Way
from .promises import Ending, HistoryRecord, Promise, name_of
from .stops import NEVER_STOPPED, Stops

MOST_STATES = 64
"""Orders of commands that are followed at a time."""


class Explained(NamedTuple):
    """What lines of history promised, what is wrong with them, and the instants (UTC epoch ms) of those that could be
    held against nothing.

    `carried_out` and `passed_over` are commands: together with those of other schedules they may tell what was lost.
    """

    promises: list[Promise]
    faults: list[Fault]
    unjudged: list[int]
    carried_out: list[CarriedOut]
    passed_over: list[PassedOver]

    @classmethod
    def nothing(cls) -> Explained:
        return cls([], [], [], [], [])


class _Waiting(NamedTuple):
    """The place, among those asked for, of a command that waited when a line was written."""

    place: int
    line: RecordId


class Replay:
    """Takes history line by line, and finds out what was promised, and what is wrong with it.

    Delivered `messages` name the commands that they come from, in their order: these decide between orders that history
    alone leaves open. `whole_since` (UTC epoch ms) is since when neither commands nor history lack anything. `imported`
    is what was pending before the first command.
    """

    def __init__(
        self,
        commands: AskedOf,
        rules: FiringRules,
        *,
        messages: MessagesByName,
        whole_since: int = 0,
        imported: Entry | None = None,
    ) -> None:
        self._orders = Orders(commands, rules)
        self._diagnoses = Diagnoses(self._orders, commands.topic)
        self._topic = commands.topic
        self._messages = messages
        self._is_lost = False
        self._has_begun = imported is not None
        self._whole_since = whole_since
        self._is_partial = commands.is_partial
        self._states = [State(0, imported, 0)]
        self._last_fired: HistoryEvent | None = None
        self._found = Explained.nothing()
        self._is_cut = False
        """Whether there were more ways to explain a line than are followed."""
        self._waiting: _Waiting | None = None
        self._is_found_again = False
        """Whether it went on at a command that may not be the one that a line tells of."""
        self._handled = -1
        self.endings: list[Ending] = []
        self.rest: State | None = None
        """How the schedule stands in the end; None if that is open: what was asked for has not all been carried out,
        or orders that are possible lead to different ends.
        """

    @property
    def handled(self) -> int | None:
        """The offset of the last command that is known to have been carried out after all of its tenant before it.

        Commands that overtake others tell nothing of them.
        """
        for place in range(min(state.position for state in self._states) - 1, -1, -1):
            asked = self._orders.asked[place]
            if not self._orders.overtakes(asked):
                return asked.offset
        return None

    def found(self) -> Explained:
        """Return what was found since this was called last: a series can have more of it than fits into memory."""
        found, self._found = self._found, Explained.nothing()
        return found

    def take(self, recorded: HistoryRecord) -> None:
        """Explain the next line of history."""
        if self._is_lost and not self._find_again(recorded):
            self._lose(recorded)
            return
        if self._explain(recorded):
            return
        if self._is_partial and recorded.event.event in ASKED:  # by a command that is gone
            if self._find_again(recorded) and self._explain(recorded):
                return
            self._lose(recorded)
            return
        if self._whole_since and not self._has_begun:
            self._lose(recorded)
            return
        self._diagnose(recorded)

    def end(self, until: int, patience: int, stops: Stops = NEVER_STOPPED) -> None:
        """Judge what is left at an instant: what was due `patience` ms before it should have happened by then.

        Time in which the tenant was stopped does not count.
        """
        if self._is_lost:
            self._pass_over()
            return
        ends = [
            quiet
            for state in self._states
            for idle in self._orders.idle(state, until)
            for quiet in self._orders.quiet(idle, until)
        ]
        furthest = max(state.position for state in ends)
        # The last one of those with which history tells of most refusals.
        state = max(reversed([state for state in ends if state.position == furthest]), key=lambda each: each.refused)
        refused = [each for each in self._orders.refused[state.refused :] if not each.may_be_report]
        places = (place for place in range(state.position, len(self._orders.asked)) if place not in state.ahead)
        left = [*(self._orders.asked[place] for place in places), *refused]
        if self._waiting is not None and self._orders.asked[self._waiting.place] not in left:
            self._pass_over()
        waiting = [asked for asked in left if self._whole_since <= asked.recorded_at <= until]
        self._found.unjudged.extend(asked.recorded_at for asked in left if asked.recorded_at < self._whole_since)
        for asked in waiting:
            self._found.faults.append(
                Fault(
                    FaultKind.IGNORED,
                    None,
                    asked.recorded_at,
                    RecordId(self._topic, asked.partition, asked.offset),
                    "history tells of no effect of this command",
                )
            )
        entry = state.entry
        is_sure = all(each.entry == state.entry for each in ends if each.position == furthest)
        if is_sure and not left and not state.following:
            self.rest = state
        if entry is None or waiting:
            return
        ready_at = max(entry.progress.wakes_at, state.since)
        if ready_at + patience + stops.between(ready_at, until) <= until:
            schedule = entry.schedule
            self._found.faults.append(
                Fault(
                    FaultKind.MISSING,
                    entry.progress.next_due,
                    ready_at,
                    RecordId(self._topic, schedule.source_partition, schedule.source_offset),
                    f"version {schedule.version} was due and history tells of nothing",
                    is_told=False,
                )
            )
            self.rest = None

    # -- explaining ---------------------------------------------------------------------------------------------------

    def _explain(self, recorded: HistoryRecord) -> bool:
        found = list(self._orders.ways(self._states, recorded.event, MOST_STATES))
        is_cut = len(found) >= MOST_STATES
        if found:
            found += self._orders.overtaking_idle(self._states, recorded.event)
        else:
            for state in self._states:
                found += self._orders.overtaking(state, recorded.event)
        if not found:
            return False
        if len(found) > 1:
            found = self._narrowed(found, recorded.event)
        self._is_cut = self._is_cut or is_cut or len(found) > MOST_STATES
        self._states = [state for state, _ in found[:MOST_STATES]]
        self._has_begun = True
        self._note(recorded, found[0][1])
        if not (self._is_cut or self._is_partial):
            self._note_order(recorded)
        return True

    def _narrowed(self, found: list[Way], event: HistoryEvent) -> list[Way]:
        """Drop ways that come to the same, and those that the delivered message contradicts."""
        different: list[Way] = []
        for way in found:
            if way not in different:
                different.append(way)
        if event.event is not EventType.FIRED:
            return different
        source = self._messages.source(name_of(event))
        fitting = [
            way
            for way in different
            if source is not None and way[1] and way[1].subject.schedule.source_offset == source
        ]
        return fitting or different

    def _note(self, recorded: HistoryRecord, line: Line | None) -> None:
        event = recorded.event
        if event.event is EventType.FIRED or (line is not None and line.cause is not None):
            assert line is not None
            self._found.promises.append(Promise(recorded, line.subject, line.ready_at, line.cause))
        if event.event is EventType.FIRED:
            self._last_fired = event
            self._messages.pass_source(name_of(event))
        if event.event in (EventType.CANCELLED, EventType.UPDATED) and event.version is not None:
            version = event.version if event.event is EventType.CANCELLED else event.version - 1
            self.endings.append(Ending(event.at, event.event, version))

    # -- the order of lanes -------------------------------------------------------------------------------------------

    def _note_order(self, recorded: HistoryRecord) -> None:
        """Note which commands had been carried out when an explained line was written, and the first that had not."""
        event = recorded.event.event
        if event in ASKED and not self._whole_since:  # else it may be the line of a command that is gone
            handled = self.handled
            if handled is not None and handled > self._handled:
                self._handled = handled
                self._found.carried_out.append(CarriedOut(recorded.place, handled))
        if event is not EventType.FIRED:
            return
        place = max(state.position for state in self._states)
        if self._waiting is not None and self._waiting.place < place:
            self._pass_over()
        is_known = place < len(self._orders.asked) and not self._is_found_again
        is_waiting = is_known and self._orders.keeps_order(place)
        self._waiting = _Waiting(place, recorded.place) if is_waiting else None

    def _pass_over(self) -> None:
        """Tell of the command that waited when the schedule fired."""
        if self._waiting is None:
            return
        asked = self._orders.asked[self._waiting.place]
        command = RecordId(self._topic, asked.partition, asked.offset)
        if self._whole_since <= asked.recorded_at:
            self._found.passed_over.append(PassedOver(command, asked.recorded_at, self._waiting.line))
        self._waiting = None

    # -- what cannot be explained -------------------------------------------------------------------------------------

    def _diagnose(self, recorded: HistoryRecord) -> None:
        last_ending = self.endings[-1] if self.endings else None
        found = self._diagnoses.of(recorded, self._states[0], self._last_fired, last_ending)
        self._found.faults.extend(found.faults)
        if any(fault.kind is FaultKind.IGNORED for fault in found.faults):
            self._waiting = None
        if found.way is not None:
            state, line = found.way
            self._states = [state]
            self._note(recorded, line)
            return
        self._is_lost = found.is_lost
        if found.state is not None:
            self._states = [found.state]
        self._seek(recorded, found.subject)

    def _find_again(self, recorded: HistoryRecord) -> bool:
        """Go on where a schedule begins anew, or is replaced by one whose command is there."""
        event = recorded.event
        replaces = self._is_partial and event.event is EventType.UPDATED
        if event.event is not EventType.SCHEDULED and not replaces:
            return False
        for position in range(self._states[0].position, len(self._orders.asked)):
            before = self._orders.replaced_by(position, event) if replaces else None
            if replaces and before is None:
                continue
            state = self._states[0].at(position)._replace(entry=before, since=0, following=())
            if any(True for _ in self._orders.by_command(state, event)):
                self._states = [state]
                self._is_lost = False
                self._is_found_again = True
                return True
        return False

    def _lose(self, recorded: HistoryRecord) -> None:
        """Note a line of a schedule that is not known from there on.

        It is known again where it has ended, and a command that is gone and was rejected has not changed it.
        """
        self._found.unjudged.append(recorded.event.at)
        self._seek(recorded)
        event = recorded.event.event if self._is_partial else None
        if event is EventType.CANCELLED:
            self._states = [self._states[0]._replace(entry=None, since=0, following=())]
            self._is_lost = False
        elif event is not EventType.REJECTED:
            self._is_lost = True

    def _seek(self, recorded: HistoryRecord, subject: Entry | None = None) -> None:
        """Have the message of an unexplained firing looked for; `subject` is the schedule as it saw it, if known."""
        if recorded.event.event is EventType.FIRED:
            self._last_fired = recorded.event
            self._found.promises.append(Promise(recorded, subject, None))
