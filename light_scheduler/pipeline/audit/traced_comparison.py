"""Compares the firings of a schedule in another scheduler's dialect with its messages.

The history identifies a firing by due time and version, which these messages do not have. But the dialect defines the
message of a firing byte for byte, so firings are matched by content. If a firing has no such message, the nearest
message with another content counts as its altered message. Any other message without a firing is a surplus.

The other scheduler may have delivered the same kind of messages to the same topics, before light-scheduler replaced
it. So messages older than the first line of history about their schedule are no faults.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from light_scheduler.model import Entry, EventType
from light_scheduler.pipeline.lag import LAG_MS

from .bounds import Bounds, Horizon
from .case import Case
from .comparison import Comparison, missing
from .evidence import content_of
from .faults import Fault, FaultKind, RecordId
from .forwarding import Forwarding
from .found import Seen
from .overflow import LongList
from .owners import OtherDialects
from .promises import Ending, Promise
from .standing import Course
from .stops import Stops
from .traced import Content, LeftTraced, Sought, TracedMessage, TracedMessages

MOST_PAIRED = 10_000
"""Maximum number of messages of a schedule that are considered as altered ones."""


class _Firing(NamedTuple):
    """A firing in the history (at `place`), and the message expected for it.

    `late` is in ms, `due` and `at` are UTC epoch ms.
    """

    due: int | None
    at: int
    place: RecordId
    topic: str
    partition: int | None
    content: Content
    late: int | None

    def differing(self, message: TracedMessage) -> list[str]:
        """Return the names of the parts in which a message differs from the expected one."""
        parts = {
            "topic": message.place.topic == self.topic,
            "key": message.content.key == self.content.key,
            "payload": message.content.payload == self.content.payload,
            "headers": message.content.headers == self.content.headers,
            "partition": self.partition in (None, message.place.partition),
        }
        return [name for name, is_same in parts.items() if not is_same]

    def unlikeness(self, message: TracedMessage) -> tuple[int, int]:
        """Return a sort key: the lowest is the most likely message of the firing."""
        return len(self.differing(message)), message.distance(self.at)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Firing).decode


class TracedComparison(Comparison):
    """Compares firings with messages in other schedulers' dialects, and then what is left over of both."""

    def __init__(
        self,
        case: Case,
        bounds: Bounds,
        horizon: Horizon,
        stops: Stops,
        forwarding: Forwarding,
        others: OtherDialects,
        course: Course,
    ) -> None:
        super().__init__(case, bounds, horizon, stops, forwarding)
        self._traced = case.traced or TracedMessages()
        self._dialect = case.dialect
        self._others = others
        self._course = course
        self._accepted_at = None if case.imported is None else case.imported.schedule.accepted_at
        self._not_found: LongList[_Firing] = LongList(_encode, _decode)
        self._promised_to: set[str | None] = set()
        self._is_lost = case.is_unknown
        self._lost = 0
        """Number of firings whose messages are not known, so they cannot be matched."""

    def end(self, endings: Sequence[Ending]) -> None:
        super().end(endings)
        self._pair()
        for left in self._traced.left():
            if not self._is_forwarded(left.message):
                self._judge_left(left, endings)

    def _fired(self, promise: Promise, there: Sequence[Seen]) -> None:
        if self._dialect is None:
            super()._fired(promise, there)
            return
        event, place = promise.recorded
        self._promised_to.add(event.target_topic)
        if promise.subject is None or event.target_topic is None:
            self._is_lost = True
            self._lost += 1
            return
        late = None if promise.ready_at is None else self._waited(promise.ready_at, event.at)
        subject, target = promise.subject, promise.subject.schedule.target
        payload, headers = self._dialect.delivered(subject, event.at, self._topic.encode())
        content = content_of(target.key, payload, headers)
        firing = _Firing(event.due, event.at, place, event.target_topic, target.partition, content, late)
        owner = self._others.owner(target.key, payload, headers)
        if owner is None or (owner.tenant, owner.id) != _whose(subject) or self._topic not in owner.topics:
            self._seek(firing)
        elif there_now := self._candidates(firing):
            self._found(firing, min(there_now, key=firing.unlikeness))
        else:
            self._not_found.append(firing)

    def _candidates(self, firing: _Firing) -> list[TracedMessage]:
        """Return the messages that may belong to a firing."""
        reaches = self._horizon.reaches(firing.topic, firing.at)
        return [
            message
            for message in self._traced.promised(firing.content, firing.due)
            if not self._forwarding.leads(firing.topic, message.place.topic)
            if reaches or message.timestamp <= firing.at + LAG_MS
        ]

    def _found(self, firing: _Firing, message: TracedMessage) -> None:
        self._traced.take(message)
        if firing.due is not None and message.timestamp < firing.due:
            early = f"{firing.due - message.timestamp} ms before it was due"
            self._tell([Fault(FaultKind.EARLY, firing.due, message.timestamp, message.place, early)])
        if differing := firing.differing(message):
            altered = f"not as promised: {', '.join(differing)}"
            self._tell([Fault(FaultKind.ALTERED, firing.due, firing.at, message.place, altered)])
        self._count(firing, message.place)

    def _count(self, firing: _Firing, place: RecordId) -> None:
        """Count a delivered firing, and report it if it was late."""
        late = firing.late
        if late is not None and late > self._bounds.patience:
            detail = f"{late} ms after nothing else was in its way"
            self._tell([Fault(FaultKind.LATE, firing.due, firing.at, place, detail)])
        if self._bounds.count(firing.at):
            self.deliveries.add(firing.at, late)

    def _seek(self, firing: _Firing) -> None:
        """Look for the message of a firing in the whole topic (see `seeking`): it does not name its schedule."""
        self._count(firing, firing.place)
        if self._bounds.count(firing.at):
            self.counts["untraced"] += 1
            if self._horizon.reaches(firing.topic, firing.at):
                self.sought.append(Sought(firing.topic, firing.content.digest, firing.due, firing.at, firing.place))
            else:
                self.counts["unjudged"] += 1

    # -- what is left -------------------------------------------------------------------------------------------------

    def _pair(self) -> None:
        """Match each firing without a message to a message that may be its altered one."""
        if not self._not_found:
            return
        strange = (
            left.message for left in self._traced.left() if not (left.is_promised or self._is_forwarded(left.message))
        )
        messages = sorted(islice(strange, MOST_PAIRED), key=lambda message: message.timestamp)
        for firing in self._not_found:
            message = _nearest(firing, messages)
            if message is not None:
                messages.remove(message)
                self._found(firing, message)
            elif self._horizon.reaches(firing.topic, firing.at):
                self._tell([missing(firing.due, firing.at, firing.place, firing.topic)])
            else:
                self.counts["unjudged"] += self._bounds.count(firing.at)

    def _judge_left(self, left: LeftTraced, endings: Sequence[Ending]) -> None:
        message = left.message
        if self._lost:  # its line is counted
            self._lost -= 1
        elif self._is_lost:
            self.counts["unjudged"] += self._bounds.count(message.timestamp)
        elif not self._is_known_at(message.timestamp):
            self.last_at = max(self.last_at, message.timestamp)
            self.counts["unclaimed"] += self._bounds.count(message.timestamp)
        else:
            fault = _surplus(left, endings)
            if fault.kind is FaultKind.UNEXPECTED and self._horizon.may_lack_lines(None, message.timestamp):
                self.counts["unjudged"] += self._bounds.count(message.timestamp)
            else:
                self._tell([fault])

    def _is_known_at(self, instant: int) -> bool:
        """Return whether light-scheduler, not the scheduler before it, had the schedule at an instant.

        This is always so after the previous audit.
        """
        told = [at for at in (self._accepted_at, self._course.first_at) if at is not None]
        return (bool(told) and min(told) <= instant) or 0 < self._bounds.counted <= instant

    def _is_forwarded(self, message: TracedMessage) -> bool:
        return any(self._forwarding.leads(topic, message.place.topic) for topic in self._promised_to)


