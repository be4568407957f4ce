"""Holds back a lane's firings for unavailable targets, and delivers them once the target is back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from light_scheduler.kafka.continuity import Untouched
from light_scheduler.kafka.half_open import Rank
from light_scheduler.kafka.refusals import TargetsStalledError
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.lanes.context.lane_context import LaneContext, Refusals, origin_key
from light_scheduler.model import Entry, Schedule
from light_scheduler.model.place import Place
from light_scheduler.tables import ScheduleTable
from light_scheduler.tables.due_scan import Waits

from .attempt import Attempt
from .markers import Markers


class Holding:
    """The firings of one lane that wait for unavailable targets, and the lane's knowledge of these targets."""

    def __init__(self, context: LaneContext, markers: Markers) -> None:
        self._context = context
        self._outages: Outages = context.targets.outages
        self._markers = markers
        self._slow_answers: set[Place] = set()
        self._undecided: tuple[Attempt, float] | None = None  # and when its commit failed (monotonic, s)

    def waits(self, refusals: Refusals) -> Waits | None:
        """Return a function for the due scan that returns the place a schedule waits for. Return None if none waits.

        Refused firings do not wait. For a place on trial, the scan takes those firings that `sends` may choose.
        """
        trials = self._context.targets.trials
        foremost: dict[tuple[Place, str], Rank] = {}

        def may_be_chosen(place: Place, schedule: Schedule) -> bool:
            rank = trials.rank(place, schedule.tenant, schedule.id)
            known = foremost.get((place, schedule.tenant))
            if known is None or rank < known:
                foremost[place, schedule.tenant] = rank
                return True
            return False

        return self._waits(refusals, may_be_chosen)

    def sends(self, refusals: Refusals, due: Collection[Entry]) -> Waits | None:
        """Return the same for firings that the scan took. Each place on trial gets one of them, and the others wait."""
        trials = self._context.targets.trials
        chosen: dict[Place, Schedule] = {}

        def choose(place: Place, schedule: Schedule) -> bool:
            foremost = chosen.setdefault(place, schedule)
            if trials.rank(place, schedule.tenant, schedule.id) < trials.rank(place, foremost.tenant, foremost.id):
                chosen[place] = schedule
            return True

        choosing = self._waits(refusals, choose)
        if choosing is None or not trials.places:
            return choosing
        for entry in due:
            choosing(entry)
        return self._waits(refusals, lambda place, schedule: chosen.get(place) is schedule)

    def _waits(self, refusals: Refusals, may_try: Callable[[Place, Schedule], bool]) -> Waits | None:
        """Return a function that returns the place a schedule waits for. Return None if none waits.

        Schedules that `may_try` a place on trial do not wait for it.
        """
        targets, markers, place_of = self._context.targets, self._markers, self._context.place_of
        on_trial = targets.trials.places
        markers.distrust()
        if not (self._outages or on_trial or markers):
            return None
        topics = self._outages.topics | markers.topics | {topic for topic, _ in on_trial}

        def waits(entry: Entry) -> Place | None:
            schedule = entry.schedule
            topic = schedule.target.topic
            if topic not in topics or targets[topic].refusal is not None:
                return None
            if refusals and origin_key(entry) in refusals:
                return None
            place = place_of(schedule)
            held = self._held(place)
            if place in on_trial:
                if held is not None:
                    targets.trials.waits(place, schedule.tenant)
                elif not may_try(place, schedule):
                    return place
            return held

        return waits

    def loses(self, place: Place) -> bool:
        """Return whether an answer for a place is lost, as answers do not wait for unavailable targets."""
        return self._held(place) is not None

    def unsettled(self) -> frozenset[int]:
        """Return the partitions of the commands topic where a marker may be missing. Nothing may be sent there."""
        self._markers.distrust()
        return self._markers.partitions

    def _held(self, place: Place) -> Place | None:
        held = self._outages.place_held(*place)
        return place if held is None and self._markers.holds(place) else held

    def stalled(self, error: TargetsStalledError) -> list[Place]:
        """Return the places to suspect. A place of answers is suspected the second time, as answers do not wait."""
        again = [place for place in error.of_answers if place in self._slow_answers]
        self._slow_answers.update(error.of_answers)
        return [*error.places, *again]

    def committed(self, ends: Mapping[Place, int], transactional_id: str) -> None:
        """Note the places that a committed transaction wrote to, with its end offsets."""
        self._took(ends)
        self._markers.committed(ends, transactional_id, self._outages.time())

    def failed(self, attempt: Attempt, *, may_count: bool = False) -> None:
        """Note the places of a transaction that will be aborted, unless it `may_count` (be committed)."""
        if may_count and self._context.changelog in attempt.written:
            self._undecided = attempt, self._outages.time()
        else:
            self._markers.failed(attempt.places, attempt.transactional_id, attempt.written, self._outages.time())

    async def decide(self, untouched: Untouched) -> int | None:
        """Find out whether a transaction with an unanswered commit was committed.

        Return the end of its records in the changelog if it was; None if not, or if there is none.

        `untouched` looks that up in the changelog, where each transaction writes and this one has its marker by now. If
        it raises, the question stays open: ask again before settling anything. A leader that was lost since the commit
        failed may have lost the marker, also if it is back by now.
        """
        if self._undecided is None:
            return None
        attempt, at = self._undecided
        changelog = attempt.written[self._context.changelog]
        is_lost = await untouched(changelog.end - changelog.records, changelog.end)
        if is_lost:
            self._markers.failed(attempt.places, attempt.transactional_id, attempt.written, at)
        else:
            ends = {place: written.end for place, written in attempt.written.items()}
            self._took(ends)
            self._markers.committed(ends, attempt.transactional_id, at)
        self._undecided = None
        return None if is_lost else changelog.end

    def _took(self, places: Mapping[Place, int]) -> None:
        self._context.targets.trials.took(places)
        if self._slow_answers:
            self._slow_answers -= places.keys()

    def stuck(self) -> None:
        """Watch the topics of the last transaction, as a transaction does not end while a partition has no leader."""
        self._context.targets.doubt(self._markers.touched_last())

    async def release(self, table: ScheduleTable, producer: TransactionalProducer) -> None:
        """Give firings back to the due scan if their places can be written to again.

        Raises the errors of looking up places and of ending open transactions there.
        """
        self._markers.distrust()
        if self._markers:
            await self._markers.settle(producer)
        for place in table.held.places:
            if place not in self._outages:
                table.release(place)
