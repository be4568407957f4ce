"""How many schedules a table has, by tenant, target topic, state and the minute in which they wake.

Counts change with what they count, in the same write, so they are exact whatever crashes. Schedules of one tenant,
target and state are a *group*; those of a group that wake in one minute are a *cell*. The primary row of a schedule
begins with its cell, so what a change takes away is known without a look at the schedule. The probe of a partition is
in a group that is not counted.

    cell     group u32 | minute u32
    group    'g' | group u32                            -> MessagePack [tenant, topic, state]
    changes  'c' | book u32 | level u8 | slot u8        -> MessagePack {cell u64: change}

A write adds one row of changes to the book `RECENT`. When it has `FANOUT` rows, or a write is large, they are added up
and entered in the book of each day, cell by cell, and in the book `DAYS`, which has (group, day) in place of cells. In
any book, about as many rows of a level are added up to one of the next level. So a write is small, and there are few
rows to read. The book of a day in which nothing wakes any more has no rows.

Many books have as many rows at the same time. A write that enters nothing adds up those of some of them, so that no
write takes long: an allowance of cells that is larger than what it needs on average.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import get_args

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import State

from .cell_changes import GROUP_NUMBER, CellChanges, Group
from .cells import added_up, by_group, decoded
from .store import Store

GROUPS = b"g"
CHANGES = b"c"
FANOUT = 16
MOST_ROWS = 4 * FANOUT
"""Of a level, before they are added up whatever that takes. A row's place is one byte."""

ALLOWANCE, LEAST_ALLOWANCE = 4, 1_000
"""Cells that a write reads to add up rows: so many times those that it changes, and at least so many."""

MANY_CELLS = 16_000
"""A write with more is entered at once: rows of recent changes are read again, all of them by one later write."""

MINUTES_A_DAY = 1_440
RECENT, DAYS = 0xFFFFFFFF, 0xFFFFFFFE
"""Books that are not those of a day: no instant is that late."""

_LOW = 0xFFFFFFFF
_ROW = struct.Struct(">IBB")
_encode = msgspec.msgpack.Encoder().encode
_decode_changes = msgspec.msgpack.Decoder(dict[int, int]).decode
_decode_group = msgspec.msgpack.Decoder(Group).decode


@dataclass(frozen=True)
class Step:
    """The effect of a write on the counts: rows to store with it, and changes for `Counts.take` afterwards."""

    rows: dict[bytes, bytes | None]
    groups: Mapping[int, int]
    born: Mapping[Group, bytes]
    levels: Mapping[int, list[int]]
    entered: Mapping[int, int]


