"""Executes the turns of waking schedules: delivers messages, and stores the next state of each schedule."""

from __future__ import annotations

import logging
from collections.abc import Callable

from light_scheduler.engine import Turn, refusal_of, take_turn
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.context.lane_context import OriginKey, Refusals, origin_key
from light_scheduler.lanes.context.log_subject import about
from light_scheduler.lanes.failures.condemned_work import NO_FAULT_OF_WORK, Condemned
from light_scheduler.lanes.failures.failing_work_search import Kind, Work
from light_scheduler.lanes.plain.firings import PlainFirings
from light_scheduler.lanes.plain.messages import PlainMessages
from light_scheduler.lanes.plain.paths import may_be_short
from light_scheduler.lanes.plain.series import PlainSeries
from light_scheduler.lanes.writes.transaction import Transaction
from light_scheduler.model import DeadLetterCause, Entry, EventType
from light_scheduler.model.probe import PROBE_TENANT
from light_scheduler.wire.state import identity_of

from .probing import Probing

log = logging.getLogger(__name__)


def _leave(_: Entry) -> None:
    """Leave every firing to the general path."""


class Firings:
    """Executes turns as part of a transaction. `refusals` are firings that their topic is known to refuse.

    With `traced`, `tried` has the firings to deliver. `steps` is the number of extra turns, besides the requested ones.
    """

    def __init__(
        self,
        transaction: Transaction,
        bulk: BulkCommands,
        condemned: Condemned,
        refusals: Refusals,
        *,
        traced: bool = False,
    ) -> None:
        context = transaction.context
        self._transaction = transaction
        self._bulk = bulk
        self._condemned = condemned
        self._refusals = refusals
        self._traced = traced
        self._now = transaction.now
        self._rules = context.rules
        self._targets = context.targets
        self._place_of = context.place_of
        self._tenants = transaction.tenants
        self._source_topic = context.commands_topic.encode()
        # Functions that are called for every firing are looked up once.
        self._record = transaction.history.record
        self._add = transaction.batches.add
        self._delivered = context.dialect.delivered
        self._plain: list[PlainFirings | PlainSeries] = []
        self._fire_one_shot: Callable[[Entry], bool | None] = _leave
        self._fire_series: Callable[[Entry], Entry | None] = _leave
        if context.plain_paths and not (traced or refusals or condemned or bulk.any_at_work):
            messages = PlainMessages(transaction)
            series = PlainSeries(transaction, messages)
            self._fire_series = series.fire
            self._plain.append(series)
            if may_be_short(transaction):
                one_shots = PlainFirings(transaction, messages)
                self._fire_one_shot = one_shots.fire
                self._plain.append(one_shots)
        self._probing = Probing(transaction)
        self.current: Entry | None = None
        """The schedule whose turn is being executed, or was last."""
        self.steps = 0
        self.tried: set[OriginKey] = set()

    def fire(self, entry: Entry) -> Entry | None:
        """Execute one turn of a waking schedule. Return the schedule afterwards, or None if it is gone."""
        self.current = entry
        if self._fire_one_shot(entry):
            return None
        if (following := self._fire_series(entry)) is not None:
            return following
        if entry.schedule.tenant == PROBE_TENANT:
            self._probing.fire(entry)
            return None
        name = identity_of(entry)
        if self._bulk.any_at_work:
            current = self._bulk.catch_up(name, entry)
            if current is None or current.progress.wakes_at > self._now:
                return current
            entry = current
        if self._condemned and (reason := self._condemned.meet(Work(Kind.FIRING, origin_key(entry)))) is not None:
            self._give_up(name, entry, reason)
            return None
        turn = take_turn(entry, self._now, self._rules)
        if turn.event is EventType.FIRED:
            refusal = self._refusal_of(turn.subject) or self._deliver(turn.subject)
            if refusal is not None:
                turn = take_turn(entry, self._now, self._rules, refusal)
        if turn.entry is None:
            self._transaction.remove(name)
        else:
            self._transaction.advance(name, turn.entry)
        self.steps += turn.steps
        for skipped in turn.skipped:
            subject = Entry(entry.schedule, skipped.progress)
            self._record(EventType.SKIPPED, name, subject, skipped.reason, skipped.count)
        if turn.event is not None:
            self._record(turn.event, name, turn.subject, turn.reason)
        if turn.finished is not None:
            self._record(EventType.FINISHED, name, turn.subject, turn.finished)
        if turn.dead_letter is not None:
            self._transaction.dead_letters.add_firing(turn, turn.dead_letter)
        return turn.entry

    def count(self) -> None:
        """Count the firings that took the fast path. Call it once, after all of them."""
        if done := sum(plain.done for plain in self._plain):
            self._transaction.history.events[EventType.FIRED] += done

    def _give_up(self, name: bytes, entry: Entry, reason: str) -> None:
        """Turn a schedule whose turn fails into a dead letter, as its next state is unknown."""
        reason = f"the scheduler fails to carry it out: {reason}"
        self._transaction.remove(name)
        try:
            self._record(EventType.DEAD_LETTERED, name, entry, reason)
            turn = Turn(entry, None, EventType.DEAD_LETTERED, reason)
            self._transaction.dead_letters.add_firing(turn, DeadLetterCause.REFUSED)
        except NO_FAULT_OF_WORK:
            raise
        except Exception:
            with about([entry]):
                log.exception("%r can be neither carried out nor kept as a dead letter", name)

    def _refusal_of(self, entry: Entry) -> str | None:
        if self._traced:
            self.tried.add(origin_key(entry))
        target = entry.schedule.target
        topic = self._targets[target.topic]
        if topic.refusal is not None:
            return topic.refusal
        if target.partition is not None and target.partition >= topic.partitions:
            return f"topic {target.topic} has no partition {target.partition}; it has {topic.partitions}"
        if topic.is_compacted and target.key is None:
            return f"topic {target.topic} is compacted and takes no message without a key"
        if self._tenants and (tenant := self._tenants.get(entry.schedule.tenant)) is not None:
            reason = refusal_of(tenant, target.topic)
            if reason is not None:
                return reason
        return self._refusals.get(origin_key(entry)) if self._refusals else None

    def _deliver(self, subject: Entry) -> str | None:
        """Add a firing's message. Return the reason if that is impossible, or None."""
        schedule = subject.schedule
        payload, headers = self._delivered(subject, self._now, self._source_topic)
        try:
            self._add(self._place_of(schedule), schedule.target.key, payload, headers, origin=subject)
        except RecordTooLargeError as error:
            return str(error)
        self._transaction.delivered.append(subject)
        self._transaction.firings[schedule.tenant][subject.progress.due] += 1
        return None
