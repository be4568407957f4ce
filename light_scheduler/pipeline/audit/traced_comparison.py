"""Compares the firings of a schedule in another scheduler's dialect with its messages.

The history identifies a firing by due time and version, which these messages do not have. But the dialect defines the
message of a firing byte for byte, so firings are matched by content, and if several have the same content, by time:

1. A worker gives the message of a firing the instant of its line in the history as timestamp.
2. If the broker has set the timestamp, firings and messages are paired in their order (`pairing`), and may be up to
   LAG_MS apart. So are those of a content that only one line promises. A message that was surely written after all
   lines of the history that was read is that of a later one, and left to the next audit.
3. Of what is left then, the nearest message with another content counts as the altered message of a firing.

Any other message without a firing is a surplus.

The other scheduler may have delivered the same kind of messages to the same topics, before light-scheduler replaced
it. So in a topic that is read for the first time, messages older than the first line of history about their schedule
are no faults.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
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
from .overflow import LongSorted
from .owners import OtherDialects
from .pairing import Group, Lacking, Pairing, Span, Windows
from .promises import Ending, Promise
from .standing import Course
from .stops import Stops
from .traced import Content, Promised, Sought, TracedMessage, TracedMessages

MOST_PAIRED = 10_000
"""Maximum number of messages of a schedule that are considered as altered ones."""

_FOREVER = 1 << 62


class _Firing(NamedTuple):
    """A firing in the history (at `place`), and the message expected for it. `digest` is that of its content.

    `late` is in ms, `due` and `at` are UTC epoch ms; `asked_by` is as in a fault.
    """

    due: int | None
    at: int
    place: RecordId
    topic: str
    partition: int | None
    content: Content
    digest: bytes
    late: int | None
    asked_by: RecordId | None

    def differing(self, message: TracedMessage) -> list[str]:
        """Return the names of the parts in which a message differs from the expected one."""
        parts = {
            "topic": message.place.topic == self.topic,
            "key": message.content.key == self.content.key,
            "payload": message.content.payload == self.content.payload,
            "headers": message.content.headers == self.content.headers,
            "partition": self.is_in_partition(message),
        }
        return [name for name, is_same in parts.items() if not is_same]

    def is_in_partition(self, message: TracedMessage) -> bool:
        return self.partition in (None, message.place.partition)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Firing).decode
_decode_message = msgspec.msgpack.Decoder(TracedMessage).decode


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
        self._is_commanded = bool(case.asked or case.refused)
        self._accepted_at = None if case.imported is None else case.imported.schedule.accepted_at
        self._not_found = LongSorted(_encode, _decode, lambda each: (each.digest, each.topic, max(0, each.at)))
        self._promised_to: set[str | None] = set()
        self._is_lost = case.is_unknown
        self._lost = 0
        """Number of firings whose messages are not known, so they cannot be matched."""

    def end(self, endings: Sequence[Ending]) -> None:
        super().end(endings)
        for message in self._without_altered(*self._without_equal()):
            if not self._is_forwarded(message):
                self._judge_left(message, endings)

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
        found_in = event.target_topic, target.partition
        firing = _Firing(event.due, event.at, place, *found_in, content, content.digest, late, self._asked_by(promise))
        owner = self._others.owner(target.key, payload, headers)
        if owner is None or (owner.tenant, owner.id) != _whose(subject) or self._topic not in owner.topics:
            self._seek(firing)
            return
        self._traced.promise(firing.digest, firing.due)
        message = self._traced.take(firing.digest, firing.topic, firing.at, firing.partition)
        if message is not None:
            self._found(firing, message)
        else:
            self._not_found.add(firing)

    def _found(self, firing: _Firing, message: TracedMessage) -> None:
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
                what = firing.topic, firing.digest
                self.sought.append(Sought(*what, firing.due, firing.at, firing.place, firing.asked_by))
            else:
                self.counts["unjudged"] += 1

    # -- what is left -------------------------------------------------------------------------------------------------

    def _without_equal(self) -> tuple[LongSorted[_Firing], LongSorted[TracedMessage]]:
        """Pair firings with messages of the same content, first in their topic, then in any; return what is left."""
        in_topic = Pairing(_in_topic, _of_topic, self._windows, _Firing.is_in_partition)
        firings = LongSorted(_encode, _decode, lambda each: (each.digest, max(0, each.at)))
        messages = LongSorted(_encode, _decode_message, lambda each: (each.content.digest, max(0, each.timestamp)))
        self._pair(in_topic.of(self._not_found, self._written()), firings, messages)
        anywhere = Pairing(_anywhere, _of_any_topic, self._windows, self._may_be_elsewhere)
        firings_left = LongSorted(_encode, _decode, lambda each: (max(0, each.at),))
        messages_left = LongSorted(_encode, _decode_message, lambda each: (max(0, each.timestamp),))
        self._pair(anywhere.of(firings, messages), firings_left, messages_left)
        return firings_left, messages_left

    def _pair(
        self,
        pairs: Iterable[tuple[_Firing | None, TracedMessage | None]],
        firings: LongSorted[_Firing],
        messages: LongSorted[TracedMessage],
    ) -> None:
        """Judge firings with their messages, and add what is alone to the `firings` and `messages` that are left."""
        lacking, content = Lacking(_at, self._may_have), None
        for firing, message in pairs:
            if firing is None:
                assert message is not None, "one of both is there"
                messages.add(message)
                continue
            if firing.digest != content:
                lacking.reset()
                content = firing.digest
            if message is None:
                firings.add(lacking.of(firing) if self._must_have_message(firing) else firing)
                continue
            self._found(firing, message)
            if message.by_sender:
                lacking.reset()
            else:
                lacking.pair(firing, message)

    def _written(self) -> Iterator[TracedMessage]:
        """Yield the messages that were not taken and may be those of the history that was read."""
        for message in self._traced.left():
            is_promised = self._traced.promised(message.content.digest).number
            if is_promised and not message.by_sender and self._bounds.is_of_later_line(message.place):
                self.last_at = max(self.last_at, self._bounds.end + 1)
            else:
                yield message

    def _must_have_message(self, firing: _Firing) -> bool:
        """Return whether the message of a firing would surely have been read."""
        return firing.at <= self._bounds.end or firing.topic in self._bounds.written

    def _may_have(self, firing: _Firing, message: TracedMessage) -> bool:
        window = self._windows(firing).broker
        is_in_time = window.earliest <= message.timestamp <= window.latest
        return is_in_time and firing.is_in_partition(message) and firing.topic == message.place.topic

    def _windows(self, firing: _Firing) -> Windows:
        """Return when the message of a firing that has no message of its instant may have been written."""
        earliest, latest = firing.at - LAG_MS, firing.at + LAG_MS
        if self._traced.promised(firing.digest).number > 1:
            return Windows(Span(firing.at, firing.at), Span(earliest, latest))
        # It is the only one. What was sent after the end may be of a line that is not in the history yet.
        latest = _FOREVER if self._horizon.reaches(firing.topic, firing.at) else latest
        return Windows(Span(earliest, min(latest, max(firing.at, self._bounds.end))), Span(earliest, latest))

    def _may_be_elsewhere(self, firing: _Firing, message: TracedMessage) -> bool:
        return not self._forwarding.leads(firing.topic, message.place.topic)

    def _without_altered(
        self, firings: LongSorted[_Firing], messages: LongSorted[TracedMessage]
    ) -> Iterator[TracedMessage]:
        """Pair each firing without a message with one that may be its altered one; yield the messages that are left."""
        strange = (message for message in messages if self._may_be_altered(message)) if len(firings) else ()
        candidates, paired = _Candidates(islice(strange, MOST_PAIRED)), set[RecordId]()
        for furthest in (0, LAG_MS):  # a message of its very instant is that of no other firing
            left = LongSorted(_encode, _decode, lambda each: (max(0, each.at),))
            for firing in firings:
                if (message := candidates.take(firing, furthest)) is None:
                    left.add(firing)
                else:
                    paired.add(message.place)
                    self._found(firing, message)
            firings = left
        for firing in firings:
            if self._horizon.reaches(firing.topic, firing.at):
                self._tell([missing(firing.due, firing.at, firing.place, firing.topic, firing.asked_by)])
            else:
                self.counts["unjudged"] += self._bounds.count(firing.at)
        yield from (message for message in messages if message.place not in paired)

    def _may_be_altered(self, message: TracedMessage) -> bool:
        return not self._traced.promised(message.content.digest).number and not self._is_forwarded(message)

    def _judge_left(self, message: TracedMessage, endings: Sequence[Ending]) -> None:
        if self._lost:  # its line is counted
            self._lost -= 1
        elif self._is_lost:
            self.counts["unjudged"] += self._bounds.count(message.timestamp)
        elif not self._is_known(message):
            self.last_at = max(self.last_at, message.timestamp)
            is_first_read = message.place.topic not in self._bounds.read
            is_counted = self._bounds.hold if is_first_read else self._bounds.count
            self.counts["unclaimed"] += is_counted(message.timestamp)
        else:
            fault = _surplus(message, self._traced.promised(message.content.digest), endings)
            if fault.kind is FaultKind.UNEXPECTED and self._horizon.may_lack_lines(None, message.timestamp):
                self.counts["unjudged"] += self._bounds.count(message.timestamp)
            else:
                self._tell([fault])

    def _is_known(self, message: TracedMessage) -> bool:
        """Return whether light-scheduler, not the scheduler before it, had the schedule when a message was sent.

        In a topic that the previous audit has read, this is always so after that audit. It is also so if there is
        nothing but messages, and that audit has not read this one: it became visible later than its timestamp says.
        """
        told = [at for at in (self._accepted_at, self._course.first_at) if at is not None]
        if told and min(told) <= message.timestamp:
            return True
        if message.place.topic not in self._bounds.read:
            return False
        is_alone = not (told or self._is_commanded)
        is_new = is_alone and not self._bounds.have_read(message.place)
        return is_new or self._bounds.counted <= message.timestamp

    def _is_forwarded(self, message: TracedMessage) -> bool:
        return any(self._forwarding.leads(topic, message.place.topic) for topic in self._promised_to)


class _Candidates:
    """Messages that nothing promised, by topic and time."""

    def __init__(self, messages: Iterable[TracedMessage]) -> None:
        """Take messages in the order of their time."""
        self._by_topic: defaultdict[str, list[TracedMessage]] = defaultdict(list)
        for message in messages:
            self._by_topic[message.place.topic].append(message)

    def take(self, firing: _Firing, furthest: int) -> TracedMessage | None:
        """Remove and return the message in a firing's topic that is nearest in time, up to so many ms `furthest`."""
        messages = self._by_topic[firing.topic]
        place = bisect_left(messages, firing.at, key=lambda message: message.timestamp)
        near = [each for each in (place - 1, place) if 0 <= each < len(messages)]
        nearest = min(near, key=lambda each: messages[each].distance(firing.at), default=None)
        if nearest is None or messages[nearest].distance(firing.at) > furthest:
            return None
        return messages.pop(nearest)