@dataclass
class Counts:
    """The counts of a store. In memory there is a number for each group and each day, and no more."""

    store: Store
    numbers: dict[Group, bytes] = field(default_factory=dict)
    next_number: int = 0
    _names: dict[int, Group] = field(default_factory=dict)
    _totals: Counter[int] = field(default_factory=Counter)
    _tenants: Counter[str] = field(default_factory=Counter)
    _states: Counter[tuple[str, State]] = field(default_factory=Counter)  # of each tenant
    _levels: dict[int, list[int]] = field(default_factory=dict)  # book -> how many rows each level has
    _entered: Counter[int] = field(default_factory=Counter)  # day -> how many schedules its book has
    _full: dict[int, None] = field(default_factory=dict)  # books of which rows are to be added up, in order

    def __post_init__(self) -> None:
        for key, value in self.store.scan(GROUPS, GROUPS + b"\xff"):
            self._name(decoded(_decode_group, value), key[1:])
        for key, _ in self.store.scan(CHANGES, CHANGES + b"\xff" * 7):
            book, level, slot = _ROW.unpack(key[1:])
            levels = self._levels.setdefault(book, [])
            levels += [0] * (level + 1 - len(levels))
            levels[level] = max(levels[level], slot + 1)
        for book, levels in self._levels.items():
            self._note_full(book, levels)
        for cell, count in self.by_day().items():
            self._add(cell >> 32, count)
        for cell, count in self._sum(DAYS).items():
            self._entered[cell & _LOW] += count

    def pending_of(self, tenant: str) -> int:
        """Return how many schedules a tenant has."""
        return self._tenants[tenant]

    def has_any(self, tenant: str, topic: str | None, state: State | None) -> bool:
        """Tell whether a tenant has any schedule for a topic (None: whichever) in a state (None: whichever)."""
        if topic is None:
            return bool(self._tenants[tenant]) if state is None else bool(self._states[tenant, state])
        states = get_args(State) if state is None else (state,)
        return any(Group(tenant, topic, each) in self.numbers for each in states)

    def totals(self) -> dict[Group, int]:
        """Return how many schedules each group has."""
        return dict(self.each_total())

    def each_total(self) -> Iterator[tuple[Group, int]]:
        """Return an iterator over the groups and how many schedules each has at the moment of this call, whatever
        changes until it ends."""
        names, totals = dict(self._names), dict(self._totals)
        return ((names[number], count) for number, count in totals.items() if count)

    def by_day(self) -> dict[int, int]:
        """Return how many schedules wake in each day, as {group u32 | day u32: count}."""
        total = self._sum(DAYS)
        for cell, change in self._sum(RECENT).items():
            total[cell >> 32 << 32 | (cell & _LOW) // MINUTES_A_DAY] += change
        return {number: count for number, count in total.items() if count}

    def each_by_day(self) -> Iterator[tuple[int, int]]:
        """Return an iterator over (group u32 | day u32, change). Changes add up to how many schedules wake in each day
        at the moment of this call."""
        days, recent = self._cells(DAYS), self._cells(RECENT)
        in_days = ((cell >> 32 << 32 | (cell & _LOW) // MINUTES_A_DAY, change) for cell, change in recent)
        return chain(days, in_days)

    def each_by_minute(self, day: int) -> Iterator[tuple[int, int]]:
        """Return an iterator over (cell u64, change) of a day. Changes add up to how many schedules wake in each minute
        at the moment of this call."""
        cells, recent = self._cells(day), self._cells(RECENT)
        return chain(cells, (each for each in recent if (each[0] & _LOW) // MINUTES_A_DAY == day))

    def days(self) -> set[int]:
        """Return the days in which something wakes, and maybe others."""
        recent = {(cell & _LOW) // MINUTES_A_DAY for cell, _ in self._cells(RECENT)}
        return recent | self._levels.keys() - {RECENT, DAYS}

    def group(self, number: int) -> Group | None:
        """Return the group of a number; None: nothing of it is counted any more."""
        return self._names.get(number)

    def step(self, counted: CellChanges) -> Step | None:
        """Return what a write with these changes has to store; None if they change no count."""
        changes = counted.changes()
        if not changes:
            return None
        cells = dict(zip(struct.unpack(f">{len(changes)}Q", b"".join(changes)), changes.values(), strict=True))
        groups = by_group(cells)
        rows: dict[bytes, bytes | None] = {}
        levels: dict[int, list[int]] = {}
        entered = self._enter(rows, levels, cells)
        if levels[RECENT][0]:  # nothing was entered
            self._add_up_some(rows, levels, max(LEAST_ALLOWANCE, ALLOWANCE * len(cells)))
        born = {group: key for group, key in counted.new.items() if groups.get(GROUP_NUMBER.unpack(key)[0])}
        for group, key in born.items():
            rows[GROUPS + key] = _encode(group)
        for number, change in groups.items():
            if change and self._totals[number] + change == 0:
                rows[GROUPS + GROUP_NUMBER.pack(number)] = None
        return Step(rows, groups, born, levels, entered)

    def take(self, step: Step) -> None:
        """Take in what was stored."""
        for book, levels in step.levels.items():
            self._note_full(book, levels)
            if levels:
                self._levels[book] = levels
            else:
                self._levels.pop(book, None)
        for day, change in step.entered.items():
            self._entered[day] += change
            if not self._entered[day]:
                del self._entered[day]
        for group, key in step.born.items():
            self._name(group, key)
        for number, change in step.groups.items():
            self._add(number, change)
            if not self._totals[number]:
                del self._totals[number]
                if (gone := self._names.pop(number, None)) is not None:
                    del self.numbers[gone]

    def _name(self, group: Group, key: bytes) -> None:
        number = GROUP_NUMBER.unpack(key)[0]
        self._names[number] = group
        self.numbers[group] = key
        self.next_number = max(self.next_number, number + 1)

    def _add(self, number: int, change: int) -> None:
        if (group := self._names.get(number)) is not None:
            self._totals[number] += change
            self._tenants[group.tenant] += change
            if not self._tenants[group.tenant]:
                del self._tenants[group.tenant]
            of_state = group.tenant, group.state
            self._states[of_state] += change
            if not self._states[of_state]:
                del self._states[of_state]

    def _enter(
        self, rows: dict[bytes, bytes | None], levels: dict[int, list[int]], cells: dict[int, int]
    ) -> Mapping[int, int]:
        """Note changes as recent ones; when there are many rows of those, enter them in the books of their days.

        Returns by how much the books of days change.
        """
        known = self._levels.get(RECENT, [0])
        if known[0] < FANOUT - 1 and len(cells) <= MANY_CELLS:
            rows[_row_key(RECENT, 0, known[0])] = _encode(cells)
            levels[RECENT] = [known[0] + 1]
            return {}
        full = [_row_key(RECENT, 0, slot) for slot in range(known[0])]
        books: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for cell, change in added_up([cells, *self._read(full)]).items():
            books[(cell & _LOW) // MINUTES_A_DAY][cell] = change
        rows.update(dict.fromkeys(full))
        levels[RECENT] = [0]
        entered = {day: sum(changes.values()) for day, changes in books.items()}
        books[DAYS] = {
            number << 32 | day: change
            for day, changes in books.items()
            for number, change in by_group(changes).items()
            if change
        }
        for book, changes in books.items():
            if book != DAYS and not self._entered[book] + entered[book]:  # no count is below 0, so each is 0
                rows.update(dict.fromkeys(self._rows_of(book)))
                levels[book] = []
            elif changes:
                levels[book] = self._append(rows, book, changes)
        return entered

    def _append(self, rows: dict[bytes, bytes | None], book: int, changes: dict[int, int]) -> list[int]:
        """Add a row to a book; return how many rows each of its levels has then."""
        levels = list(self._levels.get(book, ()))
        level = 0
        while changes and level < len(levels) and levels[level] >= MOST_ROWS:
            full = [_row_key(book, level, slot) for slot in range(levels[level])]
            changes = added_up([changes, *self._read(full)])
            rows.update(dict.fromkeys(full))
            levels[level] = 0
            level += 1
        _put(rows, book, levels, level, changes)
        return levels

    def _add_up_some(self, rows: dict[bytes, bytes | None], levels: dict[int, list[int]], allowance: int) -> None:
        """Add up rows of books that have many, until that many cells have been read."""
        for book in self._full:
            if allowance <= 0:
                return
            left = list(self._levels[book])
            level = max(range(len(left)), key=left.__getitem__)
            taken: list[dict[int, int]] = []
            while left[level] and (allowance > 0 or len(taken) < 2):  # one alone would only be copied
                left[level] -= 1
                key = _row_key(book, level, left[level])
                taken += self._read([key])
                rows[key] = None
                allowance -= len(taken[-1])
            _put(rows, book, left, level + 1, added_up(taken))
            levels[book] = left

    def _note_full(self, book: int, levels: list[int]) -> None:
        if book != RECENT and max(levels, default=0) >= FANOUT:
            self._full[book] = None
        else:
            self._full.pop(book, None)

    def _sum(self, book: int) -> Counter[int]:
        return added_up(self._read(self._rows_of(book)))

    def _rows_of(self, book: int) -> list[bytes]:
        return [
            _row_key(book, level, slot)
            for level, count in enumerate(self._levels.get(book, ()))
            for slot in range(count)
        ]

    def _cells(self, book: int) -> Iterator[tuple[int, int]]:
        """Return an iterator over the changes of a book, which is read in this call and decoded as it goes on."""
        return chain.from_iterable(changes.items() for changes in self._read(self._rows_of(book)))

    def _read(self, keys: list[bytes]) -> Iterator[dict[int, int]]:
        """Return an iterator over rows, which are read in this call."""
        return map(_changes_in, [*self.store.get_many(keys)] if keys else [])


def _changes_in(row: bytes | None) -> dict[int, int]:
    if row is None:
        raise FormatError("the table's counts lack a row")
    return decoded(_decode_changes, row)


def _put(rows: dict[bytes, bytes | None], book: int, levels: list[int], level: int, changes: Mapping[int, int]) -> None:
    """Add a row to a level of a book, if it says anything, and count it."""
    if changes:
        levels += [0] * (level + 1 - len(levels))
        rows[_row_key(book, level, levels[level])] = _encode(changes)
        levels[level] += 1


def _row_key(book: int, level: int, slot: int) -> bytes:
    return CHANGES + _ROW.pack(book, level, slot)
