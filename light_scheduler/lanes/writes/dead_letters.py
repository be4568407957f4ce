"""Writes dead letters for rejected commands and undeliverable firings, as part of a cycle's batches."""

from __future__ import annotations

import logging

from msgspec.structs import replace

from light_scheduler.engine import Turn
from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.model import DeadLetter, DeadLetterCause
from light_scheduler.wire import CommandRecord, encode_dead_letter
from light_scheduler.wire.dialect import Envelope
from light_scheduler.wire.events import CONTENT_TOO_LARGE, SCHEDULE_KEY_TOO_LARGE
from light_scheduler.wire.firing import told_key
from light_scheduler.wire.record import sent_at

log = logging.getLogger(__name__)


class DeadLetters:
    """Adds dead letters to a cycle's batches."""

    def __init__(self, context: CycleContext, batches: RecordBatches, now: int) -> None:
        self._context = context
        self._batches = batches
        self._now = now

    def add_command(self, record: CommandRecord, envelope: Envelope, error: InvalidCommand) -> None:
        """Add a dead letter for a rejected command. It says where the sender's record is."""
        sent = sent_at(record)
        self._add(
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
                is_tenant_known=envelope.is_tenant_known,
            )
        )

    def add_firing(self, turn: Turn, cause: DeadLetterCause) -> None:
        """Add a dead letter for a firing that is not delivered."""
        schedule = turn.subject.schedule
        self._add(
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
                target_partition=schedule.target.partition,
                target_partition_key=schedule.target.partition_key,
                original_due=turn.subject.progress.first_due,
                schedule_key=told_key(schedule),
            )
        )

    def _add(self, letter: DeadLetter) -> None:
        place = self._context.own_place(self._context.names.dead_letters)
        key, value, headers = encode_dead_letter(letter, self._context.commands_topic)
        try:
            self._batches.add(place, key, value, headers)
        except RecordTooLargeError:
            self._add_less(place, letter)

    def _add_less(self, place: tuple[str, int], letter: DeadLetter) -> None:
        """Keep what the topic takes of a letter that is too large: it is better without the schedule's key than without
        its content. The last header says what is left out. All bytes are in the commands topic, at the source that the
        headers name.
        """
        without_key = replace(letter, schedule_key=None)
        key, value, headers = encode_dead_letter(without_key, self._context.commands_topic)
        ours = headers[len(letter.headers) :]
        for attempt in (
            (key, value, [*headers, SCHEDULE_KEY_TOO_LARGE] if letter.schedule_key is not None else headers),
            (None, None, [*ours, CONTENT_TOO_LARGE]),
        ):
            try:
                self._batches.add(place, *attempt)
            except RecordTooLargeError as error:
                refused = error
            else:
                return
        log.warning("%s", refused)
