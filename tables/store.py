"""Ordered key-value stores for schedule tables: RocksDB in a worker, memory in tests and simulations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sortedcontainers import SortedDict

Changes = Mapping[bytes, bytes | None]
"""Key -> new value, or None to delete the key."""

Loaded = list[tuple[bytes, bytes]]
"""Rows with different keys, in any order. Sorting pairs is faster than looking up each key in a dictionary."""


class Store(Protocol):
    """Bytes in key order."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if it does not exist."""
        ...

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the value or None for each key. Faster than single calls of `get`."""
        ...

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from `start` (inclusive) to `end` (exclusive), in key order.

        Concurrent writes do not affect the result.
        """
        ...

    def write(self, changes: Changes) -> None:
        """Apply all changes or none. A crash can lose the last writes, but never a write before one that survives."""
        ...

    def load(self, families: Sequence[Loaded]) -> Iterator[None]:
        """Store many rows in steps, cheaper than `write`. The last step stores all rows or none. Steps can take long.

        The key ranges of families must not overlap. Loaded rows survive a crash, even if earlier writes do not.
        """
        ...

    async def settle(self) -> None:
        """Wait until loaded rows are compacted far enough not to block writes, or compaction makes no progress."""
        ...

    async def flush(self) -> None:
        """Make all writes so far durable."""
        ...

    def close(self) -> None:
        """Release the store's resources. All writes are kept."""
        ...


class Stores(Protocol):
    """Opens and deletes the stores of partitions, by path. Errors on opening depend on the implementation."""

    def __call__(self, path: Path) -> Store:
        """Open a store, with its content from before it was closed."""
        ...

    def destroy(self, path: Path) -> None:
        """Delete a closed store, if it exists. Raises StateError if it cannot be deleted completely."""
        ...


class MemoryStore:
    """A store that lives as long as the process."""

    def __init__(self) -> None:
        self._items: SortedDict[bytes, bytes] = SortedDict()

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._items.get(key)
        return value

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        return list(map(self.get, keys))

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter([(key, self._items[key]) for key in self._items.irange(start, end, inclusive=(True, False))])

    def write(self, changes: Changes) -> None:
        for key, value in changes.items():
            if value is None:
                self._items.pop(key, None)
            else:
                self._items[key] = value

    def load(self, families: Sequence[Loaded]) -> Iterator[None]:
        yield
        for rows in families:
            self._items.update(rows)

    async def settle(self) -> None:
        """Return immediately: there is nothing to compact."""

    async def flush(self) -> None:
        """Return immediately: there is nothing to flush."""

    def close(self) -> None:
        """Do nothing: a closed store can be opened again with its content."""
