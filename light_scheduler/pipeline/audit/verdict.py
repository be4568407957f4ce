"""One schedule's verdict: what was promised against what is in the target topics and among the dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

import msgspec

from light_scheduler.engine import FiringRules
from light_scheduler.model import Command, DeadLetterCause, Entry, EventType, delivery_id
from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.wire.firing import told_key

from .deliveries import Deliveries
from .faults import Fault, FaultKind
from .forwarding import NOWHERE, Forwarding
from .found import DeadLetters, MessagesByName, Seen
from .orders import AskedOf
from .overflow import LongList
from .promises import Ending, HistoryRecord, Promise, Refused
from .replay import Explained, Replay
from .standing import Course, Series, Standing, standing_of
from .stops import NEVER_STOPPED, Stops

_encode = msgspec.msgpack.Encoder().encode
_decode_fault = msgspec.msgpack.Decoder(Fault).decode


class Bounds(NamedTuple):
    """The period that is judged, `start` to `end` (UTC epoch ms). `patience` (ms) is the accepted lateness.

    Firings are counted from `counted` on: the previous audit has counted earlier ones.
    """

    start: int
    end: int
    patience: int
    counted: int = 0

    @property
    def first_read(self) -> int:
        """The instant from which targets are read: firings in the history since `start` were recorded after it."""
        return max(0, self.start - LAG_MS)

    def hold(self, instant: int) -> bool:
        return self.start <= instant <= self.end

    def count(self, instant: int) -> bool:
        return max(self.start, self.counted) <= instant <= self.end


class Horizon(NamedTuple):
    """The instant (UTC epoch ms) since which a topic surely has all records written to it; None: unknown.

    `history` has it for those partitions of the history that have lost their beginning; of how many, if that is known.
    """

    targets: Mapping[str, int | None]
    dead_letters: int | None
    history: Mapping[int, int] | None = None
    history_partitions: int | None = None

    def may_lack_history_of(self, seen: Seen, *, is_forwarded: bool = False) -> bool:
        """Return whether a message may be one that the history told of, in a line that is gone.

        A copy that was made later is none: its record is younger than its header says. One that a delay rule has
        forwarded is younger in any case.
        """
        of = self.history_partitions
        lane = seen.source.partition
        begins = [since for partition, since in (self.history or {}).items() if of is None or partition == lane % of]
        is_in_time = is_forwarded or seen.timestamp <= seen.fired_at + LAG_MS
        return is_in_time and seen.fired_at <= max(begins, default=-LAG_MS - 1) + LAG_MS

    def reaches(self, topic: str | None, instant: int) -> bool:
        start = self.targets.get(topic or "")
        return start is not None and start <= instant


class History(Protocol):
    """Lines of history; `unreadable` counts those that had to be passed over so far."""

    unreadable: int

    def __iter__(self) -> Iterator[HistoryRecord]: ...


class Case(NamedTuple):
    """All records about one schedule of one lane, each kind in the order of its log; `recorded` can be read once.

    `passed_on` are offsets of commands of which another lane has copies, `rejected_elsewhere` is whether other lanes
    have dead letters of commands. `imported` is the schedule as it was pending
    when the application began, or at the end of the previous audit, and `series` its series then.
    """

    asked: Sequence[Command]
    refused: Sequence[Refused]
    recorded: History
    messages: MessagesByName
    dead_letters: DeadLetters
    commands_topic: str
    passed_on: AbstractSet[int] = frozenset()
    whole_since: int = 0
    unreadable: int = 0
    imported: Entry | None = None
    series: Series | None = None
    rejected_elsewhere: bool = False


class Verdict(NamedTuple):
    """The verdict on a schedule: faults, deliveries, counts, and the last command of its tenant in the lane that was
    surely handled.

    `standing` is all that the next audit needs of the schedule; None: it needs all records.
    """

    faults: Sequence[Fault]
    deliveries: Deliveries
    counts: Counter[str]
    handled: int | None
    standing: Standing | None = None


def judge(
    case: Case,
    rules: FiringRules,
    bounds: Bounds,
    horizon: Horizon,
    stops: Stops = NEVER_STOPPED,
    forwarding: Forwarding = NOWHERE,
) -> Verdict:
    """Judge one schedule: line by line of its history, and then what is left of the rest.

    `stops` are those of its tenant, `forwarding` is what delay rules do.
    """
    replay = _replay_of(case, rules)
    course = Course(case.asked, case.refused, case.series)
    comparison = _Comparison(case, bounds, horizon, stops, forwarding)
    for recorded in case.recorded:
        course.take(recorded.event)
        replay.take(recorded)
        comparison.take(replay.found())
    replay.end(bounds.end, bounds.patience, stops)
    comparison.take(replay.found())
    comparison.end(replay.endings)
    counts = comparison.counts + Counter(unreadable=case.unreadable + case.recorded.unreadable)
    last_at = max(course.last_at, case.dead_letters.last_at, comparison.last_fault_at)
    is_open = bool(case.passed_on) or last_at > bounds.end
    standing = None if is_open else standing_of(replay, course)
    return Verdict(comparison.faults, comparison.deliveries, counts, replay.handled, standing)


def _replay_of(case: Case, rules: FiringRules) -> Replay:
    rejected = {letter.offset for letter in case.dead_letters.rejected}
    return Replay(
        AskedOf(case.commands_topic, case.asked, case.refused, rejected, case.passed_on, case.rejected_elsewhere),
        rules,
        messages=case.messages,
        whole_since=case.whole_since,
        imported=case.imported,
    )


class _Comparison:
    """Holds what is promised against what is there, promise by promise."""

    def __init__(self, case: Case, bounds: Bounds, horizon: Horizon, stops: Stops, forwarding: Forwarding) -> None:
        self._messages = case.messages
        self._dead_letters = case.dead_letters
        self._topic = case.commands_topic
        self._bounds = bounds
        self._horizon = horizon
        self._stops = stops
        self._forwarding = forwarding
        self.faults: LongList[Fault] = LongList(_encode, _decode_fault)
        self.last_fault_at = -1
        """The latest instant (UTC epoch ms) of all faults, those outside of the bounds too; -1: there are none."""
        self.deliveries = Deliveries()
        self.counts: Counter[str] = Counter()

    def take(self, found: Explained) -> None:
        """Compare what the replay has found."""
        self._tell(found.faults)
        self.counts["unjudged"] += sum(map(self._bounds.count, found.unjudged))
        for promise in found.promises:
            topic = promise.recorded.event.target_topic
            # What a delay rule has forwarded is not what was promised, though it says so.
            there = [
                seen
                for seen in self._messages.promised(promise.name, topic)
                if not self._forwarding.leads(topic, seen.place.topic)
            ]
            if promise.recorded.event.event is EventType.FIRED:
                self._fired(promise, there)
            if promise.cause is not None:
                self._dead_lettered(promise, promise.cause)

    def end(self, endings: Sequence[Ending]) -> None:
        """Find what nothing promised."""
        for seen, promised_to in self._messages.left():
            topic = seen.place.topic
            if any(self._forwarding.leads(source, topic) for source in promised_to):
                continue
            fault = _surplus(seen, endings, is_promised=bool(promised_to))
            is_forwarded = self._forwarding.leads_to(topic)
            if fault.kind is FaultKind.UNEXPECTED and self._horizon.may_lack_history_of(
                seen, is_forwarded=is_forwarded
            ):
                self.counts["unjudged"] += self._bounds.count(seen.fired_at)
            else:
                self._tell([fault])

    def _fired(self, promise: Promise, there: Sequence[Seen]) -> None:
        event, place = promise.recorded
        if found := _candidates(promise, there, self._horizon):
            # Of several, the one that was promised: a copy elsewhere is what is wrong, not the genuine message.
            seen = min(found, key=lambda each: len(_compared(promise, each, self._topic)))
            self._messages.take(seen)
            late = None if promise.ready_at is None else self._waited(promise.ready_at, event.at)
            self._tell(_compared(promise, seen, self._topic))
            if late is not None and late > self._bounds.patience:
                self._tell([_fault(FaultKind.LATE, seen, f"{late} ms after nothing else was in its way")])
            if self._bounds.count(event.at):
                self.deliveries.add(event.at, late)
        elif self._horizon.reaches(event.target_topic, event.at):
            detail = f"history tells that it was delivered, and it is not in {event.target_topic}"
            self._tell([Fault(FaultKind.MISSING, event.due, event.at, place, detail)])
        elif self._bounds.count(event.at):
            self.counts["unjudged"] += 1

    def _waited(self, ready_at: int, at: int) -> int:
        """Return for how many ms only the scheduler held a firing up."""
        return at - ready_at - self._stops.between(ready_at, at)

    def _dead_lettered(self, promise: Promise, cause: DeadLetterCause) -> None:
        """Find a firing that is a dead letter according to the history."""
        event, place = promise.recorded
        since = self._horizon.dead_letters
        if not self._dead_letters.take(cause, event.due) and since is not None and since <= event.at:
            detail = f"history tells {event.event}, and it is not among the dead letters"
            self._tell([Fault(FaultKind.MISSING, event.due, event.at, place, detail)])

    def _tell(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.last_fault_at = max(self.last_fault_at, fault.at)
            if self._bounds.hold(fault.at):
                self.faults.append(fault)


def _candidates(promise: Promise, found: Sequence[Seen], horizon: Horizon) -> Sequence[Seen]:
    """Return the messages, of those of its name, that may be the promised one.

    If the promised one may be older than the records read of its topic, a message recorded much later is a copy of it.
    """
    event = promise.recorded.event
    if not found or horizon.reaches(event.target_topic, event.at):
        return found
    return [seen for seen in found if seen.timestamp <= event.at + LAG_MS]


def _compared(promise: Promise, seen: Seen, commands_topic: str) -> list[Fault]:
    """Hold a message against what was promised."""
    faults = []
    if seen.early > 0:
        faults.append(_fault(FaultKind.EARLY, seen, f"{seen.early} ms before it was due"))
    differing = [name for name, is_same in _parts(promise, seen, commands_topic) if not is_same]
    if differing:
        faults.append(_fault(FaultKind.ALTERED, seen, f"not as promised: {', '.join(differing)}"))
    return faults


def _parts(promise: Promise, seen: Seen, commands_topic: str) -> Iterable[tuple[str, bool]]:
    event = promise.recorded.event
    yield "topic", event.target_topic == seen.place.topic
    if seen.fired_at >= seen.due:  # else it is early, which says more
        yield "header schedule-fired-at", seen.fired_at == event.at
    if promise.subject is None:
        return
    schedule, progress = promise.subject.schedule, promise.subject.progress
    target = schedule.target
    yield "key", seen.key == target.key
    yield "payload", seen.payload == schedule.payload
    yield "headers", seen.headers == (schedule.headers[0][1] if schedule.headers else None)
    yield "partition", target.partition in (None, seen.place.partition)
    yield "source headers", seen.source == (commands_topic, schedule.source_partition, schedule.source_offset)
    yield "header schedule-firing-id", seen.has_own_firing_id
    yield "header schedule-original-due", seen.original_due == progress.first_due
    yield "header schedule-key", seen.told_key in (told_key(schedule), None)  # which older versions did without
    named = delivery_id(seen.source, seen.version, seen.sequence, seen.due, seen.attempt)
    yield "header schedule-delivery-id", seen.delivery_id in (named, None)  # it is not in messages of older versions


def _surplus(seen: Seen, endings: Sequence[Ending], *, is_promised: bool) -> Fault:
    """Return the fault of a message without a history event."""
    if is_promised:  # a copy has the headers of the genuine message, so its record says when it was made
        return Fault(FaultKind.DUPLICATE, seen.due, seen.timestamp, seen.place, "history tells it once")
    before = [ending for ending in endings if ending.at <= seen.fired_at and ending.version >= seen.version]
    if before and before[-1].event is EventType.CANCELLED:
        return _fault(FaultKind.AFTER_CANCEL, seen, f"cancelled at {before[-1].at}")
    if before:
        return _fault(FaultKind.SUPERSEDED, seen, f"version {seen.version} was replaced at {before[0].at}")
    if seen.early > 0:
        return _fault(FaultKind.EARLY, seen, f"{seen.early} ms before it was due, and history does not tell it")
    return _fault(FaultKind.UNEXPECTED, seen, "history does not tell it")


def _fault(kind: FaultKind, seen: Seen, detail: str) -> Fault:
    return Fault(kind, seen.due, seen.fired_at, seen.place, detail)
