"""One lane cycle in the making: commands and due schedules become state changes and records.

It decides nothing (the engine does) and sends nothing (the lane does): it turns the one's decisions into the other's
batches. A cycle that is dropped leaves no trace.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from weakref import proxy

import msgspec
from msgspec import UNSET, UnsetType

from light_scheduler.engine import (
    Decision,
    FiringRules,
    Limits,
    Turn,
    check_for_many,
    decide,
    event_of,
    plain_entry,
    result_of,
    take_turn,
)
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    EQUAL_SHARES,
    NEVER,
    Command,
    CommandForMany,
    DeadLetter,
    DeadLetterCause,
    Entry,
    EventType,
    HistoryEvent,
    Outcome,
    ReplyTo,
    Result,
    Shares,
    Tally,
    TopicNames,
)
from light_scheduler.tables import DueScan, Overlay, layout
from light_scheduler.tables.layout import Order
from light_scheduler.wire import (
    CommandRecord,
    Dialect,
    encode_dead_letter,
    encode_history,
    encode_result,
    firing_headers,
    history_key,
    history_key_of,
    partition_for,
    result_headers,
)
from light_scheduler.wire.build import ANY
from light_scheduler.wire.native import NativeDialect
from light_scheduler.wire.relay import Count, Origin, as_sent, mark_of
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    encode_entry,
    encode_position,
    encode_progress,
    identity,
    identity_of,
)

from .batches import RecordBatches, RecordTooLargeError, UserRecord
from .relay import Relay
from .staging import NO_STAGING, Staging
from .sweeping import Sweeps
from .targets import Targets

LONGEST_TOLD = 10_000
"""Characters of a sender's own text that are repeated to tell what was wrong with it; no legal id is longer."""

SPLIT_BYTES = 1_024
"""A state record larger than that is not written again for every step of its schedule: only its progress is."""

OriginKey = tuple[str, str | None, int | None, int]

Refusals = dict[OriginKey, str]
"""What a topic of the user's refuses, and why."""


def origin_key(origin: UserRecord) -> OriginKey:
    """Name a schedule's next firing, or a command's answer, over several tries of a cycle."""
    if isinstance(origin, Entry):
        schedule = origin.schedule  # another version may be due at the same instant, and be nothing to refuse
        return schedule.tenant, schedule.id, origin.progress.due, schedule.version
    return "", None, origin.offset, -1 if origin.partition is None else origin.partition


