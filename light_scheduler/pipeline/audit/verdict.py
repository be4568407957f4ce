"""One schedule's verdict: what was promised against what is in the target topics and among the dead letters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import NamedTuple

from light_scheduler.engine import FiringRules
from light_scheduler.model import DeadLetterCause, Entry, EventType, delivery_id
from light_scheduler.pipeline.lag import LAG_MS

from .faults import Fault, FaultKind, RecordId
from .orders import AskedOf
from .promises import Asked, Ending, HistoryRecord, Name, Promise
from .replay import Replay
from .standing import Series, Standing, standing_of


class Seen(NamedTuple):
    """A message in a target topic. `payload` and `headers` are digests, those of the user; `timestamp` is its record's
    (UTC epoch ms). `has_own_firing_id`: its header `schedule-firing-id` is that of its id and time.
    """

    place: RecordId
    timestamp: int
    due: int
    attempt: int
    version: int
    sequence: int
    fired_at: int
    source: RecordId
    original_due: int | None
    delivery_id: str | None
    has_own_firing_id: bool
    key: bytes | None
    payload: bytes | None
    headers: bytes

    @property
    def name(self) -> Name:
        return self.due, self.attempt, self.version, self.sequence

    @property
    def early(self) -> int:
        """How many ms before it was due it was delivered; not above 0: it was not."""
        return self.due - min(self.fired_at, self.timestamp)


class FoundDeadLetter(NamedTuple):
    """A dead letter; `offset` is that of the command that it comes from."""

    place: RecordId
    cause: DeadLetterCause
    at: int
    due: int | None
    offset: int


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
    """The instant (UTC epoch ms) since which a topic surely has all records written to it; None: unknown."""

    targets: Mapping[str, int | None]
    dead_letters: int | None

    def reaches(self, topic: str | None, instant: int) -> bool:
        start = self.targets.get(topic or "")
        return start is not None and start <= instant


class Case(NamedTuple):
    """All records about one schedule of one lane, each kind in the order of its log.

    `passed_on` are offsets of commands of which another lane has copies. `imported` is the schedule as it was pending
    when the application began, or at the end of the previous audit, and `series` its series then.
    """

    asked: Sequence[Asked]
    recorded: Sequence[HistoryRecord]
    seen: Sequence[Seen]
    dead_letters: Sequence[FoundDeadLetter]
    commands_topic: str
    passed_on: AbstractSet[int] = frozenset()
    whole_since: int = 0
    unreadable: int = 0
    imported: Entry | None = None
    series: Series | None = None


class KeptPromise(NamedTuple):
    """A firing that was promised and delivered. `late` is how many ms later than possible, if known."""

    promise: Promise
    late: int | None


class Verdict(NamedTuple):
    """The verdict on a schedule: faults, deliveries, counts, and the last command of the lane that was surely handled.

    `standing` is all that the next audit needs of the schedule; None: it needs all records.
    """

    faults: list[Fault]
    deliveries: list[KeptPromise]
    counts: Counter[str]
    handled: int | None
    standing: Standing | None = None


def judge(case: Case, rules: FiringRules, bounds: Bounds, horizon: Horizon) -> Verdict:
    """Judge one schedule."""
    spare: dict[Name, list[Seen]] = defaultdict(list)
    for seen in case.seen:
        spare[seen.name].append(seen)
    replay = _replayed(case, rules, bounds, spare)
    faults = list(replay.faults)
    deliveries: list[KeptPromise] = []
    counts: Counter[str] = Counter(unjudged=sum(map(bounds.count, replay.unjudged)))
    for promise in replay.promises:
        event, place = promise.recorded
        if event.event is not EventType.FIRED:
            continue
        if found := _candidates(promise, spare, horizon):
            # Of several, the one that was promised: a copy elsewhere is what is wrong, not the genuine message.
            seen = min(found, key=lambda each: len(_compared(promise, each, case.commands_topic)))
            spare[promise.name].remove(seen)
            late = None if promise.ready_at is None else event.at - promise.ready_at
            faults += _compared(promise, seen, case.commands_topic)
            if late is not None and late > bounds.patience:
                faults.append(_fault(FaultKind.LATE, seen, f"{late} ms after nothing else was in its way"))
            if bounds.count(event.at):
                deliveries.append(KeptPromise(promise, late))
        elif horizon.reaches(event.target_topic, event.at):
            detail = f"history tells that it was delivered, and it is not in {event.target_topic}"
            faults.append(Fault(FaultKind.MISSING, event.due, event.at, place, detail))
        elif bounds.count(event.at):
            counts["unjudged"] += 1
    promised = {promise.name for promise in replay.promises}
    faults += [_surplus(seen, promised, replay.endings) for found in spare.values() for seen in found]
    faults += _missing_dead_letters(replay.promises, case.dead_letters, horizon)
    standing = _standing(case, replay, bounds, faults)
    return Verdict([fault for fault in faults if bounds.hold(fault.at)], deliveries, counts, replay.handled, standing)


def _standing(case: Case, replay: Replay, bounds: Bounds, faults: Iterable[Fault]) -> Standing | None:
    """Return the standing of a schedule, if all its records have been judged."""
    recorded = (event.at for event, _ in case.recorded)
    instants = chain(recorded, (letter.at for letter in case.dead_letters), (fault.at for fault in faults))
    if case.passed_on or any(instant > bounds.end for instant in instants):
        return None
    return standing_of(replay, case.asked, case.recorded, case.series)


def _replayed(case: Case, rules: FiringRules, bounds: Bounds, seen: Mapping[Name, Sequence[Seen]]) -> Replay:
    rejected = {letter.offset for letter in case.dead_letters if letter.cause is DeadLetterCause.REJECTED}
    replay = Replay(
        AskedOf(case.commands_topic, case.asked, rejected, case.passed_on),
        rules,
        sources={name: [each.source.offset for each in found] for name, found in seen.items()},
        whole_since=case.whole_since,
        imported=case.imported,
    )
    for recorded in case.recorded:
        replay.take(recorded)
    replay.end(bounds.end, bounds.patience)
    return replay


def _candidates(promise: Promise, spare: Mapping[Name, Sequence[Seen]], horizon: Horizon) -> Sequence[Seen]:
    """Return the messages that may be the promised one.

    If the promised one may be older than the records read of its topic, a message recorded much later is a copy of it.
    """
    event, found = promise.recorded.event, spare.get(promise.name, ())
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
    named = delivery_id(seen.source, seen.version, seen.sequence, seen.due, seen.attempt)
    yield "header schedule-delivery-id", seen.delivery_id in (named, None)  # it is not in messages of older versions


def _surplus(seen: Seen, promised: set[Name], endings: Sequence[Ending]) -> Fault:
    """Return the fault of a message without a history event."""
    if seen.name in promised:  # a copy has the headers of the genuine message, so its record says when it was made
        return Fault(FaultKind.DUPLICATE, seen.due, seen.timestamp, seen.place, "history tells it once")
    before = [ending for ending in endings if ending.at <= seen.fired_at and ending.version >= seen.version]
    if before and before[-1].event is EventType.CANCELLED:
        return _fault(FaultKind.AFTER_CANCEL, seen, f"cancelled at {before[-1].at}")
    if before:
        return _fault(FaultKind.SUPERSEDED, seen, f"version {seen.version} was replaced at {before[0].at}")
    if seen.early > 0:
        return _fault(FaultKind.EARLY, seen, f"{seen.early} ms before it was due, and history does not tell it")
    return _fault(FaultKind.UNEXPECTED, seen, "history does not tell it")


def _missing_dead_letters(
    promises: Iterable[Promise], dead_letters: Iterable[FoundDeadLetter], horizon: Horizon
) -> list[Fault]:
    """Find firings that are dead letters according to the history, but not in the topic."""
    there = Counter((letter.cause, letter.due) for letter in dead_letters)
    faults = []
    for promise in promises:
        event, place = promise.recorded
        if promise.cause is None:
            continue
        if there[promise.cause, event.due] > 0:
            there[promise.cause, event.due] -= 1
        elif horizon.dead_letters is not None and horizon.dead_letters <= event.at:
            detail = f"history tells {event.event}, and it is not among the dead letters"
            faults.append(Fault(FaultKind.MISSING, event.due, event.at, place, detail))
    return faults


def _fault(kind: FaultKind, seen: Seen, detail: str) -> Fault:
    return Fault(kind, seen.due, seen.fired_at, seen.place, detail)