def _whose(entry: Entry) -> tuple[str, str]:
    return entry.schedule.tenant, entry.schedule.id


def _nearest(firing: _Firing, messages: Sequence[TracedMessage]) -> TracedMessage | None:
    """Return the message in a firing's topic that is nearest to it in time; `messages` are sorted by time."""
    place = bisect_left(messages, firing.at - LAG_MS, key=lambda message: message.timestamp)
    near = []
    for message in messages[place:]:
        if message.timestamp > firing.at + LAG_MS:
            break
        if message.place.topic == firing.topic:
            near.append(message)
    return min(near, key=lambda message: message.distance(firing.at), default=None)


def _surplus(left: LeftTraced, endings: Sequence[Ending]) -> Fault:
    """Return the fault of a surplus message."""
    message = left.message
    at, place = message.timestamp, message.place
    if left.is_promised:
        return Fault(FaultKind.DUPLICATE, left.due, at, place, "history tells it once")
    before = [ending for ending in endings if ending.at <= at]
    if before and before[-1].event is EventType.CANCELLED:
        return Fault(FaultKind.AFTER_CANCEL, None, at, place, f"cancelled at {before[-1].at}")
    if before:
        return Fault(FaultKind.SUPERSEDED, None, at, place, f"replaced at {before[-1].at}")
    return Fault(FaultKind.UNEXPECTED, None, at, place, "history does not tell it")
