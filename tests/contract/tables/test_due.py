"""What is due, in which order, and the floors from which it is sought."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from support.tables import AT, MINUTE, MUCH, Tables, by_due, entry, ids, index_key, put

from light_scheduler.model import NEVER, Awaited, Entry, Target
from light_scheduler.tables import DueScan
from light_scheduler.wire.state import (
    identity,
)

replace = msgspec.structs.replace


# -- what is due ------------------------------------------------------------------------------------------------------


def test_a_schedule_is_due_from_its_very_ms_on(tables: Tables) -> None:
    tables.put(entry("a", AT))
    assert tables.overlay().due(AT - 1, 10, MUCH) == DueScan([], AT)
    assert tables.overlay().due(AT, 10, MUCH) == DueScan([entry("a", AT)], None)


def test_the_topics_of_what_is_due_are_known_and_no_others(tables: Tables) -> None:
    def to(topic: str, each: Entry, **progress: Any) -> Entry:
        schedule = replace(each.schedule, target=Target(topic))
        return Entry(schedule, replace(each.progress, **progress))

    awaited = Awaited(AT - 5, 1, 1, AT, AT - 5)
    tables.put(
        to("first", entry("a", AT)),
        to("second", entry("b", AT)),
        to("first", entry("c", AT)),
        to("others", entry("d", AT, tenant="b")),
        to("awaiting", entry("e", NEVER), wake=AT, awaited=(awaited,)),
        to("later", entry("f", AT + 1)),
    )
    overlay = tables.overlay()
    assert overlay.due_topics == set()
    overlay.due(AT, 10, MUCH)
    assert overlay.due_topics == {"first", "second", "others", "awaiting"}


@pytest.mark.parametrize("fresh", [set(), {"b", "d", "f"}, {"a", "c", "e"}, set("abcdef")])
def test_what_is_due_comes_by_due_then_priority_then_arrival(tables: Tables, fresh: set[str]) -> None:
    in_order = [
        entry("a", AT - MINUTE, arrival=9),
        entry("b", AT - 1, arrival=8, priority=255),
        entry("c", AT, arrival=7, priority=0),
        entry("g", AT, arrival=-2, priority=100),
        entry("h", AT, arrival=-1, priority=100),
        entry("d", AT, arrival=5, priority=100),
        entry("e", AT, arrival=6, priority=100),
        entry("f", AT, arrival=1, priority=101),
    ]
    tables.put(*[each for each in reversed(in_order) if each.schedule.id not in fresh])
    overlay = tables.overlay()
    for each in reversed(in_order):
        if each.schedule.id in fresh:
            put(overlay, each)
    assert overlay.due(AT, 10, MUCH) == DueScan(in_order, None)


@pytest.mark.parametrize("fresh", [set(), {"b"}, {"a"}, {"c"}, set("abc")])
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4])
def test_no_more_than_the_limit_is_taken_and_the_rest_later(tables: Tables, fresh: set[str], limit: int) -> None:
    entries = [entry("a", AT), entry("b", AT + 1), entry("c", AT + 2)]
    tables.put(*[each for each in entries if each.schedule.id not in fresh])
    overlay = tables.overlay()
    for each in entries:
        if each.schedule.id in fresh:
            put(overlay, each)
    scan = overlay.due(AT + 10, limit, MUCH)
    assert scan.entries == entries[:limit]
    assert scan.next_due == (AT + limit if limit < 3 else None)
    for each in scan.entries:
        overlay.remove(identity("acme", each.schedule.id))
    tables.commit(overlay)
    assert tables.fire(AT + 10) == [each.schedule.id for each in entries[limit:]]


def test_a_scan_ends_once_the_records_pass_the_bytes_allowed_but_takes_one_at_least(tables: Tables) -> None:
    entries = [entry(str(place), AT + place, payload=b"x" * 1_000) for place in range(5)]
    tables.put(*entries)
    assert len(tables.overlay().due(AT + 10, 10, 1).entries) == 1
    assert len(tables.overlay().due(AT + 10, 10, 2_500).entries) == 3
    assert tables.overlay().due(AT + 10, 10, 2_500).next_due == AT + 3
    assert tables.fire(AT + 10, max_bytes=2_500) == ["0", "1", "2"]
    assert tables.fire(AT + 10, max_bytes=2_500) == ["3", "4"]


def test_what_waits_behind_large_records_is_taken_later(tables: Tables) -> None:
    tables.put(entry("large", AT, payload=b"x" * 1_000))
    overlay = tables.overlay()
    put(overlay, entry("fresh", AT + 1))
    scan = overlay.due(AT + 10, 10, 100)
    assert (ids(scan), scan.next_due) == (["large"], AT + 1)
    overlay.remove(identity("acme", "large"))
    tables.commit(overlay)
    assert tables.fire(AT + 10) == ["fresh"]


@pytest.mark.parametrize("was_stored", [True, False])
@pytest.mark.parametrize("new_due", [AT - MINUTE, AT - 1, AT + 1, AT + MINUTE])
def test_an_updated_schedule_is_due_at_the_new_time_only(tables: Tables, new_due: int, was_stored: bool) -> None:
    overlay, new = tables.overlay(), entry("a", new_due, version=2)
    put(overlay, entry("a", AT))
    if was_stored:
        tables.commit(overlay)
        overlay = tables.overlay()
    put(overlay, new)
    assert overlay.due(AT, 10, MUCH) == (DueScan([new], None) if new_due <= AT else DueScan([], new_due))
    if new_due <= AT:
        return
    tables.commit(overlay)
    assert tables.table.pending == 1
    assert tables.fire(new_due - 1) == []
    assert tables.fire(new_due) == ["a"]
    assert tables.fire(new_due + MINUTE) == []


@pytest.mark.parametrize("was_stored", [True, False])
def test_a_cancelled_schedule_is_never_due(tables: Tables, was_stored: bool) -> None:
    overlay = tables.overlay()
    put(overlay, entry("a", AT))
    put(overlay, entry("b", AT + 1))
    if was_stored:
        tables.commit(overlay)
        overlay = tables.overlay()
    overlay.remove(identity("acme", "a"))
    assert overlay.due(AT - 1, 10, MUCH) == DueScan([], AT + 1)
    tables.commit(overlay)
    assert tables.fire(AT + 1) == ["b"]
    assert tables.table.pending == 0


def test_cancelled_ones_take_no_room_in_a_limit(tables: Tables) -> None:
    tables.put(*[entry(str(place), AT + place) for place in range(5)])
    overlay = tables.overlay()
    for place in (0, 2, 3):
        overlay.remove(identity("acme", str(place)))
    assert overlay.due(AT + 10, 1, MUCH)[:2] == ([entry("1", AT + 1)], AT + 4)


@pytest.mark.parametrize(
    ("stored", "fresh", "removed", "next_due"),
    [
        pytest.param([], [], [], None, id="nothing at all"),
        pytest.param([5], [], [], 5, id="stored only"),
        pytest.param([], [5], [], 5, id="fresh only"),
        pytest.param([5], [7], [], 5, id="stored before fresh"),
        pytest.param([7], [5], [], 5, id="fresh before stored"),
        pytest.param([5, 7], [], [5], 7, id="the first stored one cancelled"),
        pytest.param([5], [7], [5], 7, id="stored cancelled, fresh left"),
        pytest.param([5, 7], [6], [5, 6], 7, id="fresh and stored cancelled"),
        pytest.param([5], [6], [5, 6], None, id="all cancelled"),
        pytest.param([-1], [], [], None, id="due ones are not left"),
        pytest.param([-1], [5], [], 5, id="due stored, fresh left"),
        pytest.param([5], [-1], [], 5, id="due fresh, stored left"),
    ],
)
def test_the_next_due_is_that_of_the_first_schedule_left(
    tables: Tables, stored: list[int], fresh: list[int], removed: list[int], next_due: int | None
) -> None:
    tables.put(*[entry(str(offset), AT + offset) for offset in stored])
    overlay = tables.overlay()
    for offset in fresh:
        put(overlay, entry(str(offset), AT + offset))
    for offset in removed:
        overlay.remove(identity("acme", str(offset)))
    assert overlay.due(AT, 10, MUCH).next_due == (None if next_due is None else AT + next_due)


# -- floors -----------------------------------------------------------------------------------------------------------


def test_a_floor_stays_before_what_is_not_yet_due(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1))
    assert tables.fire(AT) == ["a"]
    assert tables.table.floors.get("acme") == index_key(entry("b", AT + 1))
    tables.reopen()
    assert tables.fire(AT + 1) == ["b"]


def test_a_floor_passes_what_has_been_fired(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1))
    tables.fire(AT + 1)
    assert tables.table.floors.get("acme") is None


@pytest.mark.parametrize("due", [AT - MINUTE, AT - 1, AT, AT + 1])
def test_what_is_put_below_the_floor_is_found(tables: Tables, due: int) -> None:
    tables.put(entry("a", AT), entry("z", AT + MINUTE))
    assert tables.fire(AT + 1) == ["a"]
    tables.put(entry("late", due))
    tables.reopen()
    assert [each.schedule.id for _, each in by_due(tables.table, "acme")] == ["late", "z"]
    assert tables.fire(AT + 1) == ["late"]
    assert tables.fire(AT + MINUTE) == ["z"]


def test_a_fresh_schedule_that_a_limit_left_out_is_not_overtaken_by_the_floor(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("c", AT + 2))
    overlay = tables.overlay()
    put(overlay, entry("b", AT + 1))
    assert ids(overlay.due(AT + 2, 1, MUCH)) == ["a"]
    overlay.remove(identity("acme", "a"))
    tables.commit(overlay)
    tables.reopen()
    assert tables.fire(AT + 2) == ["b", "c"]


def test_a_schedule_put_again_after_it_was_taken_is_found_at_its_next_due(tables: Tables) -> None:
    tables.put(entry("a", AT))
    overlay = tables.overlay()
    assert ids(overlay.due(AT, 10, MUCH)) == ["a"]
    put(overlay, entry("a", AT + MINUTE, version=2))
    tables.commit(overlay)
    tables.reopen()
    assert tables.fire(AT + MINUTE - 1) == []
    assert tables.fire(AT + MINUTE) == ["a"]
