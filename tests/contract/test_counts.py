"""What a table counts is what it has: in memory and in RocksDB, whatever becomes of its schedules."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.counting import added_up, check_counts, count_by_hand, miscounted
from support.tries import tries

from light_scheduler.errors import FormatTooOld, StateError
from light_scheduler.model import NEVER, Awaited, Entry, Once, Progress, Schedule, State, Target
from light_scheduler.tables import Checkpoint, MemoryStore, Overlay, ScheduleTable, Store, count_rows, counts, layout
from light_scheduler.tables import table as table_module
from light_scheduler.tables.cell_changes import CellChanges, Group
from light_scheduler.tables.count_rows import CHANGES
from light_scheduler.tables.counts import GROUPS, Counts
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Changes
from light_scheduler.wire.state import encode_entry, encode_progress, identity_of

AT = 1_767_225_600_000
DAY = 86_400_000
MINUTE = 60_000

Stores = Callable[[], Store]


@contextmanager
def stores(kind: str) -> Iterator[Stores]:
    if kind == "memory":
        store = MemoryStore()
        yield lambda: store
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield lambda: RocksStore(Path(folder))


def entry(id: str, wakes: int = AT, *, tenant: str = "acme", topic: str = "t", state: str = "pending") -> Entry:
    schedule = Schedule(tenant, id, 1, Once(wakes), Target(topic), b"x", [], 0, 0, AT)
    match state:
        case "paused":
            return Entry(schedule, Progress(wakes, 0, wake=NEVER, paused=True))
        case "awaiting":
            return Entry(schedule, Progress(NEVER, 0, wake=wakes, awaited=(Awaited(AT, 1, 1, wakes, AT),)))
    return Entry(schedule, Progress(wakes, 0))


def put(overlay: Overlay, *entries: Entry) -> None:
    for each in entries:
        overlay.put(identity_of(each), each, encode_entry(each))


def apply(overlay: Overlay) -> None:
    overlay.apply(changelog_offset=1, complete_at=AT)


schedules = st.builds(
    entry,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from([AT, AT + 1, AT + MINUTE, AT + DAY, AT + 400 * DAY, NEVER]),
    tenant=st.sampled_from(["acme", "\u00ff", "\U0010ffff"]),
    topic=st.sampled_from(["t", "u"]),
    state=st.sampled_from(["pending", "paused", "awaiting"]),
)
steps = st.one_of(
    st.tuples(st.just("put"), schedules),
    st.tuples(st.just("advance"), schedules),
    st.tuples(st.just("remove"), schedules),
    st.tuples(st.just("fire"), schedules),
)


@pytest.mark.parametrize("kind", ["memory", "rocks"])
@settings(max_examples=tries(80))
@given(
    cycles=st.lists(
        st.tuples(st.lists(steps, max_size=4), st.sampled_from(["apply", "drop", "restart"])), min_size=1, max_size=12
    )
)
def test_counts_are_those_of_the_schedules_after_each_cycle(
    kind: str, cycles: list[tuple[list[tuple[str, Entry]], str]]
) -> None:
    with stores(kind) as opened, patch.object(counts, "FANOUT", 3), patch.object(count_rows, "ROW_CELLS", 2):
        table = ScheduleTable(opened())
        for changes, end in cycles:
            overlay = Overlay(table)
            for number, (change, each) in enumerate(changes):
                match change:
                    case "put":
                        put(overlay, each)
                    case "remove":
                        overlay.remove(identity_of(each))
                    case "advance" if (current := overlay.get(identity_of(each))) is not None:
                        moved = Entry(current.schedule, each.progress)
                        overlay.advance(identity_of(each), moved, encode_progress(each.progress))
                    case "fire" if number == 0:
                        for due in overlay.due(AT + DAY, 2, 1 << 20).entries:
                            overlay.remove(identity_of(due))
            if end != "drop":
                apply(overlay)
            if end == "restart":
                table.close()
                table = ScheduleTable(opened())
            check_counts(table)
        table.close()


@pytest.mark.parametrize("kind", ["memory", "rocks"])
def test_groups_and_rows_of_what_is_gone_are_gone(kind: str) -> None:
    with stores(kind) as opened, patch.object(counts, "FANOUT", 2):
        table = ScheduleTable(opened())
        for number in range(20):
            each = entry("a", AT + number * DAY, tenant=f"tenant-{number}")
            overlay = Overlay(table)
            put(overlay, each)
            apply(overlay)
            overlay = Overlay(table)
            overlay.remove(identity_of(each))
            apply(overlay)
        assert list(table.store.scan(GROUPS, GROUPS + b"\xff")) == []
        assert len(list(table.store.scan(CHANGES, CHANGES + b"\xff" * 7))) <= 3
        assert dict(table.counts.each_total()) == {}
        assert table.counts.numbers == {}
        table.close()


def test_a_table_of_many_cycles_has_few_rows_of_counts() -> None:
    table = ScheduleTable(MemoryStore())
    for number in range(2_000):
        overlay = Overlay(table)
        put(overlay, entry(f"id-{number}", AT + number * 17 * MINUTE))
        apply(overlay)
    days = 2_000 * 17 // 1_440 + 1
    assert len(list(table.store.scan(CHANGES, CHANGES + b"\xff" * 7))) <= 3 * counts.FANOUT + days * 2 * counts.FANOUT
    check_counts(table)


@pytest.mark.parametrize("kind", ["memory", "rocks"])
def test_days_that_are_over_leave_no_rows(kind: str) -> None:
    with stores(kind) as opened:
        table = ScheduleTable(opened())
        for number in range(1_200):
            at = AT + number * 15 * MINUTE
            overlay = Overlay(table)
            put(overlay, entry(f"{number}", at + DAY), entry(f"{number}-later", at + 3 * DAY, topic="u"))
            for due in overlay.due(at, 10, 1 << 20).entries:
                overlay.remove(identity_of(due))
            apply(overlay)
            if number == 700:
                table.close()
                table = ScheduleTable(opened())
        today = (at - 16 * 15 * MINUTE) // DAY
        books = {int.from_bytes(key[1:5]) for key, _ in table.store.scan(CHANGES, CHANGES + b"\xff" * 7)}
        assert sorted(books - {counts.RECENT, counts.DAYS}) == list(range(today, today + 4))
        check_counts(table)
        table.close()


def test_totals_and_minutes_are_told_by_tenant_target_and_state() -> None:
    table = ScheduleTable(MemoryStore())
    overlay = Overlay(table)
    put(overlay, entry("a"), entry("b", AT + 59_999), entry("c", AT + MINUTE), entry("d", tenant="b", state="awaiting"))
    apply(overlay)
    found = table.counts
    assert dict(found.each_total()) == {Group("acme", "t", "pending"): 3, Group("b", "t", "awaiting"): 1}
    states: tuple[State | None, ...] = (None, "pending", "paused", "awaiting")
    for tenant, topic, state in product(("acme", "b", "c"), (None, "t", "u"), states):
        assert found.number_of(tenant, topic, state) == sum(
            count
            for group, count in found.each_total()
            if group.tenant == tenant and topic in (None, group.topic) and state in (None, group.state)
        )
    assert (found.pending_of("acme"), found.pending_of("b"), found.pending_of("c")) == (3, 1, 0)
    cells = added_up(found.each_by_minute(AT // DAY))
    minutes = {(found.group(cell >> 32), cell & 0xFFFFFFFF): n for cell, n in cells.items()}
    assert minutes == count_by_hand(table.store)
    assert found.days() == {AT // DAY}
    assert added_up(found.each_by_minute(AT // DAY + 1)) == {}


def test_counts_are_those_of_the_moment_whatever_changes_while_they_are_read() -> None:
    table = ScheduleTable(MemoryStore())
    overlay = Overlay(table)
    put(overlay, entry("a"), entry("b", AT + MINUTE, tenant="b"))
    apply(overlay)
    found = table.counts
    totals, expected = dict(found.each_total()), count_by_hand(table.store)
    read = found.each_total(), found.each_by_day(), found.each_by_minute(AT // DAY)
    begun, of_tenants = found.each_total(), found.each_total(("acme", "b"))
    first = next(begun)
    groups = {int.from_bytes(number): group for group, number in found.numbers.items()}
    overlay = Overlay(table)
    for gone in (entry("a"), entry("b", tenant="b")):
        overlay.remove(identity_of(gone))
    apply(overlay)
    for number in range(40):  # rows are added up to others
        overlay = Overlay(table)
        put(overlay, entry(f"{number}", tenant=f"new-{number}"))
        apply(overlay)
    assert dict(found.each_total()).keys().isdisjoint(groups.values())
    assert dict(read[0]) == dict([first, *begun]) == dict(of_tenants) == totals
    assert not found._earlier  # those who have read everything cost no more
    assert {(groups[day >> 32], day & 0xFFFFFFFF): n for day, n in added_up(read[1]).items()} == {
        (group, AT // DAY): n for group, n in totals.items()
    }
    assert {(groups[cell >> 32], cell & 0xFFFFFFFF): n for cell, n in added_up(read[2]).items()} == expected


def test_counts_are_right_after_a_write_that_failed_and_was_carried_out_all_the_same() -> None:
    table = ScheduleTable(MemoryStore())
    write = table.store.write

    def answered_late(changes: Changes) -> None:
        write(changes)
        raise StateError("the answer came too late")

    overlay = Overlay(table)
    put(overlay, entry("a"))
    with patch.object(table.store, "write", answered_late), pytest.raises(StateError):
        apply(overlay)
    overlay = Overlay(table)
    put(overlay, entry("a"))
    apply(overlay)
    assert dict(table.counts.each_total()) == {Group("acme", "t", "pending"): 1}
    assert miscounted(table.store) is None


def test_a_tenants_schedules_are_known_within_a_cycle() -> None:
    table = ScheduleTable(MemoryStore())
    overlay = Overlay(table)
    put(overlay, entry("a"), entry("b"))
    apply(overlay)
    overlay = Overlay(table)
    overlay.count_tenants()
    put(overlay, entry("c"), entry("c", AT + 1), entry("d", tenant="b"))
    overlay.remove(identity_of(entry("a")))
    assert (overlay.pending_of("acme"), overlay.pending_of("b"), overlay.pending_of("c")) == (2, 1, 0)


def uncounted(entries: list[Entry]) -> MemoryStore:
    """Return a store as a version without counts left it."""
    store = MemoryStore()
    changes: dict[bytes, bytes | None] = {}
    for each in entries:
        key = layout.index_key(each, identity_of(each))
        if each.schedule.id == "split":
            changes |= {key: layout.PROGRESS_ONLY + encode_progress(each.progress)}
            changes |= {layout.DEFINITION + identity_of(each): encode_entry(each)}
            changes |= {layout.PRIMARY + identity_of(each): key + layout.SPLIT}
        else:
            changes |= {key: encode_entry(each), layout.PRIMARY + identity_of(each): key}
    checkpoint = b"\x06" + msgspec.msgpack.encode(Checkpoint(7, 5, len(entries)))
    store.write({**changes, layout.CHECKPOINT_KEY: checkpoint})
    return store


def test_a_table_of_a_version_that_did_not_count_is_counted_when_it_is_opened() -> None:
    entries = [entry("a"), entry("split", AT + DAY), entry("c", tenant="b", state="paused")]
    store = uncounted(entries)
    table = ScheduleTable(store)
    check_counts(table)
    assert table.checkpoint == Checkpoint(7, 5, 3)
    assert [table.get(each.schedule.tenant, each.schedule.id) for each in entries] == entries
    check_counts(ScheduleTable(store))


def test_a_large_table_of_a_version_that_did_not_count_is_built_anew() -> None:
    store = uncounted([entry("a"), entry("b")])
    before = list(store.scan(b"", b"\xff"))
    with patch.object(table_module, "MOST_COUNTED", 1), pytest.raises(FormatTooOld, match="format 6"):
        ScheduleTable(store)
    assert list(store.scan(b"", b"\xff")) == before


class CountingStore(MemoryStore):
    """Notes how many cells of counts are read."""

    cells = 0

    def get_many(self, keys: Sequence[bytes]) -> Sequence[bytes | None]:
        found = super().get_many(keys)
        self.cells += sum(len(msgspec.msgpack.decode(value, type=dict[int, int])) for value in found if value)
        return found


@pytest.mark.parametrize("days", [1, 40])
def test_no_write_adds_up_the_rows_of_all_books_at_once(days: int) -> None:
    store, per_write = CountingStore(), 200
    found, most, expected = Counts(store), 0, Counter[int]()
    for write in range(1_000):
        counted = CellChanges(found)
        group = counted.pending_number("a", "t")
        for each in range(per_write):
            minute = each % days * counts.MINUTES_A_DAY + (write * 7 + each // days) % counts.MINUTES_A_DAY
            counted.added.append(group + minute.to_bytes(4))
            expected[minute // counts.MINUTES_A_DAY] += 1
        store.cells = 0
        step = found.step(counted)
        assert step is not None
        most = max(most, store.cells)
        store.write(step.rows)
        found.take(step)
    entering = counts.FANOUT * per_write
    assert most <= entering + counts.LEAST_ALLOWANCE
    for known in (found, Counts(store)):
        assert {cell & 0xFFFFFFFF: count for cell, count in known.by_day().items()} == expected
    slots = [key[6] for key, _ in store.scan(CHANGES, CHANGES + b"\xff" * 7)]
    assert max(slots) < 2 * counts.FANOUT


def test_a_large_write_is_entered_at_once_with_the_recent_ones_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MANY_CELLS", 10)
    store, expected = MemoryStore(), Counter[int]()
    found = Counts(store)
    for cells in (10, 3, 11):
        counted = CellChanges(found)
        group = counted.pending_number("a", "t")
        minutes = [minute * 1_000 for minute in range(cells)]
        counted.added = [group + minute.to_bytes(4) for minute in minutes]
        expected.update(minute // counts.MINUTES_A_DAY for minute in minutes)
        step = found.step(counted)
        assert step is not None
        store.write(step.rows)
        found.take(step)
        recent = list(store.scan(CHANGES + b"\xff" * 4, CHANGES + b"\xff" * 7))
        assert bool(recent) == (cells <= 10)
    for known in (found, Counts(store)):
        assert {cell & 0xFFFFFFFF: count for cell, count in known.by_day().items()} == expected


def test_a_group_that_was_never_stored_takes_no_number_from_another() -> None:
    found = Counts(MemoryStore())
    dropped, kept = CellChanges(found), CellChanges(found)
    assert dropped.number(Group("a", "t", "pending")) == kept.number(Group("b", "t", "pending"))
    step = found.step(kept)
    assert step is None
