"""The RocksDB store of one partition.

RocksDB's write-ahead log is not used. Writes go to a memtable, and memtables are flushed to files in order. So a crash
leaves a prefix of the writes, each of them complete. Each write contains the changelog offset that it reaches, so the
rest is read from the changelog (see `recovery`).

    write ──> memtable ── full, or older than FLUSH_S, or the store is closed ──> file
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
    WriteBufferManager,
    WriteOptions,
)

from light_scheduler.errors import StateCorrupt, StateError, StateFull, StateLocked

from .sorted_files import take_in, write_sorted
from .store import Changes, Loaded

MEMORY_BYTES = 256 << 20
MEMTABLE_BYTES = 128 << 20
"""Memory of all partitions of the process together, so that it does not grow with their number: for cached blocks and
memtables. `MEMTABLE_BYTES` is the memtables' maximum share of it.
"""

WRITE_BUFFER_BYTES = 16 << 20
FLUSH_S = 600.0
"""A crash loses at most the writes of one memtable, of two during a flush, and of `FLUSH_S` seconds if these are fewer.
Most files are large then. Small files, which cause large ones to be rewritten, are rare.
"""

MOST_FILES = 12
"""Number of uncompacted files from which no flush begins because of `FLUSH_S`: three times as many as start a
compaction. RocksDB slows writes down from 20 such files, and a flush that would reach that number waits.
"""

_WAITING_FILES = "rocksdb.num-files-at-level0"
_BEFORE_A_FLUSH = ("rocksdb.num-immutable-mem-table", _WAITING_FILES)
_COMPACTING = ("rocksdb.compaction-pending", "rocksdb.num-running-compactions")
_ERRORS = "rocksdb.background-errors"
SETTLE_POLL_S, UNSETTLED_S = 0.05, 30.0
"""Interval (s) of checks whether fewer files wait to be merged, and time (s) without progress before giving up."""

MAX_OPEN_FILES = 256
"""Per partition."""

_LOCKED = ("While lock file", "lock hold by current process")
"""RocksDB's messages for a store that is open in another process, or in this one."""

_NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")

log = logging.getLogger(__name__)


@cache
def _block_cache() -> Cache:
    return Cache(MEMORY_BYTES)


@cache
def _memtables() -> WriteBufferManager:
    """Return the manager that charges memtables to the block cache. Near the limit, it flushes some of them early."""
    return WriteBufferManager.new_write_buffer_manager_with_cache(MEMTABLE_BYTES, False, _block_cache())


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(_block_cache())
    blocks.set_bloom_filter(10, False)  # most commands have a new id: the filter saves the read
    # Filters stay in memory while their file is open, about 13 bytes per schedule. In the cache, the filters of ten
    # million schedules would evict each other, and each look-up of an id would read and check a whole filter again.
    blocks.set_cache_index_and_filter_blocks(False)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_manager(_memtables())
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_arena_block_size(1 << 20)  # size of an empty memtable: many partitions are idle
    options.set_memtable_prefix_bloom_ratio(0.1)
    options.set_memtable_whole_key_filtering(True)
    # With sorted keys and one writer, the memtable's list is searched less: saves 1/6 of a write of 5,000 schedules.
    options.set_allow_concurrent_memtable_write(False)
    # Compact a file when 5,000 of 10,000 rows are deletions, so that scans do not pass over fired schedules for long.
    options.add_compact_on_deletion_collector_factory(10_000, 5_000, 0.5)
    options.set_max_open_files(MAX_OPEN_FILES)
    options.set_keep_log_file_num(2)
    return options


@cache
def _not_logged() -> WriteOptions:
    options = WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign,assignment]  # a property, which the stubs call a method
    return options


def _until(end: bytes) -> ReadOptions:
    """Return options for an iteration up to a key. The caller must keep the object `end` during the iteration."""
    options = ReadOptions()
    options.set_iterate_upper_bound(end)
    return options


def _batch(changes: Changes) -> WriteBatch:
    batch = WriteBatch(raw_mode=True)
    put, delete = batch.put, batch.delete
    for key in sorted(changes):
        value = changes[key]
        if value is None:
            delete(key)
        else:
            put(key, value)
    return batch


