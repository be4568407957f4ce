"""Writes the history of a lane's schedules and commands, as part of a cycle's batches."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from msgspec import UNSET, UnsetType

from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.context.tracing import TracedEvent, sampled_parent
from light_scheduler.model import NEVER, Entry, EventType, HistoryEvent, Requester
from light_scheduler.wire import encode_history, history_key, history_key_of

SHORT_REASON = 100
"""Maximum characters of a reason in an event that was too large for the topic."""

log = logging.getLogger(__name__)


class History:
    """Adds history events to a cycle's batches, and counts them."""

    def __init__(self, context: CycleContext, batches: RecordBatches, now: int) -> None:
        self._context = context
        self._batches = batches
        self._now = now
        self._place = context.own_place(context.names.history)
        self.events: Counter[EventType] = Counter()
        self.requester: Requester | None = None
        """The HTTP sender of the command whose events are being recorded, or None if it came another way."""
        self.traced: list[TracedEvent] | None = None if context.shared.tracing is None else []
        """Events of schedules whose commands belong to traces. None if tracing is off."""

    def record(
        self, event: EventType, name: bytes, entry: Entry, reason: str | None = None, count: int | UnsetType = UNSET
    ) -> None:
        """Record an event of a schedule. `entry` is its state in the event, and `name` its identity."""
        schedule, progress = entry.schedule, entry.progress
        if self.traced is not None and (parent := sampled_parent(entry)) is not None:
            self.traced.append(TracedEvent(event, entry, parent, reason))
        self.add(
            history_key_of(name),
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
            ),
        )

    def record_command(self, event: EventType, tenant: str, id: str | None, reason: str) -> None:
        """Record the outcome of a command that changes no schedule here."""
        self.add(
            history_key(tenant, id),
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
            ),
        )

    def add(self, key: bytes, event: HistoryEvent) -> None:
        """Add an event. If it is too large for the topic, its reason is shortened. If it still is, it is dropped."""
        self.events[event.event] += 1
        if self.requester is not None:
            event = msgspec.structs.replace(event, by=self.requester.by, address=self.requester.address)
        try:
            self._batches.add(self._place, key, encode_history(event))
        except RecordTooLargeError:  # the topic has a low limit, or the event repeats a user's text
            reason = None if event.reason is None else shortened(event.reason, SHORT_REASON)
            try:
                self._batches.add(self._place, key, encode_history(msgspec.structs.replace(event, reason=reason)), [])
            except RecordTooLargeError as error:
                log.warning("%s", error)

    @contextmanager
    def asked_for_by(self, requester: Requester | None) -> Iterator[None]:
        """Name the sender in all events that are recorded in the block."""
        before, self.requester = self.requester, requester
        try:
            yield
        finally:
            self.requester = before


def shortened(text: str, longest: int) -> str:
    """Return the first `longest` characters of a text, with an ellipsis for the rest."""
    return text if len(text) <= longest else f"{text[:longest]}..."
