"""Markers of transactions that brokers may have dropped: where they are missing, and writing them after all.

Brokers of Kafka 4.3 do not write the markers of a transaction in a partition that has no leader just then
(KAFKA-20734). Readers stand still there, and the next transaction under the same id would decide for both. So nothing
is sent to such a place before a transaction without records has ended there as the one before it did.
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
from light_scheduler.lanes.context import LaneContext
from light_scheduler.model.place import Place

MOST_REMEMBERED = 1_000
RECENT_S = 60.0
"""A transaction that ended longer ago has its markers."""
MARKER_S, MARKER_POLL_S = 1.0, 0.05
"""How long a marker may come after the answer to a commit, and how often it is looked for."""

StableEnds = Callable[[list[Place]], Awaitable[Mapping[Place, int | KafkaError]]]
"""Looks up where what is committed in places ends, or why that cannot be told; leaves out who does not answer."""

End = Callable[[str, Place, bool], Awaitable[None]]
"""Ends what is open in a place under an id: commits it, or aborts it."""

Deny = Callable[[str, KafkaError], None]
"""Has a topic be one that may not be written to, for a while."""

log = logging.getLogger(__name__)


@dataclass
class _Touched:
    """The last transactions of one id in a place.

    `at` is when the last one ended (monotonic, s), `end` the end offset of the last committed one (-1: none), and
    `has_written_since` whether the place is known to have records of one that was aborted after that.
    """

    at: float
    end: int = -1
    has_written_since: bool = False

    def lacks_commit(self, stable_end: int) -> bool:
        """Return whether the one that counts can be missing its marker, by where what is committed in the place ends.

        What is committed ends before its end then; which others, who have something open there, may cause as well. To
        commit once more does no harm, unless records of something aborted came after it: then that is what is open.
        """
        return stable_end < self.end and not self.has_written_since


class Markers:
    """Of the transactions of one lane."""

    def __init__(self, context: LaneContext, stable_ends: StableEnds, end: End, deny: Deny) -> None:
        self._context = context
        self._outages = context.targets.outages
        self._stable_ends = stable_ends
        self._end_by_id = end
        self._deny = deny
        self._touched: dict[Place, dict[str, _Touched]] = {}  # by transactional id
        self._missing: dict[Place, set[str]] = {}  # the same ids
        self._alone: set[Place] = set()  # of several together, one could not be settled

    def __bool__(self) -> bool:
        return bool(self._missing)

    def holds(self, place: Place) -> bool:
        """Return whether nothing may be sent to a place until it is settled; what is refused there is refused."""
        return place in self._missing and not self._context.targets[place[0]].is_denied

    @property
    def topics(self) -> set[str]:
        """Those in which markers may be missing."""
        return {topic for topic, _ in self._missing}

    def committed(self, ends: Mapping[Place, int], transactional_id: str) -> None:
        """Remember what a transaction ended in users' topics."""
        now, own = self._outages.time(), self._context.own_topics
        for place, end in ends.items():
            if place[0] not in own:
                self._touched.setdefault(place, {})[transactional_id] = _Touched(now, end)
        self._make_room(now)

    def failed(self, places: Collection[Place], transactional_id: str, written: Collection[Place]) -> None:
        """Remember the users' places of a transaction that will be aborted, and which of them have `written` of it."""
        now, own = self._outages.time(), self._context.own_topics
        for place in places:
            if place[0] not in own:
                touched = self._touched.setdefault(place, {}).setdefault(transactional_id, _Touched(now))
                touched.at = now
                touched.has_written_since |= place in written
        self._make_room(now)

    def touched_last(self) -> set[str]:
        """Return the users' topics of the last transaction, whether it counts or not."""
        times = {place: max(touched.at for touched in ids.values()) for place, ids in self._touched.items()}
        last = max(times.values(), default=0.0)
        return {place[0] for place, at in times.items() if at == last}

    def distrust(self) -> None:
        """Note where the markers of a transaction that has just ended may have been lost with the leader.

        The leader may be back by now: a lane that sleeps, or waits for an answer, sees nothing of a short outage.
        """
        for place, until in self._outages.known_faults().items():
            for transactional_id, touched in self._touched.get(place, {}).items():
                if until - RECENT_S < touched.at <= until:
                    self._missing.setdefault(place, set()).add(transactional_id)

    async def settle(self, producer: TransactionalProducer) -> None:
        """Write what may be missing, where that is possible by now.

        What goes wrong with a place is that place's matter: it is left alone, and tried again later. Raises what leaves
        the producer useless all the same, or says nothing of a place.
        """
        places = [place for place in self._missing if self._outages.place_held(*place) is None]
        if not places:
            return
        await self._context.targets.resolve({topic for topic, _ in places})
        for place in places:
            if self._is_gone(place):
                self._forget(place)
        # Where the right is missing it may come back, and whatever was sent there first would decide for what is open.
        # No time-out ends that, since to the coordinator it has ended. So the place is kept, not forgotten.
        ours = [place for place in places if self.holds(place)]
        if not ours:
            return
        ends = await self._known_ends(ours)
        own: dict[bool, set[Place]] = {True: set(), False: set()}  # by whether the marker is that of a commit
        for place, end in sorted(ends.items()):
            for transactional_id in sorted(self._missing[place]):
                commits = self._touched[place][transactional_id].lacks_commit(end)
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
        await self._context.targets.resolve({topic for topic, _ in ours})  # what was denied is so from now on

    def _make_room(self, now: float) -> None:
        if len(self._touched) > MOST_REMEMBERED:
            self._touched = {
                place: ids
                for place, ids in self._touched.items()
                if place in self._missing or any(now - touched.at < RECENT_S for touched in ids.values())
            }

    def _is_gone(self, place: Place) -> bool:
        topic = self._context.targets[place[0]]
        return not (topic.is_denied or place[1] < topic.partitions)

    async def _has_changelog_marker(self, producer: TransactionalProducer) -> bool:
        """Return whether the producer's last transaction has its marker in the changelog; False if that is not told.

        After it has settled anything, its coordinator would no longer tell how that one was decided. Raises LaneError
        if the marker does not come: whoever fences the id writes it.
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
        """End what is open in places; see `TransactionalProducer.settle`."""
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
        """End what is open in a place under another id than the producer's: to fence that id writes no marker."""
        try:
            await self._end_by_id(transactional_id, place, commits)
        except (KafkaError, LaneError) as error:
            self._set_aside(place, error)
        else:
            self._done(place, transactional_id)

    def _set_aside(self, place: Place, error: Exception) -> None:
        """Try a place again later; until then nothing is sent there."""
        log.warning("cannot end what a transaction may have left open in %s-%d: %r", *place, error)
        if isinstance(error, TopicAuthorizationFailedError):
            self._deny(place[0], error)
        else:
            reason = f"what an earlier transaction may have left open there cannot be ended: {error!r}"
            self._context.targets.leave_alone(place, reason)

    def _done(self, place: Place, transactional_id: str) -> None:
        """Forget what an id left in a place; the place may be written to once there is no more."""
        self._touched[place].pop(transactional_id)
        self._missing[place].discard(transactional_id)
        if not self._missing[place]:
            del self._missing[place]
            self._alone.discard(place)

    def _forget(self, place: Place) -> None:
        self._missing.pop(place)
        self._touched.pop(place)
        self._alone.discard(place)
