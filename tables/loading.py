"""Filling an empty table from its changelog, far faster than change by change.

Records are gathered until there are enough; of each key, the last one counts. Most schedules of such a chunk are met
for the first time, and go into the store without a look at what they might replace. The others are replayed.

Where an event loop has nothing else to do, chunks are larger, and what is new becomes sorted files that the store takes
in: that needs less of a processor, but sorting a chunk and having its files on disk are single steps, of seconds.
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
"""Limits of the values and records gathered in memory by a load."""

FILES_BYTES = 64 << 20
FILES_RECORDS = 300_000
"""The same for a load that may block. Two files are made of a chunk, and those that nothing overlaps with stay as they
are. So the larger one is about as large as files that RocksDB merges: it keeps only so many open
(`rocks.MAX_OPEN_FILES`), and each look into another one reads its filter first."""

STEP_RECORDS = 4_000
"""Records in one step, which takes some 20 ms."""


class ChangelogRecord(Protocol):
    """A record as it was read."""

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...


class BulkLoad:
    """Takes the records of a changelog, in order and from the first one on, into a table that is empty.

    Nothing of it survives a crash before `finish`: the table has no checkpoint until then, and a store that has
    schedules but no checkpoint is thrown away (see `ScheduleTable.is_cut_short`). Within the process a load may be
    continued by another one, from the table's `checkpoint.changelog_offset` on.

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
        """Whether it is time to `write` what was gathered."""
        records, size = (FILES_RECORDS, FILES_BYTES) if self._may_block else (CHUNK_RECORDS, CHUNK_BYTES)
        return self._records >= records or self._bytes >= size

    def add(self, records: Iterable[ChangelogRecord]) -> int:
        """Gather records; return how many there were."""
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
        """Write what was gathered, in steps between which others may run.

        `changelog_offset` is what it reaches. Raises FormatTooNew or FormatError.
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
        """Make the table one that can be opened again, whatever happens next; `complete_at` is as in `Checkpoint`.

        The checkpoint is written after all else, so it is not left by a crash that takes any of that away.
        """
        table = self._table
        await table.store.settle()
        table.floors = table.find_floors()
        table.write({}, msgspec.structs.replace(table.checkpoint, complete_at=complete_at))
        await table.store.flush()

    def _write_new(self, schedules: dict[bytes, bytes | None], known: dict[bytes, bytes | None]) -> Iterator[None]:
        """Write schedules that the table does not have; what concerns one that it has goes to `known`."""
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
