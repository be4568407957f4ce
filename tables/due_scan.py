"""The due scan: one for each tenant, each read only as far as the tenant's share of the cycle goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from light_scheduler.model import Entry
from light_scheduler.model.place import Place
from light_scheduler.wire.state import decode_entry, identity

from . import layout
from .rows import Rows
from .table import stored_entry

Waits = Callable[[Entry], Place | None]
"""Returns the place that a due schedule waits for; None: it may be delivered."""

HELD_COST = 0.25
"""Cost of passing over a schedule, which is only decoded; taking one costs 1."""


class DueScan(NamedTuple):
    """The due schedules taken by a scan. `next_due` (ms) is when the first one left is due; None: none is left.

    `cut` has the last schedule taken of each tenant of which more is due than was taken. For capped tenants `allowed`
    is the number of turns they have, and `held` the due time (ms) of the first schedule that has to wait for more
    turns. `next_due` ignores those, and the probe of the partition, which is due at `probe_due`.
    """

    entries: list[Entry]
    next_due: int | None
    cut: Mapping[str, Entry] = {}
    allowed: Mapping[str, int] = {}
    held: Mapping[str, int] = {}
    probe_due: int | None = None


class Candidates(NamedTuple):
    """A tenant's (time-index key, value) in order, not read before they are asked for; `bound` lies above what is due.

    The first one behind the bound says when something will be due next.
    """

    items: Iterator[tuple[bytes, bytes]]
    bound: bytes


class TenantScan:
    """The scan of one tenant: takes its due schedules, in order, for as long as its turns last.

    At most `most` are taken; `unit` is the number of bytes that cost as much as a schedule. The rows get the primary
    keys of the schedules that are taken; they also have their definitions, and the cells in which they are counted.
    A schedule that `waits` for a place is passed over.
    """

    def __init__(
        self,
        tenant: str,
        candidates: Candidates,
        *,
        most: int | None,
        unit: float,
        rows: Rows,
        waits: Waits | None = None,
    ) -> None:
        self._primary = layout.PRIMARY + identity(tenant, "")
        self._items, self._bound = candidates
        self._head: list[tuple[bytes, bytes]] = []  # the first item left, once one was read that was not taken
        self.most = most
        self._unit = unit
        self._primaries = rows.primaries
        self._cells = rows.cells
        self._tenant = tenant
        self._topic: str | None = None  # of the schedule that was taken last, with the number of its group
        self._number = b""
        self._minute = layout.minute_of(tenant)
        self._get = rows.value_of
        self._waits = waits
        self.passed: list[tuple[Place, bytes]] = []
        self.is_open = False
        self.taken: list[Entry] = []
        self.topics: set[str] = set()
        """The target topics of what was taken."""

    def take(self, allowance: float) -> float:
        """Take schedules until they cost an allowance; return what they cost: less only if no more can be taken."""
        bound, unit, most, taken = self._bound, self._unit, self.most, self.taken
        primary, primaries, get, waits = self._primary, self._primaries, self._get, self._waits
        id_at = len(primary) + layout.TIME_BYTES  # in a time-index key
        topic, number, minute = self._topic, self._number, self._minute
        cost = 0.0
        items = chain(self._head, self._items)
        self._head, self.is_open = [], True
        for item in items:
            key, value = item
            if key >= bound or cost >= allowance or len(taken) == most:
                self._head = [item]
                break
            # A schedule that is not split is decoded without the call in between: nearly all are.
            is_whole = value > layout.PROGRESS_ONLY_END
            entry = decode_entry(value) if is_whole else stored_entry(key, value, get)
            if waits is not None and (place := waits(entry)) is not None:
                self.passed.append((place, key))
                cost += max(HELD_COST, len(value) / unit)
                continue
            taken.append(entry)
            name = primary + key[id_at:]
            if (progress := entry.progress).awaited or progress.paused:
                cell = self._cells.cell(entry, key)
                self.topics.add(entry.schedule.target.topic)
            else:
                if entry.schedule.target.topic != topic:
                    topic = self._topic = entry.schedule.target.topic
                    self.topics.add(topic)
                    number = self._number = self._cells.pending_number(self._tenant, topic)
                cell = number + key[minute]
            size = len(value)
            if not is_whole:
                size += len(entry.schedule.payload or b"")
                key += layout.SPLIT
            primaries[name] = cell + key
            cost += size / unit if size > unit else 1.0
        return cost

    @property
    def left(self) -> bytes | None:
        """The first key left, once the scan is open; None: nothing is left."""
        return self._head[0][0] if self._head else None

    @property
    def is_cut(self) -> bool:
        """Whether something was taken, and more is due."""
        return bool(self.taken) and self._has_due

    @property
    def is_held(self) -> bool:
        """Whether more is due, and no more may be taken."""
        return self._has_due and len(self.taken) == self.most

    @property
    def _has_due(self) -> bool:
        return self.left is not None and self.left < self._bound
