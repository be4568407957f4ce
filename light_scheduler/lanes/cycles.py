"""A lane's cycles, one after another: steps 1 to 4 of the commit protocol (see `lane`).

`failures.transactions` has what a lane learns from failed transactions.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from aiokafka import TopicPartition

from light_scheduler.errors import BrokerError, InputInDoubt
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.continuity import Untouched
from light_scheduler.kafka.transactional_producer import TransactionalProducer
from light_scheduler.tables import DueScan, Overlay, ScheduleTable
from light_scheduler.tables.services import LaneServices
from light_scheduler.wire.state import CommandsLog, identity_of

from .alarm import Alarm
from .context.lane_context import LaneContext, origin_key
from .context.overdue_totals import log_unreported
from .context.staging import NO_STAGING
from .context.tracing import TracedCycle
from .counters import LaneCounters
from .cycle.budget import NOTHING_DUE, Budget, TurnBudget
from .cycle.cycle import Cycle
from .cycle.steps import MAX_BULK, MAX_FIRING_BYTES, CycleSize, CycleSteps, Taken
from .cycle.stranded import log_dropped
from .failures.attempt import Attempt
from .failures.failing_work_search import Kind, Work
from .failures.restrictions import Restrictions
from .failures.transactions import Failures
from .gathering import MOST_MS, Gathering
from .growing.handover import Slice
from .growth_progress import GrowthProgress
from .input.incoming import Incoming
from .quotas.unread import Unread
from .skew import ClockSkew
from .staged_commit import StagedCommit

CHECKPOINT_MS = 3_600_000
"""How often an idle lane commits an empty transaction, so that its local copy does not become too old."""


class _Made(NamedTuple):
    """A cycle before it is sent. `kinds` are the kinds of work in it."""

    now: int
    kinds: frozenset[Kind]
    overlay: Overlay
    batches: RecordBatches
    cycle: Cycle
    taken: Taken
    due: DueScan
    lost_results: int
    slice: Slice | None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return self.taken.position is None and not self.taken.is_bulk_at_work and not self.batches.places


class LaneCycles:
    """The cycles of a lane."""

    def __init__(
        self,
        context: LaneContext,
        services: LaneServices,
        *,
        incoming: Incoming,
        alarm: Alarm,
        is_closing: Callable[[], bool],
    ) -> None:
        self.counters = LaneCounters(topic=context.shared.topic_totals)
        self._tp = TopicPartition(context.commands_topic, context.partition)
        self.skew = ClockSkew(f"{self._tp.topic}-{self._tp.partition}", services.max_clock_skew, time.monotonic)
        self.failures = failures = Failures(context, services)
        self._context = context
        self._services = services
        self._incoming = incoming
        self._intake, self._input = incoming.intake, incoming.position
        self._unread = Unread(incoming, context.dialect)
        self._alarm = alarm
        self._record_search, self._work_search, self._holding = (
            failures.record_search,
            failures.work_search,
            failures.holding,
        )
        self._budget = Budget(context, failures.record_search, failures.waits)
        self._is_closing = is_closing
        self._staged = StagedCommit(context, services.clock, self._intake, alarm, is_closing)
        self._gathering = Gathering(services.processor_waits, lambda: asyncio.get_running_loop().time())
        self._steps = CycleSteps()
        self._growth = GrowthProgress(context)
        self._undecided: _Made | None = None  # the last transaction, unless known to be committed
        self._seen_end = 0  # of the last commit in the changelog, or of what was looked at for commits of others

    @property
    def next_due(self) -> int | None:
        """When the next pending firing is due (UTC epoch ms)."""
        return self._budget.next_due

    async def decide(self, untouched: Untouched) -> None:
        """Find out whether a transaction with an unanswered commit is committed. See `Holding.decide`.

        No cycle has begun since, so the command rates still know what that transaction used.
        """
        made = self._undecided
        if (end := await self._holding.decide(untouched)) is not None:
            self._seen_end = end
            if made is not None:  # the transaction was not staged
                self._charge(made)
                self._forget_refused(made)
                self._budget.charge(made.cycle.delivered, made.now)
        self._undecided = None

    async def notice_others(self, end: int, untouched: Untouched) -> None:
        """Find out whether another lane has had the partition since the last commit. The changelog ends at `end`.

        `untouched` looks that up, if the changelog has more than the last commit and its marker. Call this after
        `decide`, also if the copy had nothing to apply: an earlier try to take over may have applied it and failed.
        """
        rates, begin = self._context.memory.command_rates, self._seen_end
        is_seen = not rates.is_used or end in (begin, begin + 1)
        if not (is_seen or (end > begin and await untouched(begin, end))):  # one that ends before that is another log
            rates.take_back()
        self._seen_end = end

    async def cycle(self, table: ScheduleTable, producer: TransactionalProducer) -> None:
        """Do steps 1 to 4, or sleep until commands arrive or the timer ticks."""
        await self._let_gather()
        if self._is_closing():
            return
        self._alarm.reset()
        self.failures.attempt = Attempt(producer.transactional_id)
        await self._context.targets.resolve(self._context.own_topics)
        self._check_own_topics()
        await self._holding.release(table, producer)
        made = await self._make(table)
        if made.is_empty:
            made.overlay.settle_floors()
            self._budget.commit()  # firings that wait for their target stay skipped
            self._steps.rested(made.taken)
            self._growth.settle(made.cycle, made.slice, made.now)
            if made.slice is not None and not self._input.has_jumped:  # what it looked at stays, and there is more
                await asyncio.sleep(0)
                return
            if made.due.entries:
                return  # all due firings wait for their targets, as has just become known
            if made.kinds and self._work_search.is_active and self._has_searched_on(made):
                return
            idle_ms = made.now - table.checkpoint.complete_at  # negative if the clock was set back
            if made.kinds and 0 <= idle_ms < CHECKPOINT_MS and not self._input.has_jumped:
                cycle = made.cycle
                turns = self._budget.next_turn(made.due, made.now), cycle.delaying.goes_on_at, cycle.rate_lending.ask_at
                await self._rest(made.now, min(filter(None, turns), default=None), table, producer)
                return
        await self._commit(made, table, producer)

    def _has_searched_on(self, made: _Made) -> bool:
        """Tell the search for failing work about an empty cycle. Return whether the next cycle must follow at once."""
        if made.due.next_due is not None and made.due.next_due <= made.now:
            self._work_search.succeeded([])  # it only got as far as firings that wait for their target
            return True
        return self._work_search.rested(is_caught_up=not self._incoming.is_behind)

    async def _let_gather(self) -> None:
        """Pause for more firings to become due, if larger transactions are better, unless the alarm rings.

        Firings due at a full second are not delayed: they are prepared, or fired at once.
        """
        if self._record_search.is_under_way or self._work_search.is_active:
            return
        pause_ms = self._gathering.left_ms()
        if pause_ms and self._context.staging.allows_pause(pause_ms, self._services.clock.now()):
            await self._alarm.pause(pause_ms / 1_000)

    async def _make(self, table: ScheduleTable) -> _Made:
        """1. and 2. Take commands and due schedules, and execute them."""
        record_search, work_search, budget, steps = self._record_search, self._work_search, self._budget, self._steps
        now = self._services.clock.now()
        record_search.expire(now)
        steps.begin(self._incoming)
        budget.begin()
        budget.follow_tenants(now)
        overlay, batches = Overlay(table), self._context.new_batches(now, record_search.suspicious_topics)
        cycle = Cycle(self._context, overlay, batches, now, self._restrictions(now))
        is_behind = self._incoming.is_behind
        if cycle.waiting.are_in_doubt:
            await self._check_input(table.checkpoint.commands_log)
        most, kinds = work_search.share(budget.most(table), is_behind=is_behind, is_catching_up=steps.is_catching_up)
        works = self.failures.attempt.works if work_search.is_active else None
        size = CycleSize(most, work_search.bytes_of(MAX_FIRING_BYTES), MAX_BULK, kinds, works)
        if self._input.is_in_another_log:
            self._growth.begin_again(cycle)
        self._growth.follow_rules(cycle)
        taken = steps.take(cycle, self._incoming, size, self._unread.since)  # 1. and 2.
        if is_behind and not self._incoming.is_behind:
            self._alarm.ring()  # for delayed commands and due firings
        turns = budget.turns(now, most, size.max_bytes)
        due = budget.take_due(overlay, now, turns) if taken.may_fire else NOTHING_DUE  # 1.
        await self._context.targets.resolve(overlay.due_topics | cycle.reply_topics)
        is_traced = record_search.is_under_way or work_search.is_active
        lost_results = steps.fire(  # 2.
            cycle,
            due,
            turns,
            held=budget.held(due),
            refusals=record_search.refusals,
            waits=self.failures.sends(due),
            holding=self._holding,
            traced=is_traced,
        )
        is_to_move = self._intake.backlog_taken and not is_traced  # a waiting command may be for a schedule to be moved
        slice = self._growth.hand_over(cycle, overlay, most, now) if is_to_move else None  # 2.
        return _Made(now, kinds, overlay, batches, cycle, taken, due, lost_results, slice)

    def _restrictions(self, now: int) -> Restrictions:
        """Return what the cycle must not do, as it failed before, or would fail."""
        search, failures = self._work_search, self.failures
        can_read = self._incoming.readable.can_read
        return Restrictions(search.condemned, can_read, failures.left_alone(now), search.silenced, failures.away())

    async def _commit(self, made: _Made, table: ScheduleTable, producer: TransactionalProducer) -> None:
        """3. and 4. Send the cycle, and apply it."""
        cycle, attempt = made.cycle, self.failures.attempt
        cycle.keep_bulk()
        position = made.taken.position
        if position is not None:
            cycle.moved_to(position)
        elif self._input.has_jumped or self._context.changelog not in made.batches.places:
            cycle.moved_to(table.checkpoint.position)
        if self._work_search.is_active:
            attempt.works += [Work(Kind.FIRING, key) for key in cycle.tried]
            if made.taken.is_bulk_at_work:
                attempt.works.append(Work(Kind.BULK, cycle.bulk_offset))
        attempt.begin(made.taken.read + len(made.due.entries), made.batches)
        attempt.sent_late = cycle.waiting.sent_to
        self._gathering.begin()
        if writes_to_others := bool(self.failures.neighbours.among(attempt.places)):
            self._context.targets.doubt([self._tp.topic])  # learn soon of a lost leader
        offsets = {} if position is None else {self._tp: position}
        check = partial(self._check_input, table.checkpoint.commands_log)
        checks = [check] if offsets and not writes_to_others else []
        last_checks = [check] if writes_to_others else []  # records for a deleted topic must not get into the new one
        self._undecided = made
        ends = await producer.commit(  # 3.
            made.batches, self._services.group, offsets, checks=checks, last_checks=last_checks
        )
        self._seen_end = ends[self._context.changelog]
        self._charge(made)  # this and the next two, even if the table cannot be written
        self._forget_refused(made)
        self.failures.committed(ends)
        made.overlay.apply(changelog_offset=ends[self._context.changelog], complete_at=made.now)  # 4.
        self._learn(made)

    def _charge(self, made: _Made) -> None:
        """Charge a committed transaction to the command rates and the shares of tenants."""
        self._steps.commit(made.cycle, made.taken, self._context.memory.command_rates)
        self._budget.commit()

    def _forget_refused(self, made: _Made) -> None:
        """Forget the refusals and condemned work that a committed transaction has dealt with."""
        self._work_search.met(made.cycle.condemned_met)
        if self._record_search.is_under_way:
            done = made.cycle.tried | {origin_key(result) for result in made.cycle.results}
            self._record_search.clear(done, has_looked=made.due is not NOTHING_DUE)

    async def _check_input(self, known: CommandsLog | None) -> None:
        """Raise InputInDoubt unless the commands come from the log that the lane should read."""
        topic = self._tp.topic
        try:
            topic_id = await self._services.commands_ids.fresh(topic)
        except BrokerError as error:
            raise InputInDoubt(f"cannot check that topic {topic} was not replaced: {error}") from error
        self._input.check(known, topic_id)

    def _learn(self, made: _Made) -> None:
        """Update counters and limits from a committed transaction."""
        cycle, due, now = made.cycle, made.due, made.now
        self._growth.settle(made.cycle, made.slice, made.now)
        self._input.is_stored()
        log_unreported(self._tp, cycle.transaction.unreported)
        log_dropped(self._tp, cycle.stranded.dropped)
        self._observe_skew(now, made.batches)
        self._count(cycle, made.lost_results, now)
        turn = self._budget.next_turn(due, now)
        if self._held_firings_only(made, turn):
            self._gathering.ended(len(due.entries))
        self._budget.observe(max(made.taken.read, len(due.entries)), self._services.clock.now() - now)

    def _held_firings_only(self, made: _Made, turn: int | None) -> bool:
        """Return whether a cycle held only firings, and left no work over."""
        cycle, taken, due = made.cycle, made.taken, made.due
        is_plain = not (taken.read or taken.is_bulk_at_work or made.slice)
        is_plain = is_plain and self._steps.has_removed(cycle.transaction.tenants)
        is_all = not self._budget.held(due) and len(cycle.delivered) == len(due.entries)
        others = filter(None, (cycle.delaying.goes_on_at, cycle.rate_lending.ask_at))
        is_all = is_all and all(at > made.now + MOST_MS for at in others)
        return is_plain and is_all and (turn is None or turn > made.now)

    async def _rest(
        self, now: int, next_turn: int | None, table: ScheduleTable, producer: TransactionalProducer
    ) -> None:
        """Sleep until the next firing, or prepare it if it is due in a moment."""
        may_stage = self._intake.backlog_taken and not (self._record_search.is_under_way or self._budget.has_caps)
        may_stage = may_stage and not self._incoming.is_held  # a waiting command may name a staged schedule
        staging = self._context.staging if may_stage else NO_STAGING
        instant = staging.instant(next_turn, now)
        if instant is None:
            await self._alarm.sleep_until(staging.waking_time(next_turn))
        elif not await self._stage(instant, table, producer):
            await self._alarm.sleep_until(next_turn)

    async def _stage(self, instant: int, table: ScheduleTable, producer: TransactionalProducer) -> bool:
        """Do steps 1 to 4 for firings due at an instant ahead. The commit waits until that instant.

        If a command for one of these schedules arrives meanwhile, it comes first, and the transaction is dropped.
        Returns False if there is nothing to prepare, or a topic would stamp messages with a time before they are due.
        """
        self._budget.begin()
        self._budget.follow_tenants(instant)
        overlay, batches = Overlay(table), self._context.new_batches(instant)
        cycle = Cycle(self._context, overlay, batches, instant)
        turns = TurnBudget(self._budget.most(table), MAX_FIRING_BYTES)
        due = self._budget.take_staged(overlay, instant, turns)  # 1.
        topics = overlay.due_topics
        await self._context.targets.resolve(topics)
        if any(self._context.targets[topic].stamps_appends for topic in topics):
            return False
        cycle.fire_due(due, {}, turns, waits=self.failures.sends(due))  # 2.
        if not batches.places:
            return False
        staged = frozenset(identity_of(entry) for entry in due.entries)
        self.failures.attempt = attempt = Attempt(producer.transactional_id)
        attempt.begin(len(due.entries), batches)
        self._gathering.begin()
        begun = self._services.clock.now()
        ends = await producer.commit_when(batches, lambda: self._staged.may_commit(instant, staged))  # 3.
        if ends is None:
            self._holding.failed(attempt)
            self.counters.unstaged += 1
            return True
        self._seen_end = ends[self._context.changelog]
        self._budget.commit()
        self.failures.committed(ends)
        overlay.apply(changelog_offset=ends[self._context.changelog], complete_at=instant)  # 4.
        self._budget.next_due = due.next_due
        self._observe_skew(begun, batches)
        self._count(cycle, 0, instant)
        self.counters.staged += 1
        return True

    def _observe_skew(self, begun: int, batches: RecordBatches) -> None:
        if batches.appended_at is not None:
            self.skew.observe(begun, batches.appended_at, self._services.clock.now())

    def _check_own_topics(self) -> None:
        for topic in self._context.own_topics:
            if (refusal := self._context.targets[topic].refusal) is not None:
                raise BrokerError(f"{refusal}: run `light-scheduler topics create`")

    def _trace(self, cycle: Cycle, committed: int) -> None:
        """Report the commands and firings of a committed cycle that belong to traces."""
        if self._context.shared.tracing is not None and cycle.traced:
            begun, commands = cycle.transaction.now, cycle.outcomes.total()
            place = self._tp.topic, self._tp.partition
            self._context.shared.tracing.record(
                TracedCycle(*place, min(begun, committed), committed, commands, len(cycle.delivered), cycle.traced)
            )

    def _count(self, cycle: Cycle, lost_results: int, now: int) -> None:
        throttled = self._budget.charge(cycle.delivered, now)
        self._undecided = None
        visible_at = self._services.clock.now()
        self._trace(cycle, visible_at)
        self.counters.committed(cycle, lost_results, throttled, visible_at)
        self._context.shared.tenant_firings.add(cycle.firings)
        self._context.memory.probe.stored(cycle.transaction.probes, visible_at)
