"""The due scan. Each tenant has its own, which reads only the tenant's share of the cycle."""

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
"""Returns the place that a due schedule waits for; None if it may be delivered."""

HELD_COST = 0.25
"""Cost of passing over a schedule, which only decodes it. Taking a schedule costs 1."""


class DueScan(NamedTuple):
    """The due schedules taken by a scan. `next_due` (ms) is the due time of the first one left; None if none is left.

    `cut` has the last schedule taken of each tenant that has more due schedules than were taken. For capped tenants,
    `allowed` is their number of turns, and `held` the due time (ms) of the first schedule that must wait for more
    turns. `next_due` ignores these schedules, and the probe of the partition, which is due at `probe_due`.
    """

    entries: list[Entry]
    next_due: int | None
    cut: Mapping[str, Entry] = {}
    allowed: Mapping[str, int] = {}
    held: Mapping[str, int] = {}
    probe_due: int | None = None


class Candidates(NamedTuple):
    """A tenant's (time-index key, value) in order, read lazily. `bound` sorts after all due schedules.

    The first item after the bound has the tenant's next due time.
    """

    items: Iterator[tuple[bytes, bytes]]
    bound: bytes


class TenantScan:
    """The scan of one tenant: takes its due schedules in order, for as long as its turns last.

    It takes at most `most` schedules. `unit` is the number of bytes that cost as much as a schedule. The primary rows
    of taken schedules are added to `rows`, which also has definitions of split schedules and the cells of counts. A
    schedule that `waits` for a place is passed over.
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
        self._head: list[tuple[bytes, bytes]] = []  # an item that was read but not taken
        self.most = most
        self._unit = unit
        self._primaries = rows.primaries
        self._cells = rows.cells
        self._tenant = tenant
        self._topic: str | None = None  # of the last schedule taken, with the number of its group
        self._number = b""
        self._minute = layout.minute_of(tenant)
        self._get = rows.value_of
        self._waits = waits
        self.passed: list[tuple[Place, bytes]] = []
        self.is_open = False
        self.taken: list[Entry] = []
        self.topics: set[str] = set()
        """The target topics of taken schedules."""

    def take(self, allowance: float) -> float:
        """Take schedules until their cost reaches the allowance. Return the cost: less if no more can be taken."""
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
            # Nearly all schedules are not split. Decoding them here saves a call.
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
        """The first key left, once the scan is open; None if none is left."""
        return self._head[0][0] if self._head else None

    @property
    def is_cut(self) -> bool:
        """Whether schedules were taken and more are due."""
        return bool(self.taken) and self._has_due

    @property
    def is_held(self) -> bool:
        """Whether more schedules are due but no more may be taken."""
        return self._has_due and len(self.taken) == self.most

    @property
    def _has_due(self) -> bool:
        return self.left is not None and self.left < self._bound
