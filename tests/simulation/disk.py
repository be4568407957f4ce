"""The disk of a machine, and the stores on it: what is flushed outlives the process, what is not may be lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from light_scheduler.tables import MemoryStore, layout
from light_scheduler.tables.count_rows import CHANGES
from light_scheduler.tables.counts import GROUPS
from light_scheduler.tables.store import Loaded

if TYPE_CHECKING:
    from .node import Node

FLUSH_S = 10.0
"""As `rocks.FLUSH_S`, for a world in which everything is soon over."""
COUNTED = {layout.INDEX_START, layout.DEFINITION, GROUPS, CHANGES}
"""What keys begin with of what is counted, and of the counts."""


class Disk:
    """The stores of a machine, by path; they outlive processes."""

    def __init__(self) -> None:
        self._writes: dict[Path, list[Any]] = {}
        self._flushed: dict[Path, int] = {}  # how many writes
        self._files: dict[Path, set[int]] = {}  # writes that were files at once, whatever becomes of those before
        self.stores: dict[Path, MemoryStore] = {}

    def wipe(self) -> None:
        self._writes.clear()
        self._flushed.clear()
        self._files.clear()
        self.stores.clear()

    def lose_unflushed(self, random: Random, *, all_of_it: bool) -> None:
        """What a process has not flushed is lost when it ends; or only the end of it is, as memory gets full."""
        for path, writes in self._writes.items():
            flushed = self._flushed.get(path, 0)
            kept = flushed if all_of_it else random.randint(flushed, len(writes))
            if kept < len(writes):
                files = self._files.pop(path, set())
                writes[kept:] = [writes[at] for at in range(kept, len(writes)) if at in files]
                self._read_again(path)
            self._flushed[path] = len(writes)

    def write(self, path: Path, changes: Any) -> None:
        self._writes.setdefault(path, []).append(changes)
        self.stores[path].write(changes)

    def take_in(self, path: Path, rows: Any) -> None:
        """Write what is a file already."""
        self._files.setdefault(path, set()).add(len(self._writes.get(path, ())))
        self.write(path, rows)

    def flush(self, path: Path) -> None:
        self._flushed[path] = len(self._writes.get(path, ()))

    def destroy(self, path: Path) -> None:
        for kept in (self.stores, self._writes, self._flushed, self._files):
            kept.pop(path, None)

    def _read_again(self, path: Path) -> None:
        store = self.stores[path] = MemoryStore()
        for changes in self._writes[path]:
            store.write(changes)


@dataclass(frozen=True)
class Stores:
    """What lanes open their stores with."""

    node: Node

    def __call__(self, path: Path) -> Store:
        self.node.reach_at_once("0.open")
        memory = self.node.disk.stores.setdefault(path, MemoryStore())
        self.node.check_counts(memory)
        return Store(self.node, path, memory)

    def destroy(self, path: Path) -> None:
        self.node.disk.destroy(path)


class Store:
    """A store on a machine's disk."""

    def __init__(self, node: Node, path: Path, memory: MemoryStore) -> None:
        self._node = node
        self._path = path
        self._is_loading = memory.get(layout.CHECKPOINT_KEY) is None
        self._flushed_at = node.world.loop.time()
        self.get = memory.get
        self.get_many = memory.get_many
        self.scan: Callable[[bytes, bytes], Iterator[tuple[bytes, bytes]]] = memory.scan

    def write(self, changes: Any) -> None:
        if layout.CHECKPOINT_KEY in changes:
            self._apply(changes)
        else:  # the table is being filled
            self._is_loading = True
            self._node.reach_at_once("0.load")
            self._node.disk.write(self._path, changes)
        if self._node.world.loop.time() - self._flushed_at > FLUSH_S:
            self._flushed_at = self._node.world.loop.time()
            self._node.disk.flush(self._path)

    def load(self, families: Sequence[Loaded]) -> Iterator[None]:
        yield
        self._is_loading = True
        self._node.reach_at_once("0.load")
        self._node.disk.take_in(self._path, dict(chain.from_iterable(families)))

    def _apply(self, changes: Any) -> None:
        self._node.reach_at_once("4.write begun")
        self._node.disk.write(self._path, changes)
        if self._is_loading or any(key[:1] in COUNTED for key in changes):  # else they are as they were
            self._is_loading = False
            self._node.check_counts(self._node.disk.stores[self._path])
        self._node.reach_at_once("4.write done")

    async def settle(self) -> None:
        """A disk of a simulation is always in order."""

    async def flush(self) -> None:
        await self._node.reach("0.flush")
        self._node.disk.flush(self._path)

    def close(self) -> None:
        """The disk keeps it, unless the process has ended before."""
        if not self._node.is_dead:
            self._node.disk.flush(self._path)
