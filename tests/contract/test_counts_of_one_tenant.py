"""The counts of one tenant cost as much as it has itself, whatever others have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from support.counting import added_up, check_counts

from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire.state import encode_entry, identity_of

DAY = 20_454
MINUTE, DAY_MS = 60_000, 86_400_000
WRITES, FEW, MANY = 40, 150, 600
TENANT, OTHER = "\U0010ffff\u00ff", "other"
OWN = range(1, WRITES, 13)
"""The writes in which there is a schedule of the tenant."""


class WatchedTotals(Counter[int]):
    """Notes how many of them are looked up or copied."""

    looked_up = 0

    def __iter__(self) -> Iterator[int]:
        return super().__iter__()  # a dict that has its own is copied item by item

    def __getitem__(self, number: int) -> int:
        self.looked_up += 1
        return super().__getitem__(number)


class WatchedStore(MemoryStore):
    """Notes how many bytes are read of rows that are named."""

    size = 0

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        found = super().get_many(keys)
        self.size += sum(len(value) for value in found if value is not None)
        return found


def entry(tenant: str, number: int) -> Entry:
    at = DAY * DAY_MS + number % 2 * DAY_MS + number % 60 * MINUTE
    schedule = Schedule(tenant, f"{number}", 1, Once(at), Target(f"topic-{number}"), b"", [], 0, 0, at)
    return Entry(schedule, Progress(at, 0))


def writes(others: int) -> Iterator[list[Entry]]:
    """Yield writes in which another tenant has so many new groups, and the tenant one now and then."""
    for write in range(WRITES):
        each = [entry(OTHER, write * others + number) for number in range(others)]
        yield [*each[: others // 2], entry(TENANT, write), *each[others // 2 :]] if write in OWN else each


def filled(others: int) -> WatchedStore:
    table = ScheduleTable(store := WatchedStore())
    for written in writes(others):
        overlay = Overlay(table)
        for each in written:
            overlay.put(identity_of(each), each, encode_entry(each))
        overlay.apply(changelog_offset=1, complete_at=DAY * DAY_MS)
    check_counts(table)
    return store


@pytest.fixture(scope="module")
def stores() -> tuple[WatchedStore, WatchedStore]:
    """Return a store with few groups of others, and one with many."""
    return filled(FEW), filled(MANY)


def test_a_tenant_reads_as_much_whatever_others_have(stores: tuple[WatchedStore, WatchedStore]) -> None:
    by_minute, by_day, everything = [], [], []
    for store in stores:
        counts = ScheduleTable(store).counts
        groups = counts.groups_of(TENANT)
        numbers = list(groups)
        store.size = 0
        rows = [row for day in (DAY, DAY + 1) for row in counts.rows_by_minute(day, numbers)]
        by_minute.append(store.size)
        store.size = 0
        in_days = list(counts.rows_by_day(numbers))
        by_day.append(store.size)
        for read in rows, in_days:
            own = added_up((cell, change) for row in read for cell, change in row.items() if cell >> 32 in groups)
            assert list(own.values()) == [1] * len(OWN)
        store.size = 0
        assert sum(1 for day in (DAY, DAY + 1) for _ in counts.each_by_minute(day)) == sum(
            dict(counts.each_total()).values()
        )
        everything.append(store.size)
    for few, many in by_minute, by_day:
        assert many < 1.5 * few
    assert everything[1] > 3 * everything[0]


def test_the_groups_of_a_tenant_are_known_without_a_look_at_others(stores: tuple[WatchedStore, WatchedStore]) -> None:
    counts = ScheduleTable(stores[0]).counts
    groups = counts.groups_of(TENANT)
    assert [each.topic for each in groups.values()] == [f"topic-{write}" for write in OWN]
    assert list(counts.each_total((TENANT, "nobody"))) == [(group, 1) for group in groups.values()]


def test_who_has_nothing_reads_nothing(stores: tuple[WatchedStore, WatchedStore]) -> None:
    counts = ScheduleTable(stores[0]).counts
    assert counts.groups_of("nobody") == {}
    stores[0].size = 0
    assert [*counts.rows_by_day([]), *counts.rows_by_minute(DAY, []), *counts.each_total(("nobody",))] == []
    counts.days([])
    assert stores[0].size == 0


def test_totals_are_looked_up_one_by_one_as_they_are_read(stores: tuple[WatchedStore, WatchedStore]) -> None:
    """Whoever copies or looks up all of them at once holds up the loop."""
    counts = ScheduleTable(stores[1]).counts
    expected = {tenants: dict(counts.each_total(tenants)) for tenants in ((TENANT,), (OTHER,), None)}
    assert len(expected[OTHER,]) > 10_000
    watched = counts._totals = WatchedTotals(counts._totals)
    for tenants, totals in expected.items():
        watched.looked_up = 0
        read = counts.each_total(tenants)
        assert watched.looked_up == 0
        first = next(read)
        assert watched.looked_up == 1
        assert dict([first, *read]) == totals
        assert watched.looked_up == len(totals)
