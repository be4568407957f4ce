"""Fills an empty table from its changelog, much faster than by single changes.

Records are collected in chunks; the last record of each key counts. Most schedules of a chunk are new to the table.
They are stored without looking up what they replace; the others are replayed.

If nothing else needs the event loop, chunks are larger, and new schedules are written to sorted files that the store
ingests. That takes less processor time, but sorting a chunk and flushing its files are single steps, which take
seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from typing import Protocol

import msgspec

from light_scheduler.wire.state import PROGRESS_KIND, SCHEDULE_KIND

from .layout import PRIMARY
from .new_rows import NewRows
from .overlay import Overlay
from .table import ScheduleTable

CHUNK_BYTES = 32 << 20
CHUNK_RECORDS = 200_000
"""Maximum size of values and number of records that a load collects in memory."""

FILES_BYTES = 64 << 20
FILES_RECORDS = 300_000
"""The same for a load that may block. A chunk becomes two files, and RocksDB does not merge files without overlaps. So
the larger file should be about as large as RocksDB's merged files: only `rocks.MAX_OPEN_FILES` stay open, and reading
from any other file first reads its filter.
"""

STEP_RECORDS = 4_000
"""Records in one step, which takes about 20 ms."""


class ChangelogRecord(Protocol):
    """A record read from the changelog."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


class BulkLoad:
    """Loads the records of a changelog, in order and from the first one, into an empty table.

    A crash before `finish` loses all of it: the table has no checkpoint until then, and a store with schedules but
    without a checkpoint is discarded (see `ScheduleTable.is_cut_short`). Another load in the same process can continue
    from the table's `checkpoint.changelog_offset`.

    With `may_block`, single steps may take seconds: nothing else waits for the event loop.
    """

    def __init__(self, table: ScheduleTable, *, may_block: bool = False) -> None:
        self._table = table
        self._may_block = may_block
        self._schedules: dict[bytes, bytes | None] = {}  # changelog key -> the last value
        self._progress: dict[bytes, bytes] = {}  # identity -> progress since that value
        self._others: dict[bytes, bytes | None] = {}
        self._records = self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to `write` the collected records."""
        records, size = (FILES_RECORDS, FILES_BYTES) if self._may_block else (CHUNK_RECORDS, CHUNK_BYTES)
        return self._records >= records or self._bytes >= size

    def add(self, records: Iterable[ChangelogRecord]) -> int:
        """Collect records and return their number."""
        schedules, progress = self._schedules, self._progress
        count = size = 0
        for record in records:
            count += 1
            key, value = record.key or b"", record.value
            if value is not None:
                size += len(value)
            if key[:1] == SCHEDULE_KIND:
                schedules[key] = value
                if progress:
                    progress.pop(key[1:], None)
            elif key[:1] != PROGRESS_KIND:
                self._others[key] = value
            elif value is not None:
                progress[key[1:]] = value
        self._records += count
        self._bytes += size
        return count

    def write(self, *, changelog_offset: int) -> Iterator[None]:
        """Write the collected records in steps. Other tasks may run between steps.

        `changelog_offset` is the changelog offset after the records. Raises FormatTooNew or FormatError.
        """
        schedules, progress, others = self._schedules, self._progress, self._others
        self._schedules, self._progress, self._others = {}, {}, {}
        self._records = self._bytes = 0
        known: dict[bytes, bytes | None] = {}
        yield from self._write_new(schedules, known)
        yield from self._replay(known)
        yield from self._replay({PROGRESS_KIND + identity: record for identity, record in progress.items()})
        yield from self._replay(others)
        self._table.checkpoint = msgspec.structs.replace(self._table.checkpoint, changelog_offset=changelog_offset)

    async def finish(self, *, complete_at: int) -> None:
        """Make the table durable, so that it can be opened again. `complete_at` is as in `Checkpoint`.

        The checkpoint is written last, so it never survives a crash that loses other rows.
        """
        table = self._table
        await table.store.settle()
        table.floors = table.find_floors()
        table.write({}, msgspec.structs.replace(table.checkpoint, complete_at=complete_at))
        await table.store.flush()

    def _write_new(self, schedules: dict[bytes, bytes | None], known: dict[bytes, bytes | None]) -> Iterator[None]:
        """Write schedules that are new to the table. Records of schedules that it has are added to `known`."""
        table, is_first = self._table, self._table.is_empty
        new = NewRows(table)
        rest = iter(schedules.items())
        while step := list(islice(rest, STEP_RECORDS)):
            keys = [PRIMARY + key[1:] for key, _ in step]
            stored = repeat(None) if is_first else table.store.get_many(keys)
            new.take(zip(keys, step, stored, strict=False), known)
            yield
            if not self._may_block:
                new.write()
                new = NewRows(table)
                yield
        schedules.clear()
        yield from new.write_files()

    def _replay(self, records: dict[bytes, bytes | None]) -> Iterator[None]:
        items = list(records.items())
        for start in range(0, len(items), STEP_RECORDS):
            overlay = Overlay(self._table)
            for key, value in items[start : start + STEP_RECORDS]:
                overlay.replay(key, value)
            overlay.load()
            yield
