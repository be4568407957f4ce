"""Maps and lists for more than fits into memory: what is too much for it goes to a temporary file.

The file is where Spark keeps its own on a machine (`SPARK_LOCAL_DIRS`). It is deleted as soon as it is open, so its
space is free when the map is gone, or the process.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Generic, TypeVar, overload

import msgspec

MOST = 20_000
"""Items of a map that are in memory at most."""

K = TypeVar("K", bound=tuple[object, ...] | int)
V = TypeVar("V")

_FOLDERS = "SPARK_LOCAL_DIRS"
_key = msgspec.msgpack.Encoder().encode
_PRAGMAS = ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE")


class LongMap(Generic[K, V]):
    """Values by key. One that has been changed has to be put in again."""

    def __init__(self, encode: Callable[[V], bytes], decode: Callable[[bytes], V]) -> None:
        self._encode = encode
        self._decode = decode
        self._recent: dict[K, V | None] = {}
        """What has not been written yet; None: it is not there any more."""
        self._file: sqlite3.Connection | None = None

    def get(self, key: K) -> V | None:
        """Return a value, None if there is none."""
        if key in self._recent or self._file is None:
            return self._recent.get(key)
        found = self._file.execute("SELECT value FROM items WHERE key = ?", (_key(key),)).fetchone()
        return None if found is None else self._decode(found[0])

    def put(self, key: K, value: V) -> None:
        """Put a value in, in the place of another one."""
        self._change(key, value)

    def drop(self, key: K) -> None:
        """Take a value out, if there is one."""
        if self._file is None:
            self._recent.pop(key, None)
        else:
            self._change(key, None)

    def values(self) -> Iterator[V]:
        """Yield the values: in the order in which they came, or from a file in that of their keys."""
        if self._file is None:
            yield from (value for value in self._recent.values() if value is not None)
            return
        self._write(self._file)
        for (value,) in self._file.execute("SELECT value FROM items ORDER BY key"):
            yield self._decode(value)

    def in_order(self) -> Iterator[V]:
        """Yield the values sorted by their keys.

        Whole numbers from 0 on are sorted as such, and so are bytes of one length. Equal texts come together.
        """
        if self._file is None:
            for key in sorted(self._recent, key=_key):
                if (value := self._recent[key]) is not None:
                    yield value
        else:
            yield from self.values()

    def _change(self, key: K, value: V | None) -> None:
        self._recent[key] = value
        if len(self._recent) > MOST:
            if self._file is None:
                self._file = _temporary(self)
            self._write(self._file)

    def _write(self, file: sqlite3.Connection) -> None:
        values = ((_key(key), self._encode(value)) for key, value in self._recent.items() if value is not None)
        gone = ((_key(key),) for key, value in self._recent.items() if value is None)
        with file:
            file.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", values)
            file.executemany("DELETE FROM items WHERE key = ?", gone)
        self._recent.clear()


class LongList(Sequence[V]):
    """Items in the order in which they were added."""

    def __init__(self, encode: Callable[[V], bytes], decode: Callable[[bytes], V]) -> None:
        self._items: LongMap[int, V] = LongMap(encode, decode)
        self._length = 0

    def append(self, item: V) -> None:
        self._items.put(self._length, item)
        self._length += 1

    def extend(self, items: Iterable[V]) -> None:
        for item in items:
            self.append(item)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> V: ...

    @overload
    def __getitem__(self, place: slice) -> list[V]: ...

    def __getitem__(self, place: int | slice) -> V | list[V]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(self._length))]
        item = self._items.get(place)
        if item is None:
            raise IndexError(place)
        return item


class LongSorted(Generic[V]):
    """Items sorted by what `order` makes of them (see `LongMap.in_order`); equal ones as they were added."""

    def __init__(
        self, encode: Callable[[V], bytes], decode: Callable[[bytes], V], order: Callable[[V], tuple[object, ...]]
    ) -> None:
        self._items: LongMap[tuple[object, ...], V] = LongMap(encode, decode)
        self._order = order
        self._length = 0

    def add(self, item: V) -> None:
        self._items.put((*self._order(item), self._length), item)
        self._length += 1

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[V]:
        return self._items.in_order()


def _temporary(owner: object) -> sqlite3.Connection:
    """Return an empty database that is there as long as its owner is."""
    around = os.environ.get(_FOLDERS, "").split(",")[0]
    existing = around if around and Path(around).is_dir() else None
    with TemporaryDirectory(prefix="light-scheduler-", dir=existing) as folder:
        file = sqlite3.connect(Path(folder) / "items")
        weakref.finalize(owner, file.close)
        for pragma in _PRAGMAS:
            file.execute(f"PRAGMA {pragma}")
        file.execute("CREATE TABLE items (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    return file
