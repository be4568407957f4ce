"""Storing, moving and removing many schedules of one tenant in an overlay, at the least cost for each.

This is `Overlay.put` and `Overlay.remove` where little has to be asked: new schedules of ordinary priority are put, and
whole ones moved or removed, which have one record (a split one has two, see `layout`).
"""

from __future__ import annotations

from collections.abc import Callable

from light_scheduler.model import DEFAULT_PRIORITY

from . import layout
from .rows import NOT_ASKED, Rows


class WholeSchedules:
    """What an overlay has of one tenant: its rows, and its new index keys (`fresh`), which this adds to.

    Schedules are named by their ids in UTF-8. `count` is called with an identity and the change of its number of
    schedules.
    """

    def __init__(self, tenant: str, rows: Rows, fresh: set[bytes], count: Callable[[bytes, int], None]) -> None:
        self._stored = rows.stored
        self._changes = rows.changes
        self._primaries = rows.primaries
        self._fresh = fresh
        self._added, self._removed = rows.tally.added, rows.tally.removed
        self._number_of = rows.tally.pending_number
        self._topic: str | None = None  # of the schedule that was put last, with the number of its group
        self._number = b""
        self._minute = layout.minute_of(tenant)
        self._count = count
        self._tenant = tenant
        self._primary = layout.primary_key(tenant, "")
        self._index_key = layout.index_keys(tenant, DEFAULT_PRIORITY)
        self._moved = layout.moved_keys(tenant)

    def is_new(self, id: bytes) -> bool:
        """Tell whether nothing of this id is pending."""
        primary = self._primary + id
        found = self._primaries.get(primary, NOT_ASKED)
        if found is NOT_ASKED:
            found = self._primaries[primary] = self._stored(primary)
        return found is None

    def put(self, id: bytes, due: int, arrival: int, topic: str, record: bytes) -> None:
        """Store the state record of a schedule that `is_new`; its messages go to a topic."""
        primary = self._primary + id
        index_key = self._index_key(due, arrival, id)
        self._changes[index_key] = record
        self._fresh.add(index_key)
        if topic != self._topic:
            self._topic, self._number = topic, self._number_of(self._tenant, topic)
        cell = self._number + index_key[self._minute]
        self._added.append(cell)
        self._changes[primary] = self._primaries[primary] = cell + index_key
        self._count(primary[1:], 1)

    def is_whole(self, id: bytes) -> bool:
        """Tell whether a schedule is known to be pending, by a scan or by `put`, and has one record."""
        row = self._primaries.get(self._primary + id)
        return row is not None and not row.endswith(layout.SPLIT)

    def move(self, id: bytes, due: int, record: bytes) -> None:
        """Have a schedule that `is_whole` and pending wake at another time (ms) only, as its new state record says."""
        primary = self._primary + id
        row = self._primaries[primary] or b""
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
        self._changes[primary] = self._primaries[primary] = cell + index_key

    def remove(self, id: bytes) -> None:
        """Forget a schedule that `is_whole`."""
        primary = self._primary + id
        row = self._primaries[primary] or b""
        index_key = row[layout.CELL_BYTES :]
        self._removed.append(row[: layout.CELL_BYTES])
        self._changes[index_key] = None
        if self._fresh:
            self._fresh.discard(index_key)
        self._changes[primary] = self._primaries[primary] = None
        self._count(primary[1:], -1)
