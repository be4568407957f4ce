"""The changes of one lane cycle, over a table that does not have them yet.

An overlay is dropped when its transaction fails, and applied in one write after it has been committed.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import Entry
from light_scheduler.wire.state import POSITION_KEY, SCHEDULE_KIND, decode_entry, decode_position, identity_of

from . import layout
from .layout import PRIMARY
from .table import ScheduleTable

_NOT_ASKED = b""
"""Stands for what the store has not been asked for yet; no index key is empty."""


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
        index_key = self._primaries.get(primary, _NOT_ASKED)
        if index_key is _NOT_ASKED:
            index_key = self._primaries[primary] = self._stored(primary)
        if index_key is None:
            return None
        value = self._changes[index_key] if index_key in self._fresh else self._stored(index_key)
        if value is None:
            raise FormatError(f"the table's index has no record for {identity!r}")
        return decode_entry(value)

    def put(self, identity: bytes, entry: Entry, record: bytes) -> None:
        """Store a schedule and its state record, in place of the one of its identity if there is one."""
        primary = PRIMARY + identity
        old = self._primaries.get(primary, _NOT_ASKED)
        if old is _NOT_ASKED:
            old = self._stored(primary)
        if old is None:
            self.pending += 1
        else:
            self._changes[old] = None
            self._fresh.discard(old)
        index_key = layout.index_key(entry, identity)
        self._changes[index_key] = record
        self._fresh.add(index_key)
        self._changes[primary] = self._primaries[primary] = index_key

    def remove(self, identity: bytes) -> None:
        """Forget a schedule, if there is one."""
        primary = PRIMARY + identity
        old = self._index_key_of(primary)
        if old is not None:
            self.pending -= 1
            self._changes[old] = None
            self._fresh.discard(old)
        self._changes[primary] = self._primaries[primary] = None

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
                entry = decode_entry(value)
                taken.append(entry)
                self._primaries[PRIMARY + identity_of(entry)] = key
                size += len(value)
        room = max(0, limit - len(taken)) if size <= max_bytes else 0
        taken += [self._fresh_entry(key) for key in fresh[next_fresh : next_fresh + room]]
        taken_fresh = set(fresh[: next_fresh + room])
        left = min(self._fresh - taken_fresh if taken_fresh else self._fresh, default=None)
        if left is not None:
            next_due = layout.due_of(left) if next_due is None else min(next_due, layout.due_of(left))
        return DueScan(taken, next_due)

    def replay(self, key: bytes, value: bytes | None) -> None:
        """Apply one changelog record. Raises FormatTooNew or FormatError."""
        if key == POSITION_KEY:
            self.position = decode_position(value or b"")
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
        return decode_entry(self._changes[index_key] or b"")

    def _index_key_of(self, primary: bytes) -> bytes | None:
        index_key = self._primaries.get(primary, _NOT_ASKED)
        if index_key is _NOT_ASKED:
            index_key = self._primaries[primary] = self._stored(primary)
        return index_key
