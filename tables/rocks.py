"""The RocksDB store of one partition."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from rocksdict import BlockBasedOptions, Cache, Options, Rdict, WriteBatch

from light_scheduler.errors import StateError, StateLocked

from .store import Changes

BLOCK_CACHE_BYTES = 128 << 20
WRITE_BUFFER_BYTES = 32 << 20
MAX_OPEN_FILES = 256


@cache
def _block_cache() -> Cache:
    """One cache for all partitions of the process, so that memory does not grow with their number."""
    return Cache(BLOCK_CACHE_BYTES)


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(_block_cache())
    blocks.set_bloom_filter(10, False)  # most commands bring a new id: the filter spares them the read
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_memtable_prefix_bloom_ratio(0.1)
    options.set_memtable_whole_key_filtering(True)
    # With keys in order and one writer, the memtable's list is searched less: a sixth of a write of 5,000 schedules.
    options.set_allow_concurrent_memtable_write(False)
    options.set_max_open_files(MAX_OPEN_FILES)
    options.set_keep_log_file_num(2)
    options.set_max_total_wal_size(4 * WRITE_BUFFER_BYTES)
    return options


class RocksStore:
    """Bytes in key order, on disk. Raises StateLocked if another process holds the folder, StateError otherwise."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._db = Rdict(str(path), _options())
        except OSError as error:
            raise StateError(f"cannot make the state folder {path}: {error}") from error
        except Exception as error:
            if "lock" in str(error).lower():
                raise StateLocked(f"{path} is held by another process") from error
            raise StateError(f"cannot open {path}: {error}") from error
        self.get = self._db.get

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        # The bound is checked here: one that is set in RocksDB's read options is read from memory it does not own.
        for key, value in self._db.items(from_key=start):
            if key >= end:  # type: ignore[operator]  # raw mode: bytes
                return
            yield key, value  # type: ignore[misc]

    def write(self, changes: Changes) -> None:
        batch = WriteBatch(raw_mode=True)
        put, delete = batch.put, batch.delete
        for key in sorted(changes):
            value = changes[key]
            if value is None:
                delete(key)
            else:
                put(key, value)
        self._db.write(batch)

    def close(self) -> None:
        self._db.close()

    @staticmethod
    def destroy(path: Path) -> None:
        """Delete a closed store."""
        shutil.rmtree(path, ignore_errors=True)
