"""What a cycle tells of itself: history, dead letters, and the answers that were asked for."""

from __future__ import annotations

from collections import Counter

import msgspec
from msgspec import UNSET, UnsetType

from light_scheduler.engine import Turn, event_of, result_of
from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    NEVER,
    DeadLetter,
    DeadLetterCause,
    Entry,
    EventType,
    HistoryEvent,
    Outcome,
    ReplyTo,
    Result,
    Tally,
)
from light_scheduler.wire import (
    CommandRecord,
    encode_dead_letter,
    encode_history,
    encode_result,
    history_key,
    history_key_of,
    partition_for,
    result_headers,
)
from light_scheduler.wire.build import ANY
from light_scheduler.wire.relay import Origin

from .batches import RecordBatches, RecordTooLargeError
from .context import LaneContext, Refusals, origin_key

LONGEST_TOLD = 10_000
"""Characters of a sender's own text that are repeated to tell what was wrong with it; no legal id is longer."""


class Telling:
    """Writes to a cycle's batches, and counts outcomes and events."""

    def __init__(self, context: LaneContext, batches: RecordBatches, now: int) -> None:
        self._context = context
        self._batches = batches
        self._now = now
        self._history = context.own_place(context.names.history)
        self._replies: list[tuple[ReplyTo, bytes | None, Result]] = []
        self.outcomes: Counter[Outcome] = Counter()
        self.events: Counter[EventType] = Counter()

    @property
    def results(self) -> list[Result]:
        """The answers of this cycle."""
        return [result for _, _, result in self._replies]

    @property
    def reply_topics(self) -> set[str]:
        """Where answers go; to be resolved before `answer`."""
        return {reply_to.topic for reply_to, _, _ in self._replies}

    def tell(
        self, event: EventType, name: bytes, entry: Entry, reason: str | None = None, count: int | UnsetType = UNSET
    ) -> None:
        """Record in the history what happened to a schedule, which stands as `entry` says; `name` is its identity."""
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

    def tell_of_command(self, event: EventType, tenant: str, id: str | None, reason: str) -> None:
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

    def reply(self, reply_to: ReplyTo, key: bytes | None, result: Result) -> None:
        """Note an answer that was asked for with a command of this key."""
        self._replies.append((reply_to, key, result))

    def answer_many(self, tally: Tally) -> None:
        """Tell and answer a command for many that all partitions have carried out."""
        command, event, result = tally.command, event_of(tally, self._now), result_of(tally)
        self.outcomes[result.outcome] += 1
        self.events[event.event] += 1
        self._batches.add(self._history, history_key(event.tenant, event.id), encode_history(event))
        if command.reply_to is not None:
            self.reply(command.reply_to, command.key, result)

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

    def reject(self, record: CommandRecord, origin: Origin | None, error: InvalidCommand) -> None:
        """Answer a command that is wrong, tell it, and keep it as a dead letter."""
        sent = origin or record
        envelope = self._context.dialect.salvage(record)
        if envelope.id is not None and len(envelope.id) > LONGEST_TOLD:
            envelope = msgspec.structs.replace(envelope, id=None)
        error = InvalidCommand(_told(error.field), _told(error.reason))
        self.outcomes[Outcome.REJECTED] += 1
        self.tell_of_command(EventType.REJECTED, envelope.tenant, envelope.id, str(error))
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
            self.reply(envelope.reply_to, record.key, result)

    def bury(self, turn: Turn, cause: DeadLetterCause) -> None:
        """Keep a firing as a dead letter."""
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
            self._batches.add(self._context.own_place(topic), key, value, headers, limit=limit)
        except RecordTooLargeError:
            # Its bytes are in the commands topic, at the source that the headers name.
            ours = headers[len(letter.headers) :]
            dropped = ("dead-letter-dropped", b"key, value and headers: too large for this topic")
            self._batches.add(self._context.own_place(topic), None, None, [*ours, dropped], limit=limit)


def _told(text: str) -> str:
    return text if len(text) <= LONGEST_TOLD else f"{text[:LONGEST_TOLD]}..."
