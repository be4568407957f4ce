"""Collects the transaction of one cycle: its records, state changes and input position."""

from __future__ import annotations

from collections import Counter, defaultdict

from light_scheduler.errors import InvalidCommand
from light_scheduler.kafka.batches import RecordBatches
from light_scheduler.kafka.refusals import RecordTooLargeError
from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.model import BulkTotal, Entry, Outcome
from light_scheduler.tables import Overlay
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    encode_entry,
    encode_position,
    encode_progress,
)

from .dead_letters import DeadLetters
from .history import History

SPLIT_BYTES = 1_024
"""If a state record is larger, only the schedule's progress is written when that changes."""


class Transaction:
    """The writes of a cycle so far. If dropped, it leaves no trace. `now` (UTC epoch ms) is when the cycle decides.

    A state change goes into the overlay and, as a record, into the batch of the changelog. Nothing here refers back to
    its users, so a transaction is freed with its cycle, not by the garbage collector.
    """

    def __init__(self, context: CycleContext, overlay: Overlay, batches: RecordBatches, now: int) -> None:
        self.context = context
        self.overlay = overlay
        self.batches = batches
        self.now = now
        self.history = History(context, batches, now)
        self.dead_letters = DeadLetters(context, batches, now)
        self.outcomes: Counter[Outcome] = Counter()
        self.tenants = context.tenants.book
        if self.tenants.counted:
            overlay.count_tenants()
        context.memory.command_rates.begin()
        context.memory.command_rates.earn(context.rate_part, now)
        self.over_quota = 0
        """The number of commands rejected because of a tenant's quota."""
        self.delayed = 0
        """The number of commands delayed because of a tenant's quota."""
        self.delivered: list[Entry] = []
        self.firings: defaultdict[str, Counter[int]] = defaultdict(Counter)
        """The number of delivered firings, per tenant and due time (UTC epoch ms)."""
        self.probes: list[str] = []
        """The random numbers of the stored probes."""
        self.forwarded = 0
        """The number of commands forwarded to the partition of their key."""
        self.relayed = self.moved = self.adopted = 0
        """Moves due to the topic's growth: commands forwarded, schedules handed over, and schedules taken over."""
        self.unreported: list[BulkTotal] = []
        """Totals of bulk commands that ended without the reports of some partitions."""
        self._changelog = context.changelog

    def store(self, name: bytes, entry: Entry | None) -> None:
        """Store a new definition; None removes the schedule. Raises InvalidCommand if it is too large."""
        if entry is None:
            self.remove(name)
            return
        try:
            self._put(name, entry, encode_entry(entry))
        except RecordTooLargeError as error:
            raise InvalidCommand("payload", f"is too large to be stored with its headers: {error}") from error

    def advance(self, name: bytes, following: Entry) -> None:
        """Store the progress of a schedule whose definition has not changed."""
        if len(following.schedule.payload or b"") <= SPLIT_BYTES:
            record = encode_entry(following)
            if len(record) <= SPLIT_BYTES:
                self._put(name, following, record)
                return
        record = encode_progress(following.progress)
        self.batches.add(self._changelog, PROGRESS_KIND + name, record)
        self.overlay.advance(name, following, record)

    def remove(self, name: bytes) -> None:
        """Remove a schedule from the state."""
        self.batches.add(self._changelog, SCHEDULE_KIND + name, None)
        if self.overlay.remove(name):
            self.batches.add(self._changelog, PROGRESS_KIND + name, None)

    def store_record(self, key: bytes, record: bytes | None) -> None:
        """Store a state record that is not a schedule; None removes it."""
        self.batches.add(self._changelog, key, record)
        self.overlay.others.put(key, record)

    def moved_to(self, position: int) -> None:
        """Note the position of the next command to read."""
        self.overlay.position = position
        self.batches.add(self._changelog, POSITION_KEY, encode_position(position, self.overlay.commands_log))

    def _put(self, name: bytes, entry: Entry, record: bytes) -> None:
        self.batches.add(self._changelog, SCHEDULE_KIND + name, record)
        if self.overlay.put(name, entry, record):
            self.batches.add(self._changelog, PROGRESS_KIND + name, None)
