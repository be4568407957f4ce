"""What a lane does about targets that cannot be written to: what is due for them waits, and goes out when they can."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple

from light_scheduler.kafka.batches import TargetsStalledError
from light_scheduler.kafka.outages import Outages
from light_scheduler.kafka.producer import LaneProducer
from light_scheduler.model import Entry
from light_scheduler.model.place import Place
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.due_scan import Waits

from .context import LaneContext, origin_key
from .isolation import Isolation

MOST_REMEMBERED = 1_000
RECENT_S = 60.0
"""A transaction that ended longer ago has its markers."""

LastStable = Callable[[list[Place]], Awaitable[Mapping[Place, int]]]
"""Looks up where what is committed in places ends."""


class _Ended(NamedTuple):
    """A transaction that touched a place: its id, when it ended (monotonic, s), and its end offset if it counts."""

    transactional_id: str
    at: float
    end: int = -1


class Holding:
    """Of one lane."""

    def __init__(self, context: LaneContext, last_stable: LastStable) -> None:
        self._context = context
        self._outages: Outages = context.targets.outages
        self._last_stable = last_stable
        self._committed: dict[Place, _Ended] = {}
        self._aborted: dict[Place, _Ended] = {}
        self._unsettled: dict[Place, str] = {}  # place -> transactional id
        self._slow_answers: set[Place] = set()

    def waits(self, isolation: Isolation) -> Waits | None:
        """Return what tells which place a schedule waits for; None: none waits.

        What is refused does not wait. A place on trial gets the first that asks for it, the others wait.
        """
        outages, place_of, on_trial, refusals = (
            self._outages,
            self._context.place_of,
            isolation.on_trial,
            isolation.refusals,
        )
        if not (outages or on_trial):
            return None
        self._distrust()
        topics, targets = outages.topics | {topic for topic, _ in on_trial}, self._context.targets
        tried: set[Place] = set()

        def waits(entry: Entry) -> Place | None:
            schedule = entry.schedule
            topic = schedule.target.topic
            if topic not in topics or targets[topic].refusal is not None:
                return None
            if refusals and origin_key(entry) in refusals:
                return None
            place = place_of(schedule)
            held = outages.place_held(*place)
            if held is None and place in on_trial:
                if place in tried:
                    return place
                tried.add(place)
            return held

        return waits

    def loses(self, place: Place) -> bool:
        """Tell whether an answer cannot be sent to a place: it does not wait."""
        return self._outages.place_held(*place) is not None

    def stalled(self, error: TargetsStalledError) -> list[Place]:
        """Return which places to suspect: those of answers at the second time, since answers do not wait."""
        again = [place for place in error.of_answers if place in self._slow_answers]
        self._slow_answers.update(error.of_answers)
        return [*error.places, *again]

    def committed(self, ends: Mapping[Place, int], transactional_id: str) -> None:
        """Remember what a transaction ended in users' topics."""
        if self._slow_answers:
            self._slow_answers -= ends.keys()
        now, own = self._outages.time(), self._context.own_topics
        for place, end in ends.items():
            if place[0] not in own:
                self._committed[place] = _Ended(transactional_id, now, end)
        if len(self._committed) > MOST_REMEMBERED:
            self._committed = {place: ended for place, ended in self._committed.items() if now - ended.at < RECENT_S}

    def failed(self, places: Collection[Place], transactional_id: str) -> None:
        """Remember the users' places of a transaction that will be aborted."""
        now, own = self._outages.time(), self._context.own_topics
        self._aborted = {place: ended for place, ended in self._aborted.items() if now - ended.at < RECENT_S}
        self._aborted.update((place, _Ended(transactional_id, now)) for place in places if place[0] not in own)

    async def release(self, table: ScheduleTable, producer: LaneProducer) -> None:
        """Give back to the due scan what waited for places that can be written to again.

        Raises what looking places up, or ending what is open there, does.
        """
        if not (table.held or self._unsettled):
            return
        await self._settle([place for place in self._unsettled if not self.loses(place)], producer)
        for place in table.held.places:
            if place not in self._outages:
                table.release(place)

    async def _settle(self, places: list[Place], producer: LaneProducer) -> None:
        """End what an earlier transaction may have left open; see `LaneProducer.settle`.

        What is committed ends before the end of a transaction that was committed: then its marker is missing.
        """
        ours = [
            place
            for place in places
            if self._unsettled[place] == producer.transactional_id
            and place[1] < self._context.targets[place[0]].partitions
        ]
        if ours:
            ends = await self._last_stable(ours)
            lacking = {place for place in ours if (last := self._committed.get(place)) and ends[place] < last.end}
            for group, commits in ((lacking, True), (set(ours) - lacking, False)):
                if group:
                    await producer.settle(group, commits=commits)
        for place in places:
            del self._unsettled[place]

    def _distrust(self) -> None:
        """Note where the markers of a transaction that has just ended may have been lost with the leader."""
        long_ago = self._outages.time() - RECENT_S
        for place, outage in self._outages:
            if outage.has_known_fault:
                for ended in (self._committed.get(place), self._aborted.pop(place, None)):
                    if ended is not None and ended.at > long_ago:
                        self._unsettled[place] = ended.transactional_id
