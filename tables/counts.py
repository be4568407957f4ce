"""Counts the schedules of a table by tenant, target topic, state and the minute in which they wake.

Counts are written together with the schedules, so they stay exact after a crash. Schedules with the same tenant, target
and state form a *group*; schedules of a group that wake in the same minute form a *cell*. The primary row of a schedule
begins with its cell, so a removal can be counted without reading the schedule. The probe of a partition is in a group
that is not counted.

    cell     group u32 | minute u32
    group    'g' | group u32                            -> MessagePack [tenant, topic, state]
    changes  'c' | book u32 | level u8 | slot u8 | last cell u64   -> MessagePack {cell u64: change}, see `count_rows`

A write adds one run of changes to the book `RECENT`. When that has `FANOUT` runs, or a write is large, the runs are
summed and entered in the book of each day, by cell, and in the book `DAYS`, by (group, day). In every book, about
`FANOUT` runs of a level are merged to one run of the next level. So writes are small, and there are few runs to read.
The book of a day in which nothing wakes any more has no runs.

Many books reach `FANOUT` runs at the same time. To keep every write short, a write that enters nothing merges runs of
some books, up to an allowance of cells. The allowance is larger than what is needed on average.

Reading the counts of some groups only reads rows that can contain them, however many rows other tenants have.
"""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import get_args
from weakref import WeakValueDictionary

import msgspec

from light_scheduler.errors import FormatError
from light_scheduler.model import State

from .cell_changes import GROUP_NUMBER, CellChanges, Group
from .cells import added_up, by_group, decoded
from .count_rows import CHANGES, CHANGES_END, Place, Run, cut_up, keys_of, keys_with, place_in
from .store import Store

GROUPS = b"g"
GROUPS_END = b"h"
FANOUT = 16
MOST_RUNS = 4 * FANOUT
"""Runs of a level before they are merged without an allowance. The slot of a run is one byte."""

ALLOWANCE, LEAST_ALLOWANCE = 4, 1_000
"""Cells that a write reads to merge runs: `ALLOWANCE` times the cells it changes, at least `LEAST_ALLOWANCE`."""

MOST_RENEWED = 1 << 20
"""Maximum size (bytes) of a run that is split when an older table is opened. It blocks the loop for about 50 ms."""

MANY_CELLS = 16_000
"""A write with more cells is entered immediately: one later write would have to read all recent changes again."""

MINUTES_A_DAY = 1_440
RECENT, DAYS = 0xFFFFFFFF, 0xFFFFFFFE
"""Books that do not belong to a day. No instant is late enough to have these numbers."""

Levels = list[list[Run]]
"""The runs of a book, by level and slot."""

_LOW = 0xFFFFFFFF
_encode = msgspec.msgpack.Encoder().encode
_decode_changes = msgspec.msgpack.Decoder(dict[int, int]).decode
_decode_group = msgspec.msgpack.Decoder(Group).decode


@dataclass(frozen=True)
class Step:
    """The effect of a write on the counts: rows to store with it, and changes for `Counts.take` afterwards."""

    rows: dict[bytes, bytes | None]
    groups: Mapping[int, int]
    born: Mapping[Group, bytes]
    levels: Mapping[int, Levels]
    entered: Mapping[int, int]


class Earlier(dict[int, int]):
    """Sizes of groups at the time when an iteration over totals began, by number, for groups that changed since."""

    __slots__ = ("__weakref__",)


