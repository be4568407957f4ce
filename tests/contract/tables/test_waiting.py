"""What waits for its target."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tables import AT, DISKS, MINUTE, MUCH, Tables, by_due, by_id, entry, ids, index_key, put
from support.tries import tries

from light_scheduler.engine.fairness import QUANTUM
from light_scheduler.model import (
    Entry,
)
from light_scheduler.model.place import Place
from light_scheduler.tables import DueScan
from light_scheduler.tables.due_scan import HELD_COST, Waits
from light_scheduler.wire.state import (
    identity,
    identity_of,
)

replace = msgspec.structs.replace


P0, P1 = ("t", 0), ("t", 1)


def place_of(each: Entry) -> Place:
    """Say where an entry goes: by the last letter of its id, even or odd."""
    return P1 if ord(each.schedule.id[-1]) % 2 else P0


def away(*places: Place) -> Waits:
    return lambda each: place_of(each) if place_of(each) in places else None


def fire_but(tables: Tables, now: int, *places: Place, limit: int = 1_000) -> list[str]:
    """Take what is due and does not wait for places, forget it, and return the ids."""
    overlay = tables.overlay()
    scan = overlay.due(now, limit, MUCH, waits=away(*places))
    for each in scan.entries:
        overlay.remove(identity_of(each))
    tables.commit(overlay)
    return ids(scan)


def test_what_waits_for_its_target_is_passed_over_and_comes_in_its_order_when_the_target_is_back(
    tables: Tables,
) -> None:
    tables.put(*[entry(id, AT + number) for number, id in enumerate("abcdef")])
    assert fire_but(tables, AT + 10, P1) == ["b", "d", "f"]  # P1: a, c, e
    assert tables.table.held.places == [P1]
    assert tables.table.held.count(P1) == 3
    assert fire_but(tables, AT + 20, P1) == []
    tables.table.release(P1)
    assert fire_but(tables, AT + 20) == ["a", "c", "e"]
    assert (tables.table.pending, bool(tables.table.held)) == (0, False)


def test_a_place_that_is_released_brings_back_nothing_of_another(tables: Tables) -> None:
    tables.put(*[entry(id, AT + number) for number, id in enumerate("abcd")])
    assert fire_but(tables, AT + 10, P0, P1) == []
    tables.table.release(P0)
    assert fire_but(tables, AT + 10, P1) == ["b", "d"]
    assert tables.table.held.places == [P1]


def test_what_waits_is_listed_and_found_like_everything_that_is_pending(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1), entry("c", AT + 2), entry("d", AT + MINUTE))
    assert fire_but(tables, AT + 10, P1) == ["b"]
    assert [each.schedule.id for _, each in by_due(tables.table, "acme")] == ["a", "c", "d"]
    assert [each.schedule.id for each in by_id(tables.table, "acme")] == ["a", "c", "d"]
    assert fire_but(tables, AT + MINUTE, P1) == ["d"]
    assert tables.table.floors.get("acme") is None, "nothing but what waits is left"
    assert [each.schedule.id for _, each in by_due(tables.table, "acme")] == ["a", "c"]


def test_what_waits_wakes_nobody(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + MINUTE))
    overlay = tables.overlay()
    assert overlay.due(AT, 10, MUCH, waits=away(P1)) == DueScan([], AT + MINUTE)
    overlay.settle_floors()  # for a cycle that writes nothing
    assert tables.overlay().due(AT, 10, MUCH, waits=away(P1)) == DueScan([], AT + MINUTE)
    assert tables.table.held.count(P1) == 1


def test_a_scan_that_is_dropped_has_passed_nothing_over(tables: Tables) -> None:
    tables.put(entry("a", AT))
    tables.overlay().due(AT, 10, MUCH, waits=away(P1))
    assert not tables.table.held
    assert tables.fire(AT) == ["a"]


def test_what_is_met_again_is_counted_once(tables: Tables) -> None:
    tables.put(entry("a", AT + 1), entry("c", AT + 2))
    assert fire_but(tables, AT + 10, P1) == []
    tables.put(entry("b", AT))  # below the floor: the next scan begins before what waits
    assert fire_but(tables, AT + 10, P1) == ["b"]
    assert tables.table.held.count(P1) == 2
    tables.put(entry("e", AT), entry("g", AT + 3))
    assert fire_but(tables, AT + 10, P1) == []
    assert tables.table.held.count(P1) == 4
    tables.table.release(P1)
    assert fire_but(tables, AT + 10) == ["e", "a", "c", "g"]


def test_what_was_cancelled_or_moved_while_it_waited_is_not_fired_when_the_target_is_back(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("c", AT + 1), entry("e", AT + 2))
    assert fire_but(tables, AT + 10, P1) == []
    overlay = tables.overlay()
    overlay.remove(identity("acme", "a"))
    put(overlay, entry("c", AT + MINUTE, version=2))
    tables.commit(overlay)
    tables.table.release(P1)
    assert fire_but(tables, AT + 10) == ["e"]
    assert fire_but(tables, AT + MINUTE) == ["c"]


def test_a_table_that_is_opened_again_meets_what_waited_anew(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1))
    assert fire_but(tables, AT + 10, P1) == ["b"]
    tables.reopen()
    assert not tables.table.held
    assert fire_but(tables, AT + 10, P1) == []
    assert tables.table.held.count(P1) == 1


def test_what_waits_takes_no_room_in_a_limit_but_is_not_free(tables: Tables) -> None:
    """Else one scan would decode all of a large backlog that waits."""
    tables.put(*[entry(f"{number:03}-a", AT + number) for number in range(100)], entry("b", AT + 200))
    overlay = tables.overlay()
    scan = overlay.due(AT + 1_000, 5, MUCH, waits=away(P1))
    assert scan.entries == []
    assert scan.next_due == AT + 5 / HELD_COST, "the next scan goes on there"
    tables.commit(overlay)
    scans = 1
    while not (fired := fire_but(tables, AT + 1_000, P1, limit=5)):
        scans += 1
    assert (fired, scans) == (["b"], 100 * HELD_COST / 5)
    assert tables.table.held.count(P1) == 100


def test_of_a_tenant_that_waits_the_others_notice_nothing(tables: Tables) -> None:
    tables.put(*[entry(f"{number:03}-a", AT + number, tenant="away") for number in range(40 * int(QUANTUM))])
    tables.put(*[entry(f"{number}-b", AT + 900 + number, tenant="well") for number in range(3)])
    assert fire_but(tables, AT + 2_000, P1, limit=4 * int(QUANTUM)) == ["0-b", "1-b", "2-b"]
    assert tables.table.held.first("well") is None


@dataclass(frozen=True)
class Turn:
    """Schedules (a letter, and when due) that arrive, the places that are away, and a limit."""

    arrive: list[tuple[str, int]]
    away: frozenset[Place]
    limit: int
    reopens: bool


turns = st.builds(
    Turn,
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(-3, 3)), max_size=5),
    st.frozensets(st.sampled_from([P0, P1])),
    st.integers(1, 6),
    st.booleans(),
)


@pytest.mark.parametrize("disk", DISKS)
@settings(max_examples=tries(40))
@given(history=st.lists(turns, max_size=10))
def test_whatever_was_away_nothing_goes_there_meanwhile_and_nothing_is_lost(
    disk: type[Any], history: list[Turn]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(disk(Path(folder)))
        model: dict[str, Entry] = {}
        now = AT
        everything_back = Turn([], frozenset(), 1_000, False)
        for turn in [*history, everything_back]:
            now += 2
            if turn.reopens:
                tables.reopen()
            arrived = {id: entry(id, now + due) for id, due in turn.arrive}
            tables.put(*arrived.values())
            model |= arrived
            for place in tables.table.held.places:
                if place not in turn.away:
                    tables.table.release(place)
            if turn is everything_back:
                now += 10
            may_fire = [
                id for id, each in model.items() if each.progress.due <= now and place_of(each) not in turn.away
            ]
            fired = fire_but(tables, now, *turn.away, limit=turn.limit)
            in_order = sorted(may_fire, key=lambda id: index_key(model[id]))
            assert fired == in_order[: len(fired)]
            if turn.limit > len(model):
                assert fired == in_order
            for id in fired:
                del model[id]
            assert sorted(each.schedule.id for _, each in by_due(tables.table, "acme")) == sorted(model)
        assert model == {}
        assert not tables.table.held
        tables.table.close()
