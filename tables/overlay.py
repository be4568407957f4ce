"""The changes of one lane cycle, over a table that does not have them yet.

An overlay is dropped when its transaction fails, and applied in one write after it has been committed.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import NEVER, Entry
from light_scheduler.wire.state import (
    POSITION_KEY,
    PROGRESS_KIND,
    SCHEDULE_KIND,
    decode_entry,
    decode_position,
    decode_progress,
    identity_of,
)

from . import layout
from .layout import PRIMARY
from .table import ScheduleTable, stored_entry

_NOT_ASKED = b""
"""Stands for what is not known here; no value is empty."""


class DueScan(NamedTuple):
    """What is due, and when (ms) the first thing left is; None when nothing is left."""

    entries: list[Entry]
    next_due: int | None


class Overlay:
    """Reads through to the table; writes stay here until `apply`. Schedules go by their identity (`wire.state`).

    `position` is the next command to read, `pending` the number of schedules; both start as the table has them.
    """

    def __init__(self, table: ScheduleTable) -> None:
        self._table = table
        self._stored = table.store.get
        self._changes: dict[bytes, bytes | None] = {}
        self._primaries: dict[bytes, bytes | None] = {}  # what the store was asked already
        self._fresh: set[bytes] = set()  # index keys of what was put here; its records are among the changes
        self._cursor = table.checkpoint.cursor
        self.position = table.checkpoint.position
        self.pending = table.pending

    def get(self, identity: bytes) -> Entry | None:
        """Return one schedule as it is with the changes so far."""
        primary = PRIMARY + identity
        found = self._primaries.get(primary, _NOT_ASKED)
        if found is _NOT_ASKED:
            found = self._primaries[primary] = self._stored(primary)
        if found is None:
            return None
        index_key = found.removesuffix(layout.SPLIT)
        value = self._value_of(index_key)
        if value is None:
            raise FormatError(f"the table's index has no record for {identity!r}")
        return stored_entry(index_key, value, self._value_of)

    def put(self, identity: bytes, entry: Entry, record: bytes) -> bool:
        """Store a schedule and its state record, in place of the one of its identity if there is one.

        Returns whether that one was split: whether its progress has a record of its own in the changelog.
        """
        primary = PRIMARY + identity
        was_split = self._forget(primary, identity)
        index_key = layout.index_key(entry, identity)
        self.pending += 1
        self._changes[index_key] = record
        self._fresh.add(index_key)
        self._changes[primary] = self._primaries[primary] = index_key
        return was_split

    def advance(self, identity: bytes, entry: Entry, record: bytes) -> None:
        """Store how far a schedule has come, as its progress record; its definition stays as it is.

        Without a definition it is the progress of a schedule that compaction has removed from the changelog: nothing.
        """
        primary = PRIMARY + identity
        old = self._primary_of(primary)
        if old is None:
            return
        if not old.endswith(layout.SPLIT):
            self._changes[layout.DEFINITION + identity] = self._value_of(old)
        self._drop(old.removesuffix(layout.SPLIT))
        index_key = layout.index_key(entry, identity)
        self._changes[index_key] = layout.PROGRESS_ONLY + record
        self._fresh.add(index_key)
        self._changes[primary] = self._primaries[primary] = index_key + layout.SPLIT

    def remove(self, identity: bytes) -> bool:
        """Forget a schedule, if there is one. Returns whether it was split."""
        primary = PRIMARY + identity
        was_split = self._forget(primary, identity)
        self._changes[primary] = self._primaries[primary] = None
        return was_split

    def due(self, until: int, limit: int, max_bytes: int) -> DueScan:
        """Take what is due at or before `until` (ms), in order of (due, priority, arrival).

        Stops after `limit` entries or when their records pass `max_bytes`. Every entry taken must be removed, or put
        again, in this same overlay: the scan cursor moves past it. To be called once per overlay.
        """
        bound = layout.index_from(until + 1)
        fresh = sorted(key for key in self._fresh if key < bound)
        taken: list[Entry] = []
        size, next_fresh = 0, 0
        next_due: int | None = None
        stored = self._table.store.scan(self._cursor, layout.INDEX_END)
        for key, value in stored:
            while next_fresh < len(fresh) and fresh[next_fresh] < key and len(taken) < limit:
                taken.append(self._fresh_entry(fresh[next_fresh]))
                next_fresh += 1
            if key >= bound or len(taken) >= limit or size > max_bytes:
                self._cursor = key
                left_stored = next((k for k, _ in chain([(key, value)], stored) if k not in self._changes), None)
                next_due = None if left_stored is None else layout.due_of(left_stored)
                break
            self._cursor = key + b"\0"
            if key not in self._changes:  # else it was replaced or cancelled in this cycle
                entry = stored_entry(key, value, self._value_of)
                taken.append(entry)
                is_split = value.startswith(layout.PROGRESS_ONLY)
                self._primaries[PRIMARY + key[layout.INDEX_BYTES :]] = key + layout.SPLIT if is_split else key
                size += len(value) + (len(entry.schedule.payload or b"") if is_split else 0)
        room = max(0, limit - len(taken)) if size <= max_bytes else 0
        taken += [self._fresh_entry(key) for key in fresh[next_fresh : next_fresh + room]]
        taken_fresh = set(fresh[: next_fresh + room])
        left = min(self._fresh - taken_fresh if taken_fresh else self._fresh, default=None)
        if left is not None:
            next_due = layout.due_of(left) if next_due is None else min(next_due, layout.due_of(left))
        return DueScan(taken, None if next_due == NEVER else next_due)

    def leave(self, entry: Entry) -> None:
        """Give a schedule back that was taken as due and not dealt with; so are all that were taken after it."""
        self._cursor = min(self._cursor, layout.index_key(entry, identity_of(entry)))

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one changelog record. Raises FormatTooNew or FormatError."""
        if key == POSITION_KEY:
            self.position = decode_position(value or b"")
        elif key[:1] == PROGRESS_KIND:
            if value is not None:
                self._replay_progress(key[1:], value)
        elif key[:1] == SCHEDULE_KIND:
            if value is None:
                self.remove(key[1:])
            else:
                self.put(key[1:], decode_entry(value), value)
        else:
            raise FormatError(f"a changelog record has a key of an unknown kind: {key[:1]!r}")

    def apply(self, *, changelog_offset: int, written_at: int) -> None:
        """Write everything to the table at once, with the changelog offset that it reaches and the time (ms)."""
        self._table.write(
            self._changes,
            msgspec.structs.replace(
                self._table.checkpoint,
                changelog_offset=changelog_offset,
                position=self.position,
                cursor=min((self._cursor, *self._fresh)),  # an entry put here may be due before all that was scanned
                pending=self.pending,
                written_at=written_at,
            ),
        )

    def _fresh_entry(self, index_key: bytes) -> Entry:
        return stored_entry(index_key, self._changes[index_key] or b"", self._value_of)

    def _replay_progress(self, identity: bytes, record: bytes) -> None:
        progress = decode_progress(record)
        entry = self.get(identity)
        if entry is not None:
            self.advance(identity, Entry(entry.schedule, progress), record)

    def _forget(self, primary: bytes, identity: bytes) -> bool:
        old = self._primaries.get(primary, _NOT_ASKED)
        if old is _NOT_ASKED:
            old = self._stored(primary)
        if old is None:
            return False
        self.pending -= 1
        was_split = old.endswith(layout.SPLIT)
        if was_split:
            old = old.removesuffix(layout.SPLIT)
            self._changes[layout.DEFINITION + identity] = None
        self._drop(old)
        return was_split

    def _drop(self, index_key: bytes) -> None:
        self._changes[index_key] = None
        self._fresh.discard(index_key)

    def _value_of(self, key: bytes) -> bytes | None:
        value = self._changes.get(key, _NOT_ASKED)
        return self._stored(key) if value is _NOT_ASKED else value

    def _primary_of(self, primary: bytes) -> bytes | None:
        found = self._primaries.get(primary, _NOT_ASKED)
        if found is _NOT_ASKED:
            found = self._primaries[primary] = self._stored(primary)
        return found