@dataclass
class Counts:
    """The counts of a store. Takes one number in memory for each group, each day and each row."""

    store: Store
    numbers: dict[Group, bytes] = field(default_factory=dict)
    next_number: int = 0
    _names: dict[int, Group] = field(default_factory=dict)
    _totals: Counter[int] = field(default_factory=Counter)
    _tenants: Counter[str] = field(default_factory=Counter)
    _states: Counter[tuple[str, State]] = field(default_factory=Counter)  # of each tenant
    _groups: dict[str, dict[int, Group]] = field(default_factory=dict)  # of each tenant, by rising number
    _levels: dict[int, Levels] = field(default_factory=dict)  # of each book
    _entered: Counter[int] = field(default_factory=Counter)  # day -> number of schedules in its book
    _earlier: WeakValueDictionary[int, Earlier] = field(default_factory=WeakValueDictionary)  # of running iterations
    _full: dict[int, None] = field(default_factory=dict)  # books with runs to merge, in order

    def __post_init__(self) -> None:
        for key, value in self.store.scan(GROUPS, GROUPS_END):
            self._name(decoded(_decode_group, value), key[1:])
        for key, _ in self.store.scan(CHANGES, CHANGES_END):
            place, last = place_in(key)
            levels = self._levels.setdefault(place.book, [])
            levels += ([] for _ in range(place.level + 1 - len(levels)))
            runs = levels[place.level]
            runs += ([] for _ in range(place.slot + 1 - len(runs)))
            if last is not None:
                runs[place.slot].append(last)
        for book, levels in self._levels.items():
            self._note_full(book, levels)
        for cell, count in self.by_day().items():
            self._add(cell >> 32, count)
        for cell, count in self._sum(DAYS).items():
            self._entered[cell & _LOW] += count

    def pending_of(self, tenant: str) -> int:
        """Return the number of a tenant's schedules."""
        return self._tenants[tenant]

    def number_of(self, tenant: str, topic: str | None, state: State | None) -> int:
        """Return the number of a tenant's schedules for a topic (None: any topic) in a state (None: any state)."""
        if topic is None:
            return self._tenants[tenant] if state is None else self._states[tenant, state]
        states = get_args(State) if state is None else (state,)
        keys = (self.numbers.get(Group(tenant, topic, each)) for each in states)
        return sum(self._totals[GROUP_NUMBER.unpack(key)[0]] for key in keys if key is not None)

    def has_any(self, tenant: str, topic: str | None, state: State | None) -> bool:
        """Return whether a tenant has any schedule for a topic (None: any topic) in a state (None: any state)."""
        if topic is None:
            return bool(self._tenants[tenant]) if state is None else bool(self._states[tenant, state])
        states = get_args(State) if state is None else (state,)
        return any(Group(tenant, topic, each) in self.numbers for each in states)

    def each_total(self, tenants: Collection[str] | None = None) -> Iterator[tuple[Group, int]]:
        """Return an iterator over the groups of some or all tenants and their sizes at the time of this call.

        Later changes do not affect it. Sizes are looked up lazily.
        """
        groups = [dict(self._names)] if tenants is None else [self.groups_of(tenant) for tenant in tenants]
        earlier = Earlier()
        self._earlier[id(earlier)] = earlier
        return self._totals_of(groups, earlier)

    def _totals_of(self, groups: Iterable[dict[int, Group]], earlier: Earlier) -> Iterator[tuple[Group, int]]:
        for number, group in chain.from_iterable(each.items() for each in groups):
            count = earlier[number] if number in earlier else self._totals[number]
            if count:
                yield group, count

    def by_day(self) -> dict[int, int]:
        """Return the number of schedules that wake on each day, as {group u32 | day u32: count}."""
        return {number: count for number, count in added_up(self.rows_by_day()).items() if count}

    def each_by_day(self) -> Iterator[tuple[int, int]]:
        """Return an iterator over the (group u32 | day u32, change) of `rows_by_day`."""
        return chain.from_iterable(row.items() for row in self.rows_by_day())

    def each_by_minute(self, day: int) -> Iterator[tuple[int, int]]:
        """Return an iterator over the (cell u64, change) of `rows_by_minute`."""
        return chain.from_iterable(row.items() for row in self.rows_by_minute(day))

    def rows_by_day(self, groups: Sequence[int] | None = None) -> Iterator[dict[int, int]]:
        """Return an iterator over rows {group u32 | day u32: change}.

        The sum of changes is the number of schedules that wake on each day, at the time of this call. With `groups`
        (sorted numbers), other groups may be missing.
        """
        days, recent = self._rows(DAYS, groups), self._rows(RECENT, groups)
        return chain(days, map(_in_days, recent))

    def rows_by_minute(self, day: int, groups: Sequence[int] | None = None) -> Iterator[dict[int, int]]:
        """Return an iterator over rows {cell u64: change} of a day.

        The sum of changes is the number of schedules that wake in each minute, at the time of this call. With `groups`
        (sorted numbers), other groups may be missing.
        """
        rows, recent = self._rows(day, groups), self._rows(RECENT, groups)
        return chain(rows, (_of_day(day, row) for row in recent))

    def days(self, groups: Sequence[int] | None = None) -> set[int]:
        """Return the days on which schedules of these groups (sorted numbers) wake, and maybe others. None: all."""
        recent = {(cell & _LOW) // MINUTES_A_DAY for row in self._rows(RECENT, groups) for cell in row}
        return recent | self._levels.keys() - {RECENT, DAYS}

    def groups_of(self, tenant: str) -> dict[int, Group]:
        """Return the groups of a tenant by their numbers, in order."""
        return dict(self._groups.get(tenant, ()))

    def group(self, number: int) -> Group | None:
        """Return the group with a number; None if it has no schedules any more."""
        return self._names.get(number)

    def step(self, counted: CellChanges) -> Step | None:
        """Return the rows that a write with these changes must store; None if no count changes."""
        changes = counted.changes()
        if not changes:
            return None
        cells = dict(zip(struct.unpack(f">{len(changes)}Q", b"".join(changes)), changes.values(), strict=True))
        groups = by_group(cells)
        rows: dict[bytes, bytes | None] = {}
        levels: dict[int, Levels] = {}
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

    def renewals(self) -> Iterator[Step]:
        """Yield the steps that split runs from before format 9 into rows, one run at a time.

        Store and take each step before requesting the next one. Very large runs are not split: they are read whole
        until they are merged with others.
        """
        for book in list(self._levels):
            old = [
                Place(book, level, slot)
                for level, runs in enumerate(self._levels[book])
                for slot, run in enumerate(runs)
                if not run
            ]
            for place in old:
                keys = keys_of(place, [])
                (row,) = self.store.get_many(keys)
                if len(row or b"") <= MOST_RENEWED and (cells := _changes_in(row)):
                    levels = self._copy(book)
                    levels[place.level][place.slot], cut = cut_up(place, cells)
                    yield Step({**dict.fromkeys(keys), **cut}, {}, {}, {book: levels}, {})

    def take(self, step: Step) -> None:
        """Update the counts in memory after a step was stored."""
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
        for earlier in list(self._earlier.values()):
            for number in step.groups:
                earlier.setdefault(number, self._totals[number])
        for number, change in step.groups.items():
            self._add(number, change)
            if not self._totals[number]:
                del self._totals[number]
                if (gone := self._names.pop(number, None)) is not None:
                    self._forget(gone, number)

    def _name(self, group: Group, key: bytes) -> None:
        number = GROUP_NUMBER.unpack(key)[0]
        self._names[number] = group
        self.numbers[group] = key
        self._groups.setdefault(group.tenant, {})[number] = group
        self.next_number = max(self.next_number, number + 1)

    def _forget(self, group: Group, number: int) -> None:
        del self.numbers[group]
        del self._groups[group.tenant][number]
        if not self._groups[group.tenant]:
            del self._groups[group.tenant]

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
        self, rows: dict[bytes, bytes | None], levels: dict[int, Levels], cells: dict[int, int]
    ) -> Mapping[int, int]:
        """Add changes to the book `RECENT`; when it has many runs, enter them in the books of their days.

        Returns the changes of the sums of the days' books.
        """
        recent = self._copy(RECENT) or [[]]
        if len(recent[0]) < FANOUT - 1 and len(cells) <= MANY_CELLS:
            _put(rows, RECENT, recent, 0, cells)
            levels[RECENT] = recent
            return {}
        full = self._keys(RECENT)
        books: defaultdict[int, dict[int, int]] = defaultdict(dict)
        for cell, change in added_up([cells, *self._read(full)]).items():
            books[(cell & _LOW) // MINUTES_A_DAY][cell] = change
        rows.update(dict.fromkeys(full))
        levels[RECENT] = [[]]
        entered = {day: sum(changes.values()) for day, changes in books.items()}
        books[DAYS] = {
            number << 32 | day: change
            for day, changes in books.items()
            for number, change in by_group(changes).items()
            if change
        }
        for book, changes in books.items():
            if book != DAYS and not self._entered[book] + entered[book]:  # counts are never negative, so all are 0
                rows.update(dict.fromkeys(self._keys(book)))
                levels[book] = []
            elif changes:
                levels[book] = self._append(rows, book, changes)
        return entered

    def _append(self, rows: dict[bytes, bytes | None], book: int, changes: dict[int, int]) -> Levels:
        """Add a run to a book and return its runs."""
        levels = self._copy(book)
        level = 0
        while changes and level < len(levels) and len(levels[level]) >= MOST_RUNS:
            full = [key for slot, run in enumerate(levels[level]) for key in keys_of(Place(book, level, slot), run)]
            changes = added_up([changes, *self._read(full)])
            rows.update(dict.fromkeys(full))
            levels[level] = []
            level += 1
        _put(rows, book, levels, level, changes)
        return levels

    def _add_up_some(self, rows: dict[bytes, bytes | None], levels: dict[int, Levels], allowance: int) -> None:
        """Merge runs of books with many runs, until `allowance` cells have been read."""
        for book in self._full:
            if allowance <= 0:
                return
            left = self._copy(book)
            level = max(range(len(left)), key=lambda each: len(left[each]))
            taken: list[dict[int, int]] = []
            runs = 0
            while left[level] and (allowance > 0 or runs < 2):  # a single run would only be copied
                run = left[level].pop()
                keys = keys_of(Place(book, level, len(left[level])), run)
                read = list(self._read(keys))
                rows.update(dict.fromkeys(keys))
                allowance -= sum(map(len, read))
                taken += read
                runs += 1
            _put(rows, book, left, level + 1, added_up(taken))
            levels[book] = left

    def _note_full(self, book: int, levels: Levels) -> None:
        if book != RECENT and max(map(len, levels), default=0) >= FANOUT:
            self._full[book] = None
        else:
            self._full.pop(book, None)

    def _sum(self, book: int) -> Counter[int]:
        return added_up(self._rows(book))

    def _copy(self, book: int) -> Levels:
        """Return a copy of the runs of a book, which may be changed."""
        return [list(runs) for runs in self._levels.get(book, ())]

    def _keys(self, book: int, groups: Sequence[int] | None = None) -> list[bytes]:
        """Return the keys of a book's rows; with `groups`, only of rows that can have their cells."""
        return [
            key
            for level, runs in enumerate(self._levels.get(book, ()))
            for slot, run in enumerate(runs)
            for place in [Place(book, level, slot)]
            for key in (keys_of(place, run) if groups is None else keys_with(place, run, groups))
        ]

    def _rows(self, book: int, groups: Sequence[int] | None = None) -> Iterator[dict[int, int]]:
        """Return an iterator over rows of a book. They are read in this call, and decoded lazily."""
        return self._read(self._keys(book, groups))

    def _read(self, keys: list[bytes]) -> Iterator[dict[int, int]]:
        """Return an iterator over rows. They are read in this call, and decoded lazily."""
        return map(_changes_in, [*self.store.get_many(keys)] if keys else [])


def _changes_in(row: bytes | None) -> dict[int, int]:
    if row is None:
        raise FormatError("the table's counts lack a row")
    return decoded(_decode_changes, row)


def _in_days(row: Mapping[int, int]) -> dict[int, int]:
    """Return the changes of a row summed by group and day."""
    days: defaultdict[int, int] = defaultdict(int)
    for cell, change in row.items():
        days[cell >> 32 << 32 | (cell & _LOW) // MINUTES_A_DAY] += change
    return days


def _of_day(day: int, row: Mapping[int, int]) -> dict[int, int]:
    return {cell: change for cell, change in row.items() if (cell & _LOW) // MINUTES_A_DAY == day}


def _put(rows: dict[bytes, bytes | None], book: int, levels: Levels, level: int, changes: Mapping[int, int]) -> None:
    """Add a run to a level of a book, unless it is empty."""
    if changes:
        levels += ([] for _ in range(level + 1 - len(levels)))
        run, cut = cut_up(Place(book, level, len(levels[level])), changes)
        levels[level].append(run)
        rows.update(cut)
