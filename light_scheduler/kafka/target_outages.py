"""Unavailable partitions of target topics, and when they are retried.

An unavailable target only affects its own firings: firings wait if their partition has no leader, has too few in-sync
replicas, or does not answer. Each such partition has a circuit breaker:

    closed --the metadata show a fault--> open --they show none any more--> closed
    closed --a send is not answered, and they show no fault--> open --a probe is answered--> closed

A probe is a separate transaction that writes only its marker, so no lane waits for it. If a partition answers probes
but then fails again, the pause doubles each time. A place is a (topic, partition); partition -1 stands for the whole
topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from light_scheduler.model.place import Place

WHOLE_TOPIC = -1
FIRST_WAIT_S, LAST_WAIT_S = 0.5, 30.0
"""Pause for a partition without a known fault: after its first failure, and the maximum after repeated ones."""

MOST_DOUBLINGS = 6
"""Maximum number of doublings of the first pause. LAST_WAIT_S is reached earlier."""

FORGET_S = 60.0
"""After this time without a failure, earlier failures of a partition no longer count."""

SAME_S = 5.0
"""A breaker that opens again within this time continues the same outage."""

MOST_NAMED = 5
"""Maximum number of places in a log line."""

log = logging.getLogger(__name__)


@dataclass
class Outage:
    """An open breaker. `since` is the start of the outage (UTC epoch ms), `probe_at` is monotonic (s)."""

    since: int
    reason: str
    has_known_fault: bool
    probe_at: float
    is_probed: bool = False


@dataclass
class _Past:
    """The number of recent failures of a place, and the time (monotonic, s) of the last one."""

    failures: int
    at: float


@dataclass
class Outages:
    """The open breakers, shared by the lanes of a worker. `changed` is called when held-back firings may be sent."""

    time: Callable[[], float]
    changed: list[Callable[[], None]] = field(default_factory=list)
    _open: dict[Place, Outage] = field(default_factory=dict)
    _past: dict[Place, _Past] = field(default_factory=dict)
    _mended: dict[Place, float] = field(default_factory=dict)  # end (monotonic, s) of a known fault
    _closed: dict[Place, tuple[int, float]] = field(default_factory=dict)  # start (ms) and end (monotonic, s)

    def __bool__(self) -> bool:
        return bool(self._open)

    def __contains__(self, place: Place) -> bool:
        return place in self._open

    def __iter__(self) -> Iterator[tuple[Place, Outage]]:
        return iter(list(self._open.items()))

    @property
    def places(self) -> list[Place]:
        """The places with open breakers."""
        return list(self._open)

    @property
    def topics(self) -> set[str]:
        """Topics with open breakers, whose metadata must be watched."""
        return {topic for topic, _ in self._open}

    def known_faults(self) -> dict[Place, float]:
        """Return places that had a fault in the metadata within the last minute -> end of the fault (monotonic, s)."""
        if not (self._open or self._mended):
            return {}
        now = self.time()
        self._mended = {place: at for place, at in self._mended.items() if now - at < FORGET_S}
        return self._mended | {place: now for place, outage in self._open.items() if outage.has_known_fault}

    def place_held(self, topic: str, partition: int) -> Place | None:
        """Return the place for which a firing to a partition waits; None if it may be sent."""
        if (topic, WHOLE_TOPIC) in self._open:
            return topic, WHOLE_TOPIC
        return (topic, partition) if (topic, partition) in self._open else None

    def of_topic(self, topic: str) -> Outage | None:
        """Return the outage of a whole topic, if there is one."""
        return self._open.get((topic, WHOLE_TOPIC))

    def failures(self, place: Place) -> int:
        """Return the number of recent failures of a place without a fault in the metadata."""
        past = self._past.get(place)
        return past.failures if past is not None and self.time() - past.at < FORGET_S else 0

    def suspect(self, places: Iterable[Place], reason: str, now: int, times: int | None = None) -> None:
        """Open the breakers of places that did not answer, at `now` (UTC epoch ms).

        The pause is as after `times` failures, by default the number of recent ones.
        """
        time = self.time()
        self._past = {place: past for place, past in self._past.items() if time - past.at < FORGET_S}
        opened = [place for place in dict.fromkeys(places) if place not in self._open]
        for place in opened:
            failures = self.failures(place)
            doublings = min(failures if times is None else times, MOST_DOUBLINGS)
            wait_s = min(FIRST_WAIT_S * 2**doublings, LAST_WAIT_S)
            self._past[place] = _Past(failures + 1, time + wait_s)
            self._open[place] = Outage(self._since(place, now), reason, has_known_fault=False, probe_at=time + wait_s)
        if opened:
            log.warning("what is for %s waits: %s", _named(opened), reason)

    def hasten(self, place: Place) -> None:
        """Probe a place soon, even if its pause is longer."""
        if (outage := self._open.get(place)) is not None:
            outage.probe_at = min(outage.probe_at, self.time() + FIRST_WAIT_S)

    def observe(self, topic: str, faults: Mapping[int, str], now: int) -> None:
        """Update the breakers of a topic from its metadata: partition (or `WHOLE_TOPIC`) -> fault.

        Closes breakers that were opened for a fault in the metadata which has ended.
        """
        if opened := [(topic, partition) for partition in faults if (topic, partition) not in self._open]:
            log.warning("what is for %s waits: %s", _named(opened), "; ".join(sorted(set(faults.values()))))
        for partition, reason in faults.items():
            place = topic, partition
            if (outage := self._open.get(place)) is None:
                outage = self._open[place] = Outage(self._since(place, now), reason, has_known_fault=True, probe_at=0.0)
            outage.reason, outage.has_known_fault = reason, True
        mended = [
            place for place, outage in self if place[0] == topic and place[1] not in faults and outage.has_known_fault
        ]
        self._mended.update(dict.fromkeys(mended, self.time()))
        self.close(mended)

    def remember(self, places: Iterable[Place]) -> None:
        """Note that the metadata show, or showed until now, faults of places that get no breaker for these."""
        self._mended.update(dict.fromkeys(places, self.time()))

    def to_probe(self) -> list[Place]:
        """Return the places to probe now. Each is returned once, until `probed` is called for it."""
        now = self.time()
        due = [
            place
            for place, outage in self
            if not (outage.has_known_fault or outage.is_probed) and outage.probe_at <= now
        ]
        for place in due:
            self._open[place].is_probed = True
        return due

    def probed(self, place: Place, *, answered: bool) -> None:
        """Close the breaker of a place if its probe was answered; otherwise, probe it again.

        If the metadata show a fault by now, an answer proves nothing: Kafka 4.3 drops markers that it cannot write.
        """
        outage = self._open.get(place)
        if outage is None:
            return
        outage.is_probed = False
        outage.probe_at = self.time() + FIRST_WAIT_S
        if answered and not outage.has_known_fault:
            self.close([place])

    def close(self, places: Iterable[Place]) -> None:
        """Close the breakers of places, so that firings are sent again."""
        time, closed = self.time(), []
        for place in places:
            if (outage := self._open.pop(place, None)) is not None:
                closed.append(place)
                self._closed[place] = outage.since, time
        if closed:
            self._closed = {place: ended for place, ended in self._closed.items() if time - ended[1] < SAME_S}
            log.info("what is for %s goes out again", _named(closed))
            self.notify()

    def _since(self, place: Place, now: int) -> int:
        """Return the start (UTC epoch ms) of the outage of a place that is being opened."""
        since, until = self._closed.get(place, (now, 0.0))
        return since if self.time() - until < SAME_S else now

    def notify(self) -> None:
        """Make lanes check held-back firings again."""
        for listener in self.changed:
            listener()


def _named(places: Sequence[Place]) -> str:
    named = [topic if partition == WHOLE_TOPIC else f"{topic}-{partition}" for topic, partition in places[:MOST_NAMED]]
    more = len(places) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
