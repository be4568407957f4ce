"""What a table counts, held against what is in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from light_scheduler.model.probe import is_probe
from light_scheduler.tables import ScheduleTable, layout
from light_scheduler.tables.cell_changes import UNCOUNTED, Group
from light_scheduler.tables.count_rows import CHANGES, CHANGES_END, keys_of, place_in
from light_scheduler.tables.counts import MINUTES_A_DAY, Counts
from light_scheduler.tables.store import Store
from light_scheduler.tables.table import CHECKPOINT_VERSION, stored_entry

Counted = dict[tuple[Group, int], int]
"""(group, minute) -> schedules."""


def count_by_hand(store: Store) -> Counted:
    """Count the schedules of users in a store one by one."""
    found: Counter[tuple[Group, int]] = Counter()
    for key, value in store.scan(layout.USERS_INDEX_START, layout.INDEX_END):
        schedule, progress = (entry := stored_entry(key, value, store.get)).schedule, entry.progress
        found[Group(schedule.tenant, schedule.target.topic, progress.state), progress.wakes_at // 60_000] += 1
    return dict(found)


def added_up(changes: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Return what changes of cells add up to, without those that are 0."""
    total: Counter[int] = Counter()
    for cell, change in changes:
        total[cell] += change
    return {cell: count for cell, count in total.items() if count}


def counts_of(counts: Counts) -> Counted:
    """Return what is counted, and see that totals and days agree with the minutes."""
    by_minute: Counted = {}
    totals: Counter[Group] = Counter()
    by_day: Counter[int] = Counter(counts.by_day())
    days = {number & 0xFFFFFFFF for number in by_day}
    assert days <= counts.days()
    assert added_up(counts.each_by_day()) == by_day
    for day in days:
        for cell, count in added_up(counts.each_by_minute(day)).items():
            group = counts.group(cell >> 32)
            assert group is not None
            by_minute[group, cell & 0xFFFFFFFF] = count
            totals[group] += count
            by_day[cell >> 32 << 32 | day] -= count
            assert (cell & 0xFFFFFFFF) // MINUTES_A_DAY == day
    assert not any(by_day.values())
    assert dict(counts.each_total()) == totals
    for tenant in {group.tenant for group in totals}:
        own = {each: count for each, count in by_minute.items() if each[0].tenant == tenant}
        assert counts_of_tenant(counts, tenant) == own
    return by_minute


def counts_of_tenant(counts: Counts, tenant: str) -> Counted:
    """Return what is counted of a tenant, read from the rows that can have its groups; see that totals and days agree
    with the minutes."""
    groups = counts.groups_of(tenant)
    numbers = list(groups)
    assert numbers == sorted(numbers)
    rows = (row for day in counts.days(numbers) for row in counts.rows_by_minute(day, numbers))
    by_minute = added_up(each for row in rows for each in row.items() if each[0] >> 32 in groups)
    in_days = (each for row in counts.rows_by_day(numbers) for each in row.items() if each[0] >> 32 in groups)
    assert added_up(in_days) == added_up(
        (cell >> 32 << 32 | (cell & 0xFFFFFFFF) // MINUTES_A_DAY, count) for cell, count in by_minute.items()
    )
    totals = Counter[Group]()
    for cell, count in by_minute.items():
        totals[groups[cell >> 32]] += count
    assert dict(counts.each_total((tenant,))) == totals
    return {(groups[cell >> 32], cell & 0xFFFFFFFF): count for cell, count in by_minute.items()}


def miscounted(store: Store) -> str | None:
    """Say what is wrong with the counts of a store, as they are found after a restart; None: nothing is."""
    has, counts = count_by_hand(store), Counts(store)
    try:
        counted = counts_of(counts)
    except AssertionError as error:
        return f"totals, days and minutes do not agree: {error}"
    return None if counted == has else f"it counts {counted} and has {has}"


def as_of_format_8(store: Store) -> None:
    """Have the runs of a store each be one row, in no order, as tables of format 8 have them."""
    changes: dict[bytes, bytes | None] = {}
    runs: dict[bytes, dict[int, int]] = {}
    for key, value in store.scan(CHANGES, CHANGES_END):
        place, _ = place_in(key)
        changes[key] = None
        runs.setdefault(keys_of(place, [])[0], {}).update(msgspec.msgpack.decode(value, type=dict[int, int]))
    changes |= {key: msgspec.msgpack.encode(dict(reversed(cells.items()))) for key, cells in runs.items()}
    checkpoint = store.get(layout.CHECKPOINT_KEY) or b""
    if checkpoint[0] == CHECKPOINT_VERSION:
        changes[layout.CHECKPOINT_KEY] = b"\x08" + checkpoint[1:]
    store.write(changes)


def old_rows(store: Store) -> int:
    """Return how many rows of counts a store has as tables of format 8 have them."""
    return sum(place_in(key)[1] is None for key, _ in store.scan(CHANGES, CHANGES_END))


def check_counts(table: ScheduleTable) -> None:
    """See that a table counts what it has, that it would after a restart, and that each row says where it counts."""
    assert miscounted(table.store) is None
    assert counts_of(table.counts) == count_by_hand(table.store)
    assert sum(count for _, count in table.counts.each_total()) == table.pending
    for key, row in table.store.scan(layout.PRIMARY, layout.PRIMARY + b"\xff"):
        if is_probe(key[1:]):
            assert row[:4] == UNCOUNTED
            continue
        group = table.counts.group(int.from_bytes(row[:4]))
        assert group is not None
        assert group.tenant.encode() == key[1 : key.index(0)]
        assert row[4:8] == layout.minute_in(layout.indexed_at(row))
