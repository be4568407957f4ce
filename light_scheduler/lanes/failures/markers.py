"""Finds and writes transaction markers that brokers may have dropped.

Kafka 4.3 brokers do not write a transaction's marker in a partition that has no leader at that moment (KAFKA-20734).
Readers are stuck there, and the next transaction with the same id would decide both. So nothing is sent to such a place
before a transaction without records has ended there with the same result as the one before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from light_scheduler.errors import LaneError
from light_scheduler.kafka.refusals import OF_PRODUCER
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.model.place import Place

MOST_REMEMBERED = 1_000
RECENT_S = 60.0
"""After this time, the markers of a transaction have been written."""
MARKER_S, MARKER_POLL_S = 1.0, 0.05
"""How long a marker may take after the answer to a commit, and how often to look for it."""

MOST_ASKED = 20
"""Number of places that are asked at a time what an id has open there."""

StableEnds = Callable[[list[Place]], Awaitable[Mapping[Place, int | KafkaError]]]
"""Looks up the last stable offsets of places, or the errors. Omits places that do not answer."""

MayBeOpen = Callable[[str, Place, int], Awaitable[bool]]
"""Returns whether an id may have something open in a place that begins before an offset."""

End = Callable[[str, Place, bool], Awaitable[None]]
"""Ends the open transaction of an id in a place. True commits it, False aborts it."""

Deny = Callable[[str, KafkaError], None]
"""Marks a topic as not writable for a while, because of an error."""

log = logging.getLogger(__name__)


@dataclass
class _Touched:
    """The last transactions of one id in a place.

    `at` is when the last one ended (monotonic, s), and `end` the end offset of the last committed one, or -1.
    `has_written_since` says whether the place is known to have records of a later, aborted one.
    """

    at: float
    end: int = -1
    has_written_since: bool = False

    def lacks_commit(self, stable_end: int) -> bool:
        """Return whether the committed transaction may lack its marker, given the last stable offset of the place.

        Then that offset is before the transaction's end. What others have open can cause that too. If records of an
        aborted transaction followed, that one is open.
        """
        return stable_end < self.end and not self.has_written_since


class Markers:
    """The markers of one lane's transactions."""

    def __init__(
        self, context: LaneContext, stable_ends: StableEnds, may_be_open: MayBeOpen, end: End, deny: Deny
    ) -> None:
        self._context = context
        self._outages = context.targets.outages
        self._stable_ends = stable_ends
        self._may_be_open = may_be_open
        self._end_by_id = end
        self._deny = deny
        self._commands = context.commands_topic
        self._left_out = context.own_topics - {self._commands}
        self._touched: dict[Place, dict[str, _Touched]] = {}  # by transactional id
        self._missing: dict[Place, set[str]] = {}  # the same ids
        self._alone: set[Place] = set()  # settle these one by one, after settling several together failed

    def __bool__(self) -> bool:
        return bool(self._missing)

    def holds(self, place: Place) -> bool:
        """Return whether nothing may be sent to a place until it is settled. False for topics that deny access."""
        return place in self._missing and not self._context.targets[place[0]].is_denied

    @property
    def partitions(self) -> frozenset[int]:
        """The partitions of the commands topic to which nothing may be sent until they are settled."""
        return frozenset(place[1] for place in self._missing if place[0] == self._commands)

    @property
    def topics(self) -> set[str]:
        """The topics in which markers may be missing."""
        return {topic for topic, _ in self._missing}

    def committed(self, ends: Mapping[Place, int], transactional_id: str, at: float) -> None:
        """Note the end offsets, in users' topics and the commands topic, of a transaction that was committed `at`."""
        for place, end in ends.items():
            if place[0] not in self._left_out:
                self._touched.setdefault(place, {})[transactional_id] = _Touched(at, end)
        self._make_room()

    def failed(self, places: Collection[Place], transactional_id: str, written: Collection[Place], at: float) -> None:
        """Note the places of a transaction that failed `at` and is aborted. `written` have records of it."""
        for place in places:
            if place[0] not in self._left_out:
                touched = self._touched.setdefault(place, {}).setdefault(transactional_id, _Touched(at))
                touched.at = at
                touched.has_written_since |= place in written
        self._make_room()

    def touched_last(self) -> set[str]:
        """Return the topics of the last transaction, committed or not: users' and the commands topic."""
        times = {place: max(touched.at for touched in ids.values()) for place, ids in self._touched.items()}
        last = max(times.values(), default=0.0)
        return {place[0] for place, at in times.items() if at == last}

    def distrust(self) -> None:
        """Note places where markers of a recent transaction may have been lost with the leader.

        The leader may be back by now: a lane that sleeps, or waits for an answer, does not see a short outage.
        """
        for place, until in self._outages.known_faults().items():
            for transactional_id, touched in self._touched.get(place, {}).items():
                if until - RECENT_S < touched.at <= until:
                    self._missing.setdefault(place, set()).add(transactional_id)

    async def settle(self, producer: TransactionalProducer) -> None:
        """Write markers that may be missing, where that is possible by now.

        A place with an error is left alone, and retried later. Raises errors that make the producer useless, and those
        that are not about a place.
        """
        places = [place for place in self._missing if not self._is_away(place)]
        if not places:
            return
        await self._context.targets.resolve({topic for topic, _ in places})
        for place in places:
            if self._is_gone(place):
                self._forget(place)
        # A missing permission may come back, and the first records sent there would decide the open transaction. No
        # timeout ends that one, as the coordinator considers it ended. So the place is kept.
        ours = [place for place in places if self.holds(place)]
        if not ours:
            return
        ends = await self._known_ends(ours)
        own: dict[bool, set[Place]] = {True: set(), False: set()}  # by whether the marker is a commit
        for (place, transactional_id), commits in await self._commits_lacking(ends):
            if transactional_id == producer.transactional_id:
                own[commits].add(place)
            else:
                await self._end_under(transactional_id, place, commits=commits)
        if any(own.values()) and not await self._has_changelog_marker(producer):
            for place in own[True] | own[False]:
                self._set_aside(place, LaneError("the changelog does not tell how the last transaction ended"))
            return
        for commits, group in own.items():
            if together := group - self._alone:
                await self._end(together, producer, commits=commits)
            for place in sorted(group & self._alone):
                await self._end({place}, producer, commits=commits)
        await self._context.targets.resolve({topic for topic, _ in ours})  # apply denials from now on

    def _make_room(self) -> None:
        if len(self._touched) > MOST_REMEMBERED:
            now = self._outages.time()
            self._touched = {
                place: ids
                for place, ids in self._touched.items()
                if place in self._missing or any(now - touched.at < RECENT_S for touched in ids.values())
            }

    def _is_away(self, place: Place) -> bool:
        if self._outages.place_held(*place) is not None:
            return True
        topic, partition = place  # there is no breaker for what the metadata know of the commands topic
        return topic == self._commands and partition in self._context.targets[topic].unavailable

    def _is_gone(self, place: Place) -> bool:
        topic = self._context.targets[place[0]]
        return not (topic.is_denied or place[1] < topic.partitions)

    async def _commits_lacking(self, ends: Mapping[Place, int]) -> list[tuple[tuple[Place, str], bool]]:
        """Return for each place, with its last stable offset, and each id whether a commit may lack its marker there.

        Leaves a place alone that does not tell. Asks for several at a time: a leader may take seconds to answer.
        """
        ours = [(place, each) for place in sorted(ends) for each in sorted(self._missing[place])]
        turns = asyncio.Semaphore(MOST_ASKED)

        async def ask(place: Place, transactional_id: str) -> bool:
            async with turns:
                return await self._lacks_commit(transactional_id, place, ends[place])

        told: list[tuple[tuple[Place, str], bool]] = []
        answers = await asyncio.gather(*(ask(*each) for each in ours), return_exceptions=True)
        for each, answer in zip(ours, answers, strict=True):
            if isinstance(answer, KafkaError | LaneError):
                self._set_aside(each[0], answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                told.append((each, answer))
        return told

    async def _lacks_commit(self, transactional_id: str, place: Place, stable_end: int) -> bool:
        """Return whether a commit may lack its marker, so that it has to be repeated.

        The leader is asked what the id has open: if that begins behind the commit, it is a later transaction, which was
        aborted, although no record of it was acknowledged.
        """
        touched = self._touched[place][transactional_id]
        return touched.lacks_commit(stable_end) and await self._may_be_open(transactional_id, place, touched.end)

    async def _has_changelog_marker(self, producer: TransactionalProducer) -> bool:
        """Return whether the producer's last transaction has its marker in the changelog. False if that is unknown.

        Once the producer has settled anything, the coordinator no longer knows how that transaction ended. Raises
        LaneError if the marker does not appear: fencing the id will write it.
        """
        changelog, continuity = self._context.changelog, producer.continuity
        if continuity is None:
            return True
        deadline = asyncio.get_running_loop().time() + MARKER_S
        while True:
            stable_end = (await self._stable_ends([changelog])).get(changelog)
            if not isinstance(stable_end, int) or stable_end < continuity.begin:  # others' markers are late
                return False
            if stable_end >= continuity.end:
                return True
            if asyncio.get_running_loop().time() > deadline:
                raise LaneError(f"{changelog[0]}-{changelog[1]} lacks the marker of the last transaction")
            await asyncio.sleep(MARKER_POLL_S)

    async def _known_ends(self, places: list[Place]) -> dict[Place, int]:
        ends: dict[Place, int] = {}
        for place, end in (await self._stable_ends(places)).items():
            if isinstance(end, int):
                ends[place] = end
            else:
                self._set_aside(place, end)
        return ends

    async def _end(self, places: Collection[Place], producer: TransactionalProducer, *, commits: bool) -> None:
        """End open transactions in places. See `TransactionalProducer.settle`."""
        try:
            await producer.settle(places, commits=commits)
        except TopicAuthorizationFailedError as error:
            if len({topic for topic, _ in places}) == 1:
                for place in places:
                    self._set_aside(place, error)
                return
            for topic in {topic for topic, _ in places}:
                await self._end([place for place in places if place[0] == topic], producer, commits=commits)
        except OF_PRODUCER:
            raise
        except Exception as error:
            self._alone.update(places)
            for place in places:
                self._set_aside(place, error)
            raise
        else:
            for place in places:
                self._done(place, producer.transactional_id)

    async def _end_under(self, transactional_id: str, place: Place, *, commits: bool) -> None:
        """End the open transaction of an id other than the producer's. Fencing that id would write no marker."""
        try:
            await self._end_by_id(transactional_id, place, commits)
        except (KafkaError, LaneError) as error:
            self._set_aside(place, error)
        else:
            self._done(place, transactional_id)

    def _set_aside(self, place: Place, error: Exception) -> None:
        """Retry a place later. Until then, nothing is sent there."""
        log.warning("cannot end what a transaction may have left open in %s-%d: %r", *place, error)
        if isinstance(error, TopicAuthorizationFailedError) and place[0] != self._commands:
            self._deny(place[0], error)
        else:
            reason = f"what an earlier transaction may have left open there cannot be ended: {error!r}"
            self._context.targets.leave_alone(place, reason)

    def _done(self, place: Place, transactional_id: str) -> None:
        """Note that the marker of an id is settled. The place may be written to once all ids there are."""
        self._touched[place].pop(transactional_id)
        self._missing[place].discard(transactional_id)
        if not self._missing[place]:
            del self._missing[place]
            self._alone.discard(place)

    def _forget(self, place: Place) -> None:
        self._missing.pop(place)
        self._touched.pop(place)
        self._alone.discard(place)
