"""Markers of transactions that brokers may have dropped: where they are missing, and writing them after all.

Brokers of Kafka 4.3 do not write the markers of a transaction in a partition that has no leader just then
(KAFKA-20734). Readers stand still there, and the next transaction under the same id would decide for both. So nothing
is sent to such a place before a transaction without records has ended there as the one before it did.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from aiokafka.errors import KafkaError, TopicAuthorizationFailedError

from light_scheduler.errors import LaneError
from light_scheduler.kafka.batches import OF_PRODUCER
from light_scheduler.kafka.producer import LaneProducer
from light_scheduler.model.place import Place

from .context import LaneContext

MOST_REMEMBERED = 1_000
RECENT_S = 60.0
"""A transaction that ended longer ago has its markers."""

StableEnds = Callable[[list[Place]], Awaitable[Mapping[Place, int | KafkaError]]]
"""Looks up where what is committed in places ends, or why that cannot be told; leaves out who does not answer."""

End = Callable[[str, Place, bool], Awaitable[None]]
"""Ends what is open in a place under an id: commits it, or aborts it."""

Deny = Callable[[str, KafkaError], None]
"""Has a topic be one that may not be written to, for a while."""

log = logging.getLogger(__name__)


class _Ended(NamedTuple):
    """A transaction that touched a place: its id, when it ended (monotonic, s), and its end offset if it counts."""

    transactional_id: str
    at: float
    end: int = -1


class Markers:
    """Of the transactions of one lane."""

    def __init__(self, context: LaneContext, stable_ends: StableEnds, end: End, deny: Deny) -> None:
        self._context = context
        self._outages = context.targets.outages
        self._stable_ends = stable_ends
        self._end_by_id = end
        self._deny = deny
        self._committed: dict[Place, _Ended] = {}
        self._aborted: dict[Place, _Ended] = {}
        self._missing: dict[Place, str] = {}  # place -> transactional id
        self._alone: set[Place] = set()  # of several together, one could not be settled

    def __bool__(self) -> bool:
        return bool(self._missing)

    def holds(self, place: Place) -> bool:
        """Tell whether nothing may be sent to a place until it is settled; what is refused there is refused."""
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
                self._committed[place] = _Ended(transactional_id, now, end)
        if len(self._committed) > MOST_REMEMBERED:
            self._committed = {
                place: ended
                for place, ended in self._committed.items()
                if now - ended.at < RECENT_S or place in self._missing
            }

    def failed(self, places: Collection[Place], transactional_id: str) -> None:
        """Remember the users' places of a transaction that will be aborted."""
        now, own = self._outages.time(), self._context.own_topics
        self._aborted = {place: ended for place, ended in self._aborted.items() if now - ended.at < RECENT_S}
        self._aborted.update((place, _Ended(transactional_id, now)) for place in places if place[0] not in own)

    def touched_last(self) -> set[str]:
        """Return the users' topics of the last transaction, whether it counts or not."""
        ended = [*self._committed.items(), *self._aborted.items()]
        last = max((each.at for _, each in ended), default=0.0)
        return {place[0] for place, each in ended if each.at == last}

    def distrust(self) -> None:
        """Note where the markers of a transaction that has just ended may have been lost with the leader.

        The leader may be back by now: a lane that sleeps, or waits for an answer, sees nothing of a short outage.
        """
        for place, until in self._outages.known_faults().items():
            last = self._last(place)
            if last is not None and until - RECENT_S < last.at <= until:
                self._missing[place] = last.transactional_id

    async def settle(self, producer: LaneProducer) -> None:
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
                self._done(place)
        # Where the right is missing it may come back, and whatever was sent there first would decide for what is open.
        # No time-out ends that, since to the coordinator it has ended. So the place is kept, not forgotten.
        ours = [place for place in places if self.holds(place)]
        if not ours:
            return
        ends = await self._known_ends(ours)
        lacking = {place for place, end in ends.items() if self._lacks_commit(place, end)}
        others = {place for place in ends if self._missing[place] != producer.transactional_id}
        for place in sorted(others):
            await self._end_under(self._missing[place], place, commits=place in lacking)
        for group, commits in ((lacking - others, True), (ends.keys() - lacking - others, False)):
            if together := group - self._alone:
                await self._end(together, producer, commits=commits)
            for place in sorted(group & self._alone):
                await self._end({place}, producer, commits=commits)
        await self._context.targets.resolve({topic for topic, _ in ours})  # what was denied is so from now on

    def _last(self, place: Place) -> _Ended | None:
        """Return the transaction that ended last in a place."""
        ended = [found for found in (self._committed.get(place), self._aborted.get(place)) if found is not None]
        return max(ended, key=lambda each: each.at, default=None)

    def _is_gone(self, place: Place) -> bool:
        topic = self._context.targets[place[0]]
        return not (topic.is_denied or place[1] < topic.partitions)

    def _lacks_commit(self, place: Place, end: int) -> bool:
        """Tell whether the transaction that ended last in a place was committed, and can be missing there.

        What is committed ends before its end then; which others, who have something open there, may cause as well. To
        commit once more does no harm, unless something aborted came after it: then that is what is open.
        """
        last = self._last(place)
        return last is not None and end < last.end

    async def _known_ends(self, places: list[Place]) -> dict[Place, int]:
        ends: dict[Place, int] = {}
        for place, end in (await self._stable_ends(places)).items():
            if isinstance(end, int):
                ends[place] = end
            else:
                self._set_aside(place, end)
        return ends

    async def _end(self, places: Collection[Place], producer: LaneProducer, *, commits: bool) -> None:
        """End what is open in places; see `LaneProducer.settle`."""
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
                self._done(place)

    async def _end_under(self, transactional_id: str, place: Place, *, commits: bool) -> None:
        """End what is open in a place under another id than the producer's: to fence that id writes no marker."""
        try:
            await self._end_by_id(transactional_id, place, commits)
        except (KafkaError, LaneError) as error:
            self._set_aside(place, error)
        else:
            self._done(place)

    def _set_aside(self, place: Place, error: Exception) -> None:
        """Try a place again later; until then nothing is sent there."""
        log.warning("cannot end what a transaction may have left open in %s-%d: %r", *place, error)
        if isinstance(error, TopicAuthorizationFailedError):
            self._deny(place[0], error)
        else:
            reason = f"what an earlier transaction may have left open there cannot be ended: {error!r}"
            self._context.targets.leave_alone(place, reason)

    def _done(self, place: Place) -> None:
        for forgotten in (self._missing, self._committed, self._aborted):
            forgotten.pop(place, None)
        self._alone.discard(place)
