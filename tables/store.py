"""Ordered key-value stores under a schedule table: RocksDB in a worker, memory in tests and simulations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sortedcontainers import SortedDict

Changes = Mapping[bytes, bytes | None]
"""Key -> new value, or None to delete."""

Loaded = list[tuple[bytes, bytes]]
"""Rows with different keys, in any order: to sort them as pairs is faster than to look each up in a dictionary."""


class Store(Protocol):
    """Bytes in key order."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        ...

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        """Return the values of keys, each or None: faster than one by one."""
        ...

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values from `start` (included) to `end` (not included), in key order.

        Writes made while it runs do not change what it yields.
        """
        ...

    def write(self, changes: Changes) -> None:
        """Apply all changes, or none. After a crash, what was written until some moment is there, and nothing since."""
        ...

    def load(self, families: Sequence[Loaded]) -> Iterator[None]:
        """Store many rows in steps, cheaper than `write` does: all in the last step, or none. Single steps take long.

        Families do not overlap: all keys of one are before or after all of another. What is loaded survives a crash,
        whatever writes before it do.
        """
        ...

    async def settle(self) -> None:
        """Wait until what was loaded is in such order that no write has to wait for it, or that does not come."""
        ...

    async def flush(self) -> None:
        """Have everything that was written survive a crash."""
        ...

    def close(self) -> None:
        """Release what the store holds; everything that was written stays."""
        ...


class Stores(Protocol):
    """Where the stores of partitions are kept, by path. What opening raises is the implementation's."""

    def __call__(self, path: Path) -> Store:
        """Open a store, with what it held when it was closed."""
        ...

    def destroy(self, path: Path) -> None:
        """Delete a closed store, if there is one. Raises StateError if anything of it is left."""
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
        """Memory is always in order."""

    async def flush(self) -> None:
        """Memory is all there is."""

    def close(self) -> None:
        """Nothing to release: a closed store can be opened again as it is."""