class RocksStore:
    """Bytes in key order, on disk.

    Everything raises StateError or one of its kinds: StateLocked if another process holds the folder, StateCorrupt if
    its files are damaged, StateFull if there is no room.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._options = options = _options()
            # Pass the options by column family. Otherwise, rocksdict uses those stored in the folder, which have
            # neither filter nor cache.
            self._db = Rdict(str(path), options, column_families={"default": options})
        except OSError as error:
            raise StateError(f"cannot create the state folder {path}: {error}") from error
        except Exception as error:
            raise _translated(error, path) from error
        self._get = self._db.get
        # Stores that are opened together should not be flushed together.
        self._flushed_at = time.monotonic() - random.uniform(0, FLUSH_S)  # nosec B311 # no secret

    def get(self, key: bytes) -> bytes | None:
        try:
            return self._get(key)
        except Exception as error:
            raise _translated(error, self.path) from error

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        try:
            found: Any = self._db.get(list(keys))
        except Exception as error:
            raise _translated(error, self.path) from error
        return list(found)

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        # Without a bound, RocksDB passes over all deleted keys after `end`, up to the next existing key. It reads the
        # bound from the memory of `end`, so this frame keeps that object alive while it iterates.
        bound = _until(end)
        item: Any = (start, b"")
        for item in self._db.items(from_key=start, read_opt=bound):
            yield item
        self._check_end(item[0], end)

    def _check_end(self, last: bytes, end: bytes) -> None:
        """Raise StateError if reading failed after key `last`: an iteration that fails just ends."""
        try:
            rest = self._db.iter(_until(end))
            rest.seek(last)
            if rest.valid():
                rest.next()
            rest.status()
        except Exception as error:
            raise _translated(error, self.path) from error

    def write(self, changes: Changes) -> None:
        try:
            self._db.write(_batch(changes), _not_logged())
            if time.monotonic() - self._flushed_at > FLUSH_S and not self._flush_would_wait():
                self._flushed_at = time.monotonic()
                self._db.flush(wait=False)
        except Exception as error:
            raise _translated(error, self.path) from error

    def load(self, families: Sequence[Loaded]) -> Iterator[None]:
        filled = [rows for rows in families if rows]
        paths = [self.path / f"{number}.load" for number in range(len(filled))]
        try:
            for path, rows in zip(paths, filled, strict=True):
                yield from write_sorted(path, rows, self._options)
            if paths:
                take_in(self._db, paths)
        except Exception as error:
            raise _translated(error, self.path) from error
        finally:  # files are left if the load was not finished
            for path in paths:
                path.unlink(missing_ok=True)

    def _flush_would_wait(self) -> bool:
        """Return whether a flush would have to wait for others, which would block the event loop."""
        flushing, files = map(self._count, _BEFORE_A_FLUSH)
        return bool(flushing) or files >= MOST_FILES

    async def settle(self) -> None:
        least, since = self._count(_WAITING_FILES), time.monotonic()
        while (files := self._count(_WAITING_FILES)) >= MOST_FILES and any(map(self._count, _COMPACTING)):
            if files < least:
                least, since = files, time.monotonic()
            if (errors := self._count(_ERRORS)) or time.monotonic() - since > UNSETTLED_S:
                log.warning(
                    "%s has %d files to merge, and merging makes no progress (errors: %d)", self.path, files, errors
                )
                return  # a flush raises the error
            await asyncio.sleep(SETTLE_POLL_S)

    def _count(self, name: str) -> int:
        return self._db.property_int_value(name) or 0

    async def flush(self) -> None:
        try:
            self._flushed_at = time.monotonic()
            await asyncio.to_thread(self._db.flush)
        except Exception as error:
            raise _translated(error, self.path) from error

    def close(self) -> None:
        try:
            self._db.close()
        except Exception as error:  # noqa: BLE001 - the changelog has what could not be written
            log.warning("while closing: %s", _translated(error, self.path))

    @staticmethod
    def destroy(path: Path) -> None:
        """Delete a closed store, if it exists. Raises StateError if it cannot be deleted completely."""
        try:
            if os.path.lexists(path):
                shutil.rmtree(path)
        except OSError as error:
            raise StateError(
                f"cannot delete the state folder {path}, which must not be used again: {error}; delete it yourself"
            ) from error


def _translated(error: Exception, path: Path) -> StateError:
    """Return the StateError for an error of RocksDB. rocksdict raises plain exceptions with RocksDB's text."""
    text = str(error)
    words = text.replace(str(path), "")  # the path could contain any words
    if text.startswith("Corruption"):
        return StateCorrupt(f"{path} is damaged: {text}")
    if any(reason in words for reason in _NO_ROOM):
        return StateFull(f"there is no room for local state in {path}: free some space, or move data_dir ({text})")
    if any(reason in words for reason in _LOCKED):
        return StateLocked(f"{path} is held by another process ({text})")
    return StateError(f"cannot use {path}: {text}")