def _at(firing: _Firing) -> int:
    return firing.at


def _in_topic(firing: _Firing) -> Group:
    return firing.digest, _encode(firing.topic)


def _of_topic(message: TracedMessage) -> Group:
    return message.content.digest, _encode(message.place.topic)


def _anywhere(firing: _Firing) -> Group:
    return (firing.digest,)


def _of_any_topic(message: TracedMessage) -> Group:
    return (message.content.digest,)


def _whose(entry: Entry) -> tuple[str, str]:
    return entry.schedule.tenant, entry.schedule.id


def _surplus(message: TracedMessage, promised: Promised, endings: Sequence[Ending]) -> Fault:
    """Return the fault of a surplus message."""
    at, place = message.timestamp, message.place
    if promised.number == 1:
        return Fault(FaultKind.DUPLICATE, promised.due, at, place, "history tells it once")
    if promised.number:  # nobody can tell which one it is a copy of
        detail = f"history tells {promised.number} messages with this content, and there are more"
        return Fault(FaultKind.DUPLICATE, None, at, place, detail)
    before = [ending for ending in endings if ending.at <= at]
    if before and before[-1].event is EventType.CANCELLED:
        return Fault(FaultKind.AFTER_CANCEL, None, at, place, f"cancelled at {before[-1].at}")
    if before:
        return Fault(FaultKind.SUPERSEDED, None, at, place, f"replaced at {before[-1].at}")
    return Fault(FaultKind.UNEXPECTED, None, at, place, "history does not tell it")
