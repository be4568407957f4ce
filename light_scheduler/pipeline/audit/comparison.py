"""What is promised to a schedule, held against its messages and dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from light_scheduler.model import DeadLetterCause, EventType, delivery_id
from light_scheduler.pipeline.lag import LAG_MS
from light_scheduler.wire.firing import told_key

from .bounds import Bounds, Horizon
from .case import Case
from .deliveries import Deliveries
from .faults import Fault, FaultKind, RecordId
from .forwarding import Forwarding
from .found import Seen
from .lane_order import CarriedOut, PassedOver
from .overflow import LongList
from .promises import Ending, Promise, asked_by
from .replay import Explained
from .stops import Stops
from .traced import Sought

_encode = msgspec.msgpack.Encoder().encode
_decode_fault = msgspec.msgpack.Decoder(Fault).decode
_decode_sought = msgspec.msgpack.Decoder(Sought).decode
_decode_carried_out = msgspec.msgpack.Decoder(CarriedOut).decode
_decode_passed_over = msgspec.msgpack.Decoder(PassedOver).decode


class Comparison:
    """Holds what is promised against what is there, promise by promise."""

    def __init__(self, case: Case, bounds: Bounds, horizon: Horizon, stops: Stops, forwarding: Forwarding) -> None:
        self._messages = case.messages
        self._dead_letters = case.dead_letters
        self._topic = case.commands_topic
        self._is_unknown = case.is_unknown
        self._bounds = bounds
        self._horizon = horizon
        self._stops = stops
        self._forwarding = forwarding
        self.faults: LongList[Fault] = LongList(_encode, _decode_fault)
        self.last_at = -1
        """The latest instant (UTC epoch ms) of what nothing explains, also outside of the bounds; -1: there is none."""
        self.sought: LongList[Sought] = LongList(_encode, _decode_sought)
        self.carried_out: LongList[CarriedOut] = LongList(_encode, _decode_carried_out)
        self.passed_over: LongList[PassedOver] = LongList(_encode, _decode_passed_over)
        self.deliveries = Deliveries()
        self.counts: Counter[str] = Counter()

    def take(self, found: Explained) -> None:
        """Compare what the replay has found."""
        self._tell(found.faults)
        self.carried_out.extend(found.carried_out)
        self.passed_over.extend(each for each in found.passed_over if self._bounds.hold(each.recorded_at))
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
        elif self._horizon.reaches(event.target_topic, event.at) and not self._is_unknown:
            self._tell([missing(event.due, event.at, place, event.target_topic, self._asked_by(promise))])
        else:
            self.counts["unjudged"] += self._bounds.count(event.at)

    def _waited(self, ready_at: int, at: int) -> int:
        """Return for how many ms only the scheduler held a firing up."""
        return at - ready_at - self._stops.between(ready_at, at)

    def _dead_lettered(self, promise: Promise, cause: DeadLetterCause) -> None:
        """Find a firing that is a dead letter according to the history."""
        event, place = promise.recorded
        since = self._horizon.dead_letters
        if not self._dead_letters.take(cause, event.due) and since is not None and since <= event.at:
            detail = f"history tells {event.event}, and it is not among the dead letters"
            asked = self._asked_by(promise)
            self._tell([Fault(FaultKind.MISSING, event.due, event.at, place, detail, asked_by=asked)])

    def _asked_by(self, promise: Promise) -> RecordId | None:
        return None if promise.subject is None else asked_by(promise.subject, self._topic)

    def _tell(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.last_at = max(self.last_at, fault.at)
            if self._bounds.hold(fault.at):
                self.faults.append(fault)


def missing(due: int | None, at: int, place: RecordId, topic: str | None, asked: RecordId | None) -> Fault:
    """Return the fault of a firing that a line of history at a place tells of, and that is not in its topic."""
    detail = f"history tells that it was delivered, and it is not in {topic}"
    return Fault(FaultKind.MISSING, due, at, place, detail, asked_by=asked)


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
