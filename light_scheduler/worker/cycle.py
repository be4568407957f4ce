"""One lane cycle in the making: commands and due schedules become state changes and records.

It decides nothing (the engine does) and sends nothing (the lane does): it turns the one's decisions into the other's
batches. A cycle that is dropped leaves no trace.
"""

from __future__ import annotations

import heapq
from weakref import proxy

from light_scheduler.engine import Decision, check_for_many, decide, plain_entry, take_turn
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Command, CommandForMany, Entry, EventType, Outcome, Result
from light_scheduler.tables import DueScan, Overlay, layout
from light_scheduler.tables.layout import Order
from light_scheduler.wire import CommandRecord, firing_headers, partition_for
from light_scheduler.wire.native import NativeDialect
from light_scheduler.wire.relay import Count, Origin, as_sent, mark_of
from light_scheduler.wire.state import identity, identity_of

from .batches import RecordBatches, RecordTooLargeError
from .context import LaneContext, OriginKey, Refusals, origin_key
from .keeping import Keeping
from .relay import Relay
from .sweeping import Sweeps
from .telling import Telling


class Cycle:
    """Collects what follows from commands (`take`) and from due schedules (`fire`)."""

    def __init__(self, context: LaneContext, overlay: Overlay, batches: RecordBatches, now: int) -> None:
        self._context = context
        self._overlay = overlay
        self._batches = batches
        self._now = now
        self._is_native = isinstance(context.dialect, NativeDialect)
        self._decode = context.dialect.decode
        self._limits = context.limits
        self._changelog = context.changelog
        self._source_topic = context.commands_topic.encode()
        limit = context.targets[self._changelog[0]].max_message_bytes
        self._keeping = keeping = Keeping(overlay, batches, self._changelog, limit)
        self._telling = telling = Telling(context, batches, now)
        # What is called for every event is looked up once.
        self._keep = keeping.keep
        self._move_on = keeping.move_on
        self._forget = keeping.forget
        self._tell = telling.tell
        self._relay = Relay(context.commands_topic, context.partition, context.targets[context.commands_topic], batches)
        # A sweep that had this cycle would keep it, and all that it holds, until the garbage collector came by.
        itself = proxy(self)
        self._sweeps = Sweeps(
            context.partition,
            now,
            context.limits,
            overlay,
            self._relay,
            lambda *decided: itself._settle(*decided),  # noqa: PLW0108
            telling.answer_many,
        )
        self.outcomes = telling.outcomes
        self.events = telling.events
        self.forwarded = 0
        """Commands passed on to the partition of their key."""
        self.delivered: list[Entry] = []
        self._steps = 0
        self._traced = False
        self.tried: set[OriginKey] = set()
        """What was to be delivered, if `fire_due` was asked to trace it."""

    @property
    def results(self) -> list[Result]:
        """The answers of this cycle."""
        return self._telling.results

    @property
    def reply_topics(self) -> set[str]:
        """Where answers go; to be resolved before `answer`."""
        return self._telling.reply_topics

    def take(self, record: CommandRecord) -> None:
        """Carry out one command record."""
        origin: Origin | None = None
        try:
            if self._is_native and (plain := plain_entry(record, self._now, self._limits)) is not None:
                name, entry = plain
                if self._overlay.get(name) is None and self._relay.is_home(entry.schedule.target.key or b""):
                    self._keep(name, entry)
                    self.outcomes[Outcome.SCHEDULED] += 1
                    self._tell(EventType.SCHEDULED, name, entry)
                    return
            mark = mark_of(record)
            if isinstance(mark, Count):
                self._sweeps.hear(mark)
                return
            if mark is not None:
                origin, record = mark, as_sent(record, mark)
            command = self._decode(record)
            if isinstance(command, CommandForMany) and command.selection is not None:
                self._begin(record, command, origin)
            else:
                self._carry_out(record, command, origin)
        except InvalidCommand as error:
            self._telling.reject(record, origin, error)
            if origin is not None:
                self._sweeps.decline(origin)

    def _carry_out(self, record: CommandRecord, command: Command, origin: Origin | None) -> None:
        name = identity(command.tenant, command.id)
        current = self._overlay.get(name)
        if current is not None and self._sweeps.any_at_work:
            current = self._sweeps.catch_up(name, current)
        decision = decide(command, current, self._now, self._limits)
        if current is None and origin is None and self._pass_on(record, command):
            return
        self._settle(name, current, decision)
        self.outcomes[decision.outcome] += 1
        if command.reply_to is not None:
            subject, sent = decision.subject, origin or record
            result = Result(
                command.name,
                command.tenant,
                command.id,
                decision.outcome,
                version=subject.schedule.version if subject is not None else None,
                next_due=decision.entry.progress.next_due if decision.entry is not None else None,
                reason=decision.reason,
                partition=sent.partition,
                offset=sent.offset,
            )
            self._telling.reply(command.reply_to, record.key, result)

    def _settle(self, name: bytes, current: Entry | None, decision: Decision) -> None:
        """Store what was decided on a schedule, and tell it."""
        if decision.event is None:
            return
        if current is None or decision.entry is None or decision.entry.schedule is not current.schedule:
            self._keep(name, decision.entry)
        else:
            self._move_on(name, decision.entry)
        if decision.subject is not None:
            self._tell(decision.event, name, decision.subject, decision.reason)
            if decision.finished:
                self._tell(EventType.FINISHED, name, decision.subject)

    def _pass_on(self, record: CommandRecord, command: Command) -> bool:
        """Copy a command for a schedule that is not here to the partition of its key, if that is another one."""
        key = command.key if record.key is None else record.key
        key = command.id.encode() if key is None else key
        if self._relay.is_home(key):
            return False
        home = self._relay.home_of(key)
        try:
            self._relay.copy(record, home)
        except RecordTooLargeError:
            return False
        self.forwarded += 1
        reason = f"the command {command.name} was passed on to partition {home}, that of its key"
        self._telling.tell_of_command(EventType.MOVED, command.tenant, command.id, reason)
        return True

    def _begin(self, record: CommandRecord, command: CommandForMany, origin: Origin | None) -> None:
        if origin is None:
            check_for_many(command, self._now, self._limits)
        self._sweeps.begin(record, command, origin)

    def sweep(self, limit: int, max_bytes: int) -> bool:
        """Carry commands for many on, by `limit` schedules or `max_bytes` of payload; tell whether there were any."""
        return self._sweeps.advance(limit, max_bytes)

    def keep_sweeps(self) -> None:
        """Note how far commands for many have come, after all that may move them on."""
        self._sweeps.keep(self._batches, self._changelog)

    def moved_to(self, position: int) -> None:
        """Note the next command to read."""
        self._keeping.moved_to(position)

    def answer(self, refusals: Refusals) -> int:
        """Add the results that were asked for; return how many have nowhere to go."""
        return self._telling.answer(refusals)

    def fire_due(self, due: DueScan, refusals: Refusals, limit: int, max_bytes: int, *, traced: bool = False) -> None:
        """Carry out what schedules that wake are to do, in order; their target topics have been resolved.

        One that wakes again at once takes its next turn in its order among the others. After `limit` turns, or when
        such turns have delivered `max_bytes` of payload, the rest is left for another cycle; so is the rest of a tenant
        that has had the turns it is allowed.
        """
        self._traced = traced
        again: list[tuple[Order, Entry]] = []
        cut = {tenant: layout.order_of(last) for tenant, last in due.cut.items()}

        turns_left = dict(due.allowed)

        def may_fire(entry: Entry) -> bool:
            tenant = entry.schedule.tenant
            left = turns_left.get(tenant, 1)
            if tenant in turns_left:
                turns_left[tenant] = left - 1
            return left > 0

        def fire(entry: Entry) -> None:
            following = self.fire(entry, refusals)
            if following is not None and following.progress.wakes_at <= self._now:
                order = layout.order_of(following)
                last = cut.get(following.schedule.tenant)
                if last is None or order < last:  # else what was not taken of its tenant has its turn first
                    heapq.heappush(again, (order, following))

        turns = size = 0
        for place, entry in enumerate([*due.entries, None]):
            while again and (entry is None or again[0][0] < layout.order_of(entry)):
                if turns + self._steps >= limit or size > max_bytes:
                    break
                following = heapq.heappop(again)[1]
                if turns_left and not may_fire(following):
                    continue
                turns += 1
                size += len(following.schedule.payload or b"")
                fire(following)
            if entry is None:
                return
            if turns + self._steps >= limit or size > max_bytes:
                for left in due.entries[place:]:
                    self._overlay.leave(left)
                return
            if turns_left and not may_fire(entry):
                self._overlay.leave(entry)
                continue
            turns += 1
            fire(entry)

    def fire(self, entry: Entry, refusals: Refusals) -> Entry | None:
        """Carry out one turn of a schedule that wakes; return how it stands afterwards."""
        name = identity_of(entry)
        if self._sweeps.any_at_work:
            current = self._sweeps.catch_up(name, entry)
            if current is None or current.progress.wakes_at > self._now:
                return current
            entry = current
        rules = self._context.rules
        turn = take_turn(entry, self._now, rules)
        if turn.event is EventType.FIRED:
            refusal = self._refusal_of(turn.subject, refusals) or self._deliver(turn.subject)
            if refusal is not None:
                turn = take_turn(entry, self._now, rules, refusal)
        if turn.entry is None:
            self._forget(name)
        else:
            self._move_on(name, turn.entry)
        self._steps += turn.steps
        if turn.skipped is not None:
            skipped = Entry(entry.schedule, turn.skipped.progress)
            self._tell(EventType.SKIPPED, name, skipped, turn.skipped.reason, turn.skipped.count)
        if turn.event is not None:
            self._tell(turn.event, name, turn.subject, turn.reason)
        if turn.finished:
            self._tell(EventType.FINISHED, name, turn.subject)
        if turn.dead_letter is not None:
            self._telling.bury(turn, turn.dead_letter)
        return turn.entry

    def _refusal_of(self, entry: Entry, refusals: Refusals) -> str | None:
        if self._traced:
            self.tried.add(origin_key(entry))
        target = entry.schedule.target
        topic = self._context.targets[target.topic]
        if topic.refusal is not None:
            return topic.refusal
        if target.partition is not None and target.partition >= topic.partitions:
            return f"topic {target.topic} has no partition {target.partition}; it has {topic.partitions}"
        if topic.is_compacted and target.key is None:
            return f"topic {target.topic} is compacted and takes no message without a key"
        return refusals.get(origin_key(entry)) if refusals else None

    def _deliver(self, subject: Entry) -> str | None:
        """Add a firing's message; return why it cannot be, if it cannot."""
        schedule = subject.schedule
        target = schedule.target
        topic = self._context.targets[target.topic]
        partition = target.partition
        if partition is None:
            key = target.key if target.partition_key is None else target.partition_key
            partition = partition_for(schedule.id.encode() if key is None else key, topic.partitions)
        try:
            self._batches.add(
                (target.topic, partition),
                target.key,
                schedule.payload,
                firing_headers(subject, self._now, self._source_topic),
                limit=topic.max_message_bytes,
                origin=subject,
            )
        except RecordTooLargeError as error:
            return str(error)
        self.delivered.append(subject)
        return None
