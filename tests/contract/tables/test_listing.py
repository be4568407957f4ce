"""Counting and listing what is pending."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec
from support.tables import AT, MINUTE, Tables, by_due, by_id, entry, put

from light_scheduler.model import (
    Entry,
)
from light_scheduler.wire.state import (
    identity,
)

replace = msgspec.structs.replace


def test_pending_counts_each_schedule_once(tables: Tables) -> None:
    tables.put(entry("a"), entry("b"))
    overlay = tables.overlay()
    counts = [overlay.pending]
    put(overlay, entry("a", AT + 1))
    counts.append(overlay.pending)
    put(overlay, entry("c"))
    counts.append(overlay.pending)
    put(overlay, entry("c", AT + 2))
    counts.append(overlay.pending)
    overlay.remove(identity("acme", "c"))
    counts.append(overlay.pending)
    overlay.remove(identity("acme", "b"))
    counts.append(overlay.pending)
    assert counts == [2, 2, 3, 3, 2, 1]
    tables.commit(overlay)
    assert tables.table.pending == 1
    assert tables.reopen().pending == 1


def listed(found: Iterator[Entry]) -> list[str]:
    return [each.schedule.id for each in found]


def test_a_tenants_schedules_are_listed_by_id(tables: Tables) -> None:
    tables.put(
        *[entry(id, AT - place) for place, id in enumerate(["a", "a/1", "a/2", "b", "ö", "\N{SLEEPING FACE}"])],
        entry("x", tenant="acm"),
        entry("y", tenant="acme2"),
    )
    found = partial(by_id, tables.table)
    assert listed(found("acme")) == ["a", "a/1", "a/2", "b", "ö", "\N{SLEEPING FACE}"]
    assert listed(found("acme", prefix="a")) == ["a", "a/1", "a/2"]
    assert listed(found("acme", prefix="a/")) == ["a/1", "a/2"]
    assert listed(found("acme", prefix="ö")) == ["ö"]
    assert listed(found("acme", after="a/1")) == ["a/2", "b", "ö", "\N{SLEEPING FACE}"]
    assert listed(found("acme", after="a", prefix="a/")) == ["a/1", "a/2"]
    assert listed(found("acme", after="a/1", prefix="a/")) == ["a/2"]
    assert listed(found("acme", after="b", prefix="a")) == []
    assert listed(found("acme", after="a/11")) == ["a/2", "b", "ö", "\N{SLEEPING FACE}"]
    assert listed(found("acm")) == ["x"]
    assert listed(found("nobody")) == []


def test_a_tenants_schedules_are_listed_by_due_from_a_position_on(tables: Tables) -> None:
    tables.put(entry("b", AT + 1), entry("a", AT), entry("c", AT + MINUTE, tenant="other"), entry("d", AT + MINUTE))
    positions = list(by_due(tables.table, "acme"))
    assert [each.schedule.id for _, each in positions] == ["a", "b", "d"]
    assert [each.schedule.id for _, each in by_due(tables.table, "other")] == ["c"]
    assert [each.schedule.id for _, each in by_due(tables.table, "nobody")] == []
    for place, (position, _) in enumerate(positions):
        assert list(by_due(tables.table, "acme", position)) == positions[place + 1 :]


def test_a_position_can_be_found_by_time(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1), entry("c", AT + MINUTE))
    for due, expected in [(AT - 1, "abc"), (AT, "abc"), (AT + 1, "bc"), (AT + 2, "c"), (AT + MINUTE + 1, "")]:
        position = tables.table.position_at("acme", due)
        assert "".join(each.schedule.id for _, each in by_due(tables.table, "acme", position)) == expected


def test_a_listing_goes_on_while_schedules_come_and_go(tables: Tables) -> None:
    tables.put(entry("a"), entry("b"), entry("c"))
    due_first, in_order = by_due(tables.table, "acme"), by_id(tables.table, "acme")
    assert (next(due_first)[1].schedule.id, next(in_order).schedule.id) == ("a", "a")
    overlay = tables.overlay()
    overlay.remove(identity("acme", "b"))
    put(overlay, entry("bb"))
    tables.commit(overlay)
    assert [each.schedule.id for _, each in due_first] == ["b", "c"]  # as it was when the listing began
    assert listed(in_order) == ["c"]
