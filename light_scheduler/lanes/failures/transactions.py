"""What a lane learns from its transactions: the size of cycles, work to refuse, and unavailable targets.

This knowledge outlives table and producer, which a lane drops after an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError, RequestTimedOutError

from light_scheduler.errors import CycleTimeout, InputInDoubt, LaneError, Overtaken, TransactionStuck
from light_scheduler.kafka.coordinator import KnownLog
from light_scheduler.kafka.refusals import PASSING_REFUSALS, REFUSED, RecordsRefusedError, TargetsStalledError
from light_scheduler.lanes.context.lane_context import LaneContext
from light_scheduler.model.place import Place
from light_scheduler.tables import DueScan
from light_scheduler.tables.due_scan import Waits
from light_scheduler.tables.services import LaneServices

from .attempt import Attempt
from .failing_work_search import FailingWorkSearch, Work, WorkFailedError
from .held_firings import Holding
from .markers import Markers
from .refused_record_search import RefusedRecordSearch
from .stable_ends import TIMEOUT_S, stable_ends
from .unresponsive_partitions import Neighbours

NO_FAULT_OF_WRITES = (TransactionStuck, Overtaken, InputInDoubt)
"""Errors that a transaction meets whatever it writes."""

BREAKS_OF_CONNECTIONS = (KafkaConnectionError, NodeNotReadyError, RequestTimedOutError, OSError)

log = logging.getLogger(__name__)


class Failures:
    """What a lane has learned from its failures."""

    def __init__(self, context: LaneContext, services: LaneServices) -> None:
        self._tp = TopicPartition(context.commands_topic, context.partition)
        self._context = context
        self._services = services
        self.attempt = Attempt()
        """The transaction that is being sent."""
        self.changelog = KnownLog(context.changelog)
        self.record_search = RefusedRecordSearch(f"{self._tp.topic}-{self._tp.partition}", context.targets)
        self.work_search = FailingWorkSearch()
        self.holding = Holding(context, Markers(context, self._stable_ends, self._may_be_open, self._end, self._deny))
        self.neighbours = Neighbours(*self._tp)
        self._failed_places: list[Place] = []
        self._failed_with = ""

    def waits(self) -> Waits | None:
        """Return a function that returns the place a schedule waits for, or None if none waits."""
        return self.holding.waits(self.record_search.refusals)

    def sends(self, due: DueScan) -> Waits | None:
        """Return the same for the schedules that are due."""
        return self.holding.sends(self.record_search.refusals, due.entries)

    def away(self) -> frozenset[int]:
        """Return the partitions of its topic that nothing may be sent to.

        They are unavailable according to the metadata or to transactions, or may lack a marker.
        """
        targets, topic = self._context.targets, self._context.commands_topic
        silent = {place[1] for place in targets.outages.places if place[0] == topic}
        return targets[topic].unavailable | silent | self.holding.unsettled()

    def left_alone(self, now: int) -> frozenset[int]:
        """Return the other partitions of its topic that the lane neither asks nor answers."""
        return self.neighbours.left_alone(self._context.partitioning.partitions, self.away(), now)

    def committed(self, ends: Mapping[Place, int]) -> None:
        """Learn from a committed transaction. It is not to blame for failures before the next one."""
        attempt, self.attempt = self.attempt, Attempt()
        self.note_committed(ends.get(self.changelog.place, self.changelog.committed_end))
        self.holding.committed(ends, attempt.transactional_id)
        self.neighbours.committed(ends)
        self._blame(self.work_search.succeeded(attempt.works))

    def note_committed(self, end: int) -> None:
        """Note the end of the changelog's known committed part. 0 means unknown."""
        self.changelog = self.changelog._replace(committed_end=end)

    def condemn(self, failed: WorkFailedError) -> None:
        """Refuse work that raised an error, in the next cycle."""
        log.error("lane %s-%d cannot carry out %s", *self._tp, failed, exc_info=failed.__cause__)
        self.work_search.condemn(failed.work, repr(failed.__cause__))

    def failed(self, error: Exception, *, may_count: bool) -> bool:
        """Learn from a transaction that failed, unless it `may_count` (be committed) after all.

        Return whether to retry soon: if the work may be the cause, the next cycle holds less of it.
        """
        attempt, self.attempt = self.attempt, Attempt()
        if isinstance(error, TransactionStuck):
            self.holding.stuck()
        if attempt.is_begun:
            if isinstance(error, CycleTimeout):
                self.neighbours.failed(attempt.places, attempt.written, self._services.clock.now())
            if not isinstance(error, NO_FAULT_OF_WRITES) and not self._leave_out(error, attempt):
                self.work_search.failed(attempt.size, attempt.works, is_break=isinstance(error, BREAKS_OF_CONNECTIONS))
                if attempt.works:
                    own = self._context.own_topics
                    self._failed_places = [place for place in attempt.places if place[0] not in own]
                    self._failed_with = str(error) or repr(error)
            self.holding.failed(attempt, may_count=may_count)
        return attempt.is_begun and self.work_search.is_getting_on

    def stalled(self, error: TargetsStalledError) -> list[Place]:
        """Note that targets do not answer. Return the places to suspect."""
        attempt, self.attempt = self.attempt, Attempt()
        if self.neighbours.among(error.places):
            self.neighbours.failed(attempt.places, attempt.written, self._services.clock.now())
        suspects = self.holding.stalled(error)
        self.holding.failed(attempt)
        return suspects

    async def refused(self, error: RecordsRefusedError) -> None:
        """Find out which records a topic refuses. A topic that gives no reason may accept them a little later."""
        attempt, self.attempt = self.attempt, Attempt()
        outages = self._context.targets.outages
        for refused in error.of_users:
            may_pass = refused.may_pass and refused.topic not in self.record_search.suspicious_topics
            if may_pass and outages.failures(refused.place) < PASSING_REFUSALS:
                reason = f"it refuses records and does not say why: {refused.cause!r}"
                await self._context.targets.suspect([refused.place], reason)
            else:
                self.record_search.note(refused, self._services.clock.now())
        self.holding.failed(attempt)

    def _leave_out(self, error: Exception, attempt: Attempt) -> bool:
        """Hold back records for partitions of the topic that may have failed a transaction. Return False if none.

        They did not answer in time, or with an error that is not about records, or the transaction sent them records
        that had waited for them. Then no work is to blame. If the next transaction also fails, they were not the cause.
        """
        suspects = {place for place in attempt.sent_late if place not in attempt.written}
        if isinstance(error, CycleTimeout):
            suspects |= set(attempt.places) - attempt.written.keys()
        elif isinstance(error, RecordsRefusedError):
            suspects |= {each.place for each in (error, *error.beside) if not isinstance(each.cause, REFUSED)}
        ours = sorted(place for place in suspects if place[0] == self._context.commands_topic)
        for place in ours:
            self._context.targets.leave_alone(place, f"a transaction that writes to it fails: {error!r}")
        return bool(ours)

    def _blame(self, work: Work | None) -> None:
        """Refuse a piece of work that fails alone, while cycles without it pass."""
        if work is None:
            return
        reason = f"transactions with it fail: {self._failed_with}"
        log.error("lane %s-%d: %s: %s", *self._tp, work, reason)
        if isinstance(work.key, int):
            self.work_search.condemn(work, reason)
        else:
            place = self._failed_places[0] if len(self._failed_places) == 1 else None
            self.record_search.refuse([work.key], reason, self._services.clock.now(), place)

    async def _stable_ends(self, places: list[Place]) -> dict[Place, int | KafkaError]:
        changelog, _ = self._context.changelog
        return await stable_ends(places, self._services.clients, self._context.targets, {changelog})

    async def _may_be_open(self, transactional_id: str, place: Place, end: int) -> bool:
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._services.clients.may_be_open(transactional_id, place, end)
        except TimeoutError as error:
            raise LaneError(f"{place[0]}-{place[1]} does not tell what {transactional_id} has open there") from error

    async def _end(self, transactional_id: str, place: Place, commits: bool) -> None:
        await self._services.clients.end(transactional_id, place, commits=commits, changelog=self.changelog)

    def _deny(self, topic: str, error: KafkaError) -> None:
        self.record_search.deny(topic, error, self._services.clock.now())