@dataclass(frozen=True)
class LaneContext:
    """What a lane's cycles have in common."""

    commands_topic: str
    partition: int
    dialect: Dialect
    names: TopicNames
    limits: Limits
    rules: FiringRules
    targets: Targets
    shares: Shares = EQUAL_SHARES
    staging: Staging = NO_STAGING

    @property
    def changelog(self) -> tuple[str, int]:
        return self.names.changelog(self.commands_topic), self.partition

    @property
    def own_topics(self) -> set[str]:
        """The topics that every cycle may write to."""
        return {self.commands_topic, self.changelog[0], self.names.history, self.names.dead_letters}

    def concerns(self, record: CommandRecord, schedules: Collection[bytes]) -> bool:
        """Tell whether a command may change one of these schedules, which go by their identity (`wire.state`).

        One that is not plainly about another schedule may.
        """
        try:
            command = self.dialect.decode(record)
        except InvalidCommand:
            return True
        if isinstance(command, CommandForMany) and command.selection is not None:
            return True
        return identity(command.tenant, command.id) in schedules


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
        self._changelog_limit = context.targets[self._changelog[0]].max_message_bytes
        self._history = self._own(context.names.history)
        self._source_topic = context.commands_topic.encode()
        self._replies: list[tuple[ReplyTo, bytes | None, Result]] = []
        self._relay = Relay(context.commands_topic, context.partition, context.targets[context.commands_topic], batches)
        # Not bound to this cycle: it would keep itself, and all that it holds, until the garbage collector came by.
        itself = proxy(self)
        self._sweeps = Sweeps(
            context.partition,
            now,
            context.limits,
            overlay,
            self._relay,
            lambda *decided: itself._settle(*decided),  # noqa: PLW0108
            lambda tally: itself._answer_many(tally),  # noqa: PLW0108
        )
        self.outcomes: Counter[Outcome] = Counter()
        self.events: Counter[EventType] = Counter()
        self.forwarded = 0
        """Commands passed on to the partition of their key."""
        self.delivered: list[Entry] = []
        self._steps = 0
        self._traced = False
        self.tried: set[OriginKey] = set()
        """What was to be delivered, if `fire_due` was asked to trace it."""

    def _own(self, topic: str) -> tuple[str, int]:
        """One partition of a topic of ours for all of a lane: few partitions in a transaction, and its order kept."""
        return topic, self._context.partition % self._context.targets[topic].partitions

    @property
    def results(self) -> list[Result]:
        """The answers of this cycle."""
        return [result for _, _, result in self._replies]

    @property
    def reply_topics(self) -> set[str]:
        """Where answers go; to be resolved before `answer`."""
        return {reply_to.topic for reply_to, _, _ in self._replies}

    def take(self, record: CommandRecord) -> None:
        """Carry out one command record."""
        origin: Origin | None = None
        try:
            if self._is_native and (plain := plain_entry(record, self._now, self._limits)) is not None:
                name, entry = plain
                if self._overlay.get(name) is None and self._relay.is_home(entry.schedule.target.key or b""):
                    self._keep(name, entry)
                    self.outcomes[Outcome.SCHEDULED] += 1
                    self._record(EventType.SCHEDULED, name, entry)
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
            self._reject(record, origin, error)
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
            self._replies.append((command.reply_to, record.key, result))

    def _settle(self, name: bytes, current: Entry | None, decision: Decision) -> None:
        """Store what was decided on a schedule, and tell it."""
        if decision.event is None:
            return
        if current is None or decision.entry is None or decision.entry.schedule is not current.schedule:
            self._keep(name, decision.entry)
        else:
            self._move_on(name, decision.entry)
        if decision.subject is not None:
            self._record(decision.event, name, decision.subject, decision.reason)
            if decision.finished:
                self._record(EventType.FINISHED, name, decision.subject)

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
        self._tell_of_command(EventType.MOVED, command.tenant, command.id, reason)
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

    def _answer_many(self, tally: Tally) -> None:
        command, event, result = tally.command, event_of(tally, self._now), result_of(tally)
        self.outcomes[result.outcome] += 1
        self.events[event.event] += 1
        self._batches.add(self._history, history_key(event.tenant, event.id), encode_history(event))
        if command.reply_to is not None:
            self._replies.append((command.reply_to, command.key, result))

    def moved_to(self, position: int) -> None:
        """Note the next command to read."""
        self._overlay.position = position
        self._batches.add(self._changelog, POSITION_KEY, encode_position(position))

    def answer(self, refusals: Refusals) -> int:
        """Add the results that were asked for; return how many have nowhere to go."""
        lost = 0
        for reply_to, key, result in self._replies:
            topic = self._context.targets[reply_to.topic]
            is_refused = topic.refusal is not None or (topic.is_compacted and key is None)
            if is_refused or (refusals and origin_key(result) in refusals):
                lost += 1
                continue
            partition = self._context.partition if key is None else partition_for(key, topic.partitions)
            try:
                self._batches.add(
                    (reply_to.topic, partition % topic.partitions),
                    key,
                    encode_result(result),
                    result_headers(reply_to.correlation_id),
                    limit=topic.max_message_bytes,
                    origin=result,
                )
            except RecordTooLargeError:  # its key or its correlation id is: both are the sender's
                lost += 1
        return lost

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
            self._record(EventType.SKIPPED, name, skipped, turn.skipped.reason, turn.skipped.count)
        if turn.event is not None:
            self._record(turn.event, name, turn.subject, turn.reason)
        if turn.finished:
            self._record(EventType.FINISHED, name, turn.subject)
        if turn.dead_letter is not None:
            self._bury(turn, turn.dead_letter)
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

    def _move_on(self, name: bytes, following: Entry) -> None:
        """Keep how a schedule stands whose definition is what it was."""
        if len(following.schedule.payload or b"") <= SPLIT_BYTES:
            record = encode_entry(following)
            if len(record) <= SPLIT_BYTES:
                self._put(name, following, record)
                return
        record = encode_progress(following.progress)
        self._batches.add(self._changelog, PROGRESS_KIND + name, record)
        self._overlay.advance(name, following, record)

    def _forget(self, name: bytes) -> None:
        self._batches.add(self._changelog, SCHEDULE_KIND + name, None)
        if self._overlay.remove(name):
            self._batches.add(self._changelog, PROGRESS_KIND + name, None)

    def _keep(self, name: bytes, entry: Entry | None) -> None:
        if entry is None:
            self._forget(name)
            return
        try:
            self._put(name, entry, encode_entry(entry))
        except RecordTooLargeError as error:
            raise InvalidCommand("payload", f"is too large to be kept with its headers: {error}") from error

    def _put(self, name: bytes, entry: Entry, record: bytes) -> None:
        self._batches.add(self._changelog, SCHEDULE_KIND + name, record, limit=self._changelog_limit)
        if self._overlay.put(name, entry, record):
            self._batches.add(self._changelog, PROGRESS_KIND + name, None)

    def _record(
        self, event: EventType, name: bytes, entry: Entry, reason: str | None = None, count: int | UnsetType = UNSET
    ) -> None:
        schedule, progress = entry.schedule, entry.progress
        self.events[event] += 1
        self._batches.add(
            self._history,
            history_key_of(name),
            encode_history(
                HistoryEvent(
                    event,
                    schedule.tenant,
                    schedule.id,
                    schedule.version,
                    progress.due if progress.due != NEVER else progress.next_due,
                    self._now,
                    progress.sequence,
                    progress.attempt,
                    schedule.target.topic,
                    reason,
                    self._context.partition,
                    count,
                )
            ),
        )

    def _tell_of_command(self, event: EventType, tenant: str, id: str | None, reason: str) -> None:
        """Record what became of a command that no schedule here is concerned by."""
        self.events[event] += 1
        self._batches.add(
            self._history,
            history_key(tenant, id),
            encode_history(
                HistoryEvent(
                    event,
                    tenant,
                    id,
                    version=None,
                    due=None,
                    at=self._now,
                    sequence=None,
                    attempt=None,
                    target_topic=None,
                    reason=reason,
                    partition=self._context.partition,
                )
            ),
        )

    def _reject(self, record: CommandRecord, origin: Origin | None, error: InvalidCommand) -> None:
        sent = origin or record
        envelope = self._context.dialect.salvage(record)
        if envelope.id is not None and len(envelope.id) > LONGEST_TOLD:
            envelope = msgspec.structs.replace(envelope, id=None)
        error = InvalidCommand(_told(error.field), _told(error.reason))
        self.outcomes[Outcome.REJECTED] += 1
        self._tell_of_command(EventType.REJECTED, envelope.tenant, envelope.id, str(error))
        self._add_dead_letter(
            DeadLetter(
                DeadLetterCause.REJECTED,
                error.reason,
                error.field,
                envelope.tenant,
                envelope.id,
                self._now,
                due=None,
                target_topic=None,
                source_partition=sent.partition,
                source_offset=sent.offset,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
            )
        )
        if origin is not None and (envelope.id or "").endswith(ANY):
            return  # the tally is the answer
        if envelope.reply_to is not None and envelope.reply_to.topic not in self._context.limits.internal_topics:
            result = Result(
                envelope.command,
                envelope.tenant,
                envelope.id,
                Outcome.REJECTED,
                reason=error.reason,
                field=error.field,
                partition=sent.partition,
                offset=sent.offset,
            )
            self._replies.append((envelope.reply_to, record.key, result))

    def _bury(self, turn: Turn, cause: DeadLetterCause) -> None:
        schedule = turn.subject.schedule
        self._add_dead_letter(
            DeadLetter(
                cause,
                turn.reason or "",
                field=None,
                tenant=schedule.tenant,
                id=schedule.id,
                at=self._now,
                due=turn.subject.progress.due,
                target_topic=schedule.target.topic,
                source_partition=schedule.source_partition,
                source_offset=schedule.source_offset,
                key=schedule.target.key,
                value=schedule.payload,
                headers=schedule.headers,
            )
        )

    def _add_dead_letter(self, letter: DeadLetter) -> None:
        topic = self._context.names.dead_letters
        limit = self._context.targets[topic].max_message_bytes
        key, value, headers = encode_dead_letter(letter, self._context.commands_topic)
        try:
            self._batches.add(self._own(topic), key, value, headers, limit=limit)
        except RecordTooLargeError:
            # Its bytes are in the commands topic, at the source that the headers name.
            ours = headers[len(letter.headers) :]
            dropped = ("dead-letter-dropped", b"key, value and headers: too large for this topic")
            self._batches.add(self._own(topic), None, None, [*ours, dropped], limit=limit)


def _told(text: str) -> str:
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}..."
