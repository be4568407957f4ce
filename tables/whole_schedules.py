"""Puts, moves and removes many whole schedules of one tenant in an overlay, at minimal cost.

These are fast versions of `Overlay.put` and `Overlay.remove` for simple cases: putting new schedules of default
priority, and moving or removing whole ones. A whole schedule has one record; a split one has two (see `layout`).
"""

from __future__ import annotations

from light_scheduler.model import DEFAULT_PRIORITY

from . import layout
from .rows import NOT_ASKED, Rows


class WholeSchedules:
    """Changes whole schedules of one tenant in an overlay. New index keys are added to `fresh`.

    Ids are in UTF-8. `change` is the change of the number of schedules.
    """

    def __init__(self, tenant: str, rows: Rows, fresh: set[bytes]) -> None:
        self.change = 0
        self._stored = rows.stored
        self._changes = rows.changes
        self._primaries, self._written = rows.primaries, rows.written
        self._fresh = fresh
        self._added, self._removed = rows.cells.added, rows.cells.removed
        self._number_of = rows.cells.pending_number
        self._topic: str | None = None  # of the last schedule put, with the number of its group
        self._number = b""
        self._minute = layout.minute_of(tenant)
        self._tenant = tenant
        self.key_start = layout.primary_key(tenant, "")
        self._index_key = layout.index_keys(tenant, DEFAULT_PRIORITY)
        self._moved = layout.moved_keys(tenant)

    def is_new(self, id: bytes) -> bool:
        """Return whether no schedule with this id is pending."""
        primary = self.key_start + id
        found = self._primaries.get(primary, NOT_ASKED)
        if found is NOT_ASKED:
            found = self._primaries[primary] = self._stored(primary)
        return found is None

    def put(self, id: bytes, due: int, arrival: int, topic: str, record: bytes) -> None:
        """Store the state record of a schedule that `is_new`. `topic` is its target topic."""
        primary = self.key_start + id
        index_key = self._index_key(due, arrival, id)
        self._changes[index_key] = record
        self._fresh.add(index_key)
        if topic != self._topic:
            self._topic, self._number = topic, self._number_of(self._tenant, topic)
        cell = self._number + index_key[self._minute]
        self._added.append(cell)
        self._written[primary] = self._primaries[primary] = cell + index_key
        self.change += 1

    def row_of(self, primary: bytes) -> bytes | None:
        """Return the primary row of a whole schedule that a scan or `put` has seen in this overlay.

        `primary` is its primary key: `key_start`, then the id. Returns None if it is not pending or is split.
        """
        row = self._primaries.get(primary)
        return None if row is None or row[-1] == layout.SPLIT_END else row

    def move(self, primary: bytes, row: bytes, due: int, record: bytes) -> None:
        """Move a schedule with this `row_of` to another wake time (ms). `record` is its new state record."""
        cell, index_key = row[: layout.CELL_BYTES], row[layout.CELL_BYTES :]
        self._removed.append(cell)
        self._changes[index_key] = None
        if self._fresh:
            self._fresh.discard(index_key)
        index_key = self._moved(index_key, due)
        self._changes[index_key] = record
        self._fresh.add(index_key)
        cell = cell[: layout.GROUP_BYTES] + index_key[self._minute]
        self._added.append(cell)
        self._written[primary] = self._primaries[primary] = cell + index_key

    def remove(self, primary: bytes, row: bytes) -> None:
        """Remove a schedule with this `row_of`."""
        index_key = row[layout.CELL_BYTES :]
        self._removed.append(row[: layout.CELL_BYTES])
        self._changes[index_key] = None
        if self._fresh:
            self._fresh.discard(index_key)
        self._written[primary] = self._primaries[primary] = None
        self.change -= 1
