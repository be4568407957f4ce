"""Counts as tables before format 9 have them: read as they are, cut up step by step, and never counted twice."""

from __future__ import annotations

import tarfile
from pathlib import Path
from unittest.mock import patch

import pytest
from support.counting import as_of_format_8, check_counts, count_by_hand, old_rows

from light_scheduler.errors import StateError
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable, counts, layout
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.store import Changes
from light_scheduler.tables.table import CHECKPOINT_VERSION
from light_scheduler.tables.usable_copy import ChangelogFacts, open_table
from light_scheduler.wire.state import encode_entry, identity_of
from scripts.record_state import RECORDED_AT

GOLDEN = Path(__file__).parents[2] / "golden" / "copies"
"""Local copies as `scripts/record_state.py` of earlier versions left them, by the format of their checkpoint."""

AT, DAY, MINUTE = 1_767_225_600_000, 86_400_000, 60_000
TENANTS = ["acme", "\u00e9", "\U0010ffff"]


def write(table: ScheduleTable, numbers: range) -> None:
    overlay = Overlay(table)
    for number in numbers:
        at = AT + number % 3 * DAY + number * MINUTE
        schedule = Schedule(
            TENANTS[number % 3], f"{number}", 1, Once(at), Target(f"t-{number % 40}"), b"", [], 0, 0, at
        )
        overlay.put(identity_of(each := Entry(schedule, Progress(at, 0))), each, encode_entry(each))
    overlay.apply(changelog_offset=1, complete_at=AT)


def left_by_format_8() -> MemoryStore:
    """Return a store whose runs are each one row, in no order, as tables of format 8 have them."""
    table = ScheduleTable(store := MemoryStore())
    with patch.object(counts, "FANOUT", 4):
        for start in range(0, 1_600, 200):
            write(table, range(start, start + 200))
    as_of_format_8(store)
    return store


def test_older_rows_are_read_and_added_up_with_newer_ones() -> None:
    store = left_by_format_8()
    table = ScheduleTable(store)
    check_counts(table)
    for start in range(1_600, 3_000, 50):
        write(table, range(start, start + 50))
        overlay = Overlay(table)
        for due in overlay.due(AT + start * MINUTE, 40, 1 << 20).entries:
            overlay.remove(identity_of(due))
        overlay.apply(changelog_offset=1, complete_at=AT)
    check_counts(table)


def test_a_table_that_is_renewed_has_no_older_rows_and_counts_the_same() -> None:
    store = left_by_format_8()
    has = count_by_hand(store)
    table = ScheduleTable(store)
    before = old_rows(store)
    assert len(list(table.renew())) == before > 3
    assert old_rows(store) == 0
    assert (store.get(layout.CHECKPOINT_KEY) or b"")[0] == CHECKPOINT_VERSION
    check_counts(table)
    assert count_by_hand(store) == has
    assert list(table.renew()) == []
    assert list(ScheduleTable(store).renew()) == []


def test_a_very_large_run_stays_as_it_is_and_counts_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MOST_RENEWED", 0)
    store = left_by_format_8()
    has = count_by_hand(store)
    table = ScheduleTable(store)
    assert list(table.renew()) == []
    assert old_rows(store) > 0
    check_counts(table)
    assert count_by_hand(store) == has


def test_a_table_counts_the_same_wherever_its_renewal_was_cut_short() -> None:
    store = left_by_format_8()
    steps = 0
    while left := old_rows(store):
        table = ScheduleTable(store)
        for _ in zip(range(1), table.renew(), strict=False):
            check_counts(table)
        check_counts(ScheduleTable(store))
        steps += 1
        assert old_rows(store) == left - 1
        assert (store.get(layout.CHECKPOINT_KEY) or b"")[0] == CHECKPOINT_VERSION, "no older version opens it from here"
    assert steps > 3


def test_a_step_of_a_renewal_that_failed_and_was_carried_out_all_the_same_counts_once() -> None:
    table = ScheduleTable(store := left_by_format_8())
    carried_out = store.write

    def answered_late(changes: Changes) -> None:
        carried_out(changes)
        raise StateError("the answer came too late")

    with patch.object(store, "write", answered_late), pytest.raises(StateError):
        list(table.renew())
    check_counts(table)
    list(table.renew())
    check_counts(table)
    assert old_rows(store) == 0


def test_a_local_copy_of_format_8_is_gone_on_with(tmp_path: Path) -> None:
    with tarfile.open(GOLDEN / "8.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    discarded: list[str] = []
    facts = ChangelogFacts("recorded-changelog", DAY)
    table = open_table(RocksStore, tmp_path / "copy", facts, RECORDED_AT, lambda: discarded.append("copy"))
    assert isinstance(table.store, RocksStore)
    assert old_rows(table.store) == 3
    check_counts(table)
    assert len(list(table.renew())) == 3
    assert old_rows(table.store) == 0
    check_counts(table)
    assert (table.pending, discarded) == (23, [])
    table.close()
