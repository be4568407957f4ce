"""Storing how schedules stand: in a cycle's overlay and, in the same words, in the changelog."""

from __future__ import annotations

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Entry
from light_scheduler.tables import Overlay
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    encode_entry,
    encode_position,
    encode_progress,
)

from .batches import RecordBatches, RecordTooLargeError

SPLIT_BYTES = 1_024
"""A state record larger than that is not written again for every step of its schedule: only its progress is."""


class Keeping:
    """Writes to an overlay and to one partition of the changelog, whose records may have `limit` bytes."""

    def __init__(self, overlay: Overlay, batches: RecordBatches, changelog: tuple[str, int], limit: int) -> None:
        self._overlay = overlay
        self._batches = batches
        self._changelog = changelog
        self._limit = limit

    def keep(self, name: bytes, entry: Entry | None) -> None:
        """Keep a new definition; None: there is none any more. Raises InvalidCommand if it is too large."""
        if entry is None:
            self.forget(name)
            return
        try:
            self._put(name, entry, encode_entry(entry))
        except RecordTooLargeError as error:
            raise InvalidCommand("payload", f"is too large to be kept with its headers: {error}") from error

    def move_on(self, name: bytes, following: Entry) -> None:
        """Keep how a schedule stands whose definition is what it was."""
        if len(following.schedule.payload or b"") <= SPLIT_BYTES:
            record = encode_entry(following)
            if len(record) <= SPLIT_BYTES:
                self._put(name, following, record)
                return
        record = encode_progress(following.progress)
        self._batches.add(self._changelog, PROGRESS_KIND + name, record)
        self._overlay.advance(name, following, record)

    def forget(self, name: bytes) -> None:
        """Keep nothing of a schedule."""
        self._batches.add(self._changelog, SCHEDULE_KIND + name, None)
        if self._overlay.remove(name):
            self._batches.add(self._changelog, PROGRESS_KIND + name, None)

    def moved_to(self, position: int) -> None:
        """Note the next command to read."""
        self._overlay.position = position
        self._batches.add(self._changelog, POSITION_KEY, encode_position(position))

    def _put(self, name: bytes, entry: Entry, record: bytes) -> None:
        self._batches.add(self._changelog, SCHEDULE_KIND + name, record, limit=self._limit)
        if self._overlay.put(name, entry, record):
            self._batches.add(self._changelog, PROGRESS_KIND + name, None)
