"""One contract for every store under a schedule table: in memory, and in RocksDB."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from light_scheduler.engine import FairQueue
from light_scheduler.engine.fairness import QUANTUM
from light_scheduler.errors import FormatError, FormatTooNew, FormatTooOld
from light_scheduler.model import (
    BulkPart,
    BulkTotal,
    ControlCommand,
    Entry,
    Once,
    Progress,
    Schedule,
    Selection,
    Target,
)
from light_scheduler.model.place import Place
from light_scheduler.tables import Checkpoint, DueScan, MemoryStore, Overlay, ScheduleTable, Store, layout
from light_scheduler.tables.due_scan import HELD_COST, Waits
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.table import CHECKPOINT_VERSION
from light_scheduler.wire.state import (
    FORMAT_VERSION,
    POSITION_KEY,
    SCHEDULE_KIND,
    bulk_part_key,
    bulk_total_key,
    encode_bulk_part,
    encode_bulk_total,
    encode_entry,
    encode_position,
    id_in,
    identity,
    identity_of,
)

replace = msgspec.structs.replace

AT = 1_767_225_600_000
MINUTE = 60_000
MUCH = 1 << 30


class Disk(Protocol):
    """What outlives a process."""

    def open(self) -> Store: ...


class MemoryDisk:
    def __init__(self, path: Path) -> None:
        self._store = MemoryStore()

    def open(self) -> Store:
        return self._store


class RocksDisk:
    def __init__(self, path: Path) -> None:
        self._path = path / "store"

    def open(self) -> Store:
        return RocksStore(self._path)


DISKS = [MemoryDisk, RocksDisk]


class Tables:
    """A table that can be closed and opened again."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.store = disk.open()
        self.table = ScheduleTable(self.store)
        self._offset = 0

    def reopen(self) -> ScheduleTable:
        self.table.close()
        self.store = self._disk.open()
        self.table = ScheduleTable(self.store)
        return self.table

    def overlay(self) -> Overlay:
        return Overlay(self.table)

    def commit(self, overlay: Overlay) -> None:
        self._offset += 1
        overlay.apply(changelog_offset=self._offset, complete_at=AT)

    def put(self, *entries: Entry) -> None:
        overlay = self.overlay()
        for each in entries:
            put(overlay, each)
        self.commit(overlay)

    def fire(self, now: int, limit: int = 1_000, max_bytes: int = MUCH) -> list[str]:
        """Take what is due, forget it, and return the ids."""
        overlay = self.overlay()
        scan = overlay.due(now, limit, max_bytes)
        for each in scan.entries:
            overlay.remove(identity_of(each))
        self.commit(overlay)
        return ids(scan)

    def everything(self) -> dict[bytes, bytes]:
        return dict(self.store.scan(b"", b"\xff"))


@pytest.fixture(params=DISKS)
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tables]:
    tables = Tables(request.param(tmp_path))
    yield tables
    tables.table.close()


def entry(id: str, due: int = AT, *, tenant: str = "acme", **fields: Any) -> Entry:
    fields = {"priority": 100, "arrival": 0, "version": 1, "payload": b"x", **fields}
    return Entry(
        Schedule(
            tenant,
            id,
            fields["version"],
            Once(due),
            Target("t"),
            fields["payload"],
            [],
            0,
            fields["arrival"],
            AT,
            priority=fields["priority"],
        ),
        Progress(due, fields["arrival"]),
    )


def index_key(each: Entry) -> bytes:
    return layout.index_key(each, identity_of(each))


def put(overlay: Overlay, each: Entry) -> None:
    overlay.put(identity_of(each), each, encode_entry(each))


def ids(scan: DueScan) -> list[str]:
    return [each.schedule.id for each in scan.entries]


# -- put, get, remove -------------------------------------------------------------------------------------------------


def test_what_is_put_is_seen_in_the_overlay_at_once_and_in_the_table_after_it_is_applied(tables: Tables) -> None:
    overlay, a = tables.overlay(), entry("a")
    assert overlay.get(identity("acme", "a")) is None
    put(overlay, a)
    assert overlay.get(identity("acme", "a")) == a
    assert tables.table.get("acme", "a") is None
    tables.commit(overlay)
    assert tables.table.get("acme", "a") == a
    assert tables.overlay().get(identity("acme", "a")) == a
    assert tables.reopen().get("acme", "a") == a


def test_what_is_removed_is_gone_in_the_overlay_at_once_and_in_the_table_after_it_is_applied(tables: Tables) -> None:
    tables.put(entry("a"), entry("b"))
    overlay = tables.overlay()
    overlay.remove(identity("acme", "a"))
    assert overlay.get(identity("acme", "a")) is None
    assert tables.table.get("acme", "a") is not None
    tables.commit(overlay)
    assert tables.table.get("acme", "a") is None
    assert tables.table.get("acme", "b") == entry("b")
    assert tables.fire(AT) == ["b"]


def test_removing_what_is_not_there_changes_nothing(tables: Tables) -> None:
    tables.put(entry("a"))
    overlay = tables.overlay()
    overlay.remove(identity("acme", "b"))
    overlay.remove(identity("acme", "b"))
    assert overlay.pending == 1
    tables.commit(overlay)
    assert tables.table.get("acme", "a") == entry("a")
    assert tables.table.pending == 1


def test_a_removed_schedule_can_be_put_again_in_the_same_overlay(tables: Tables) -> None:
    tables.put(entry("a"))
    overlay, again = tables.overlay(), entry("a", AT, version=2, payload=b"again")
    overlay.remove(identity("acme", "a"))
    put(overlay, again)
    tables.commit(overlay)
    assert tables.table.get("acme", "a") == again
    assert tables.table.pending == 1
    assert tables.fire(AT) == ["a"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a", "b"), ("ab", "b")),
        (("a", "b"), ("a", "bb")),
        (("a", "b.c"), ("a.b", "c")),
        (("t", "\u00e9"), ("t", "e\u0301")),
    ],
)
def test_schedules_whose_names_resemble_each_other_are_apart(
    tables: Tables, first: tuple[str, str], second: tuple[str, str]
) -> None:
    one, other = (entry(id, tenant=tenant, payload=id.encode()) for tenant, id in (first, second))
    tables.put(one, other)
    assert (tables.table.get(*first), tables.table.get(*second)) == (one, other)
    overlay = tables.overlay()
    overlay.remove(identity(*first))
    tables.commit(overlay)
    assert (tables.table.get(*first), tables.table.get(*second)) == (None, other)


# -- what is due ------------------------------------------------------------------------------------------------------


def test_a_schedule_is_due_from_its_very_ms_on(tables: Tables) -> None:
    tables.put(entry("a", AT))
    assert tables.overlay().due(AT - 1, 10, MUCH) == DueScan([], AT)
    assert tables.overlay().due(AT, 10, MUCH) == DueScan([entry("a", AT)], None)


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
    assert [each.schedule.id for _, each in tables.table.by_due("acme")] == ["late", "z"]
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


# -- several tenants --------------------------------------------------------------------------------------------------


def of(tenant: str, count: int, due: int = AT, **fields: Any) -> list[Entry]:
    return [entry(f"{tenant}-{place:04}", due, tenant=tenant, arrival=place, **fields) for place in range(count)]


def by_tenant(scan: DueScan) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for each in scan.entries:
        found.setdefault(each.schedule.tenant, []).append(each)
    return found


def test_what_is_due_of_all_tenants_comes_in_one_order_if_it_can_all_be_taken(tables: Tables) -> None:
    in_order = [
        entry("a", AT - 1, tenant="b"),
        entry("b", AT, tenant="c", priority=1),
        entry("c", AT, tenant="a", arrival=1),
        entry("d", AT, tenant="b", arrival=2),
        entry("e", AT, tenant="a", arrival=3),
    ]
    tables.put(*reversed(in_order))
    assert tables.overlay().due(AT, 10, MUCH) == DueScan(in_order, None)


@pytest.mark.parametrize("fresh", ["", "a", "b", "ab"])
def test_a_tenant_with_much_to_do_does_not_keep_another_from_its_turn(tables: Tables, fresh: str) -> None:
    many, few = of("a", 500, AT - MINUTE), of("b", 3, AT)
    tables.put(*([] if "a" in fresh else many), *([] if "b" in fresh else few))
    overlay = tables.overlay()
    for each in (*(many if "a" in fresh else ()), *(few if "b" in fresh else ())):
        put(overlay, each)
    scan = overlay.due(AT, 100, MUCH)
    assert by_tenant(scan) == {"a": many[:97], "b": few}
    assert scan.entries == [*many[:97], *few]
    assert (scan.next_due, scan.cut) == (AT - MINUTE, {"a": many[96]})
    for each in scan.entries:
        overlay.remove(identity_of(each))
    tables.commit(overlay)
    assert tables.fire(AT) == [each.schedule.id for each in many[97:]]


def test_tenants_share_by_their_weights_over_many_scans(tables: Tables) -> None:
    tables.put(*of("a", 600), *of("b", 600))
    fair, taken = FairQueue({"b": 3}), Counter[str]()
    for _ in range(8):
        overlay = tables.overlay()
        scan = overlay.due(AT, 100, MUCH, fair)
        for each in scan.entries:
            overlay.remove(identity_of(each))
            taken[each.schedule.tenant] += 1
        tables.commit(overlay)
    assert taken.total() == 800
    assert abs(taken["b"] - 600) <= 3 * QUANTUM


def test_large_records_count_for_what_they_are(tables: Tables) -> None:
    tables.put(*of("large", 50, AT - 1, payload=b"x" * 10_000), *of("small", 1_000, AT))
    overlay = tables.overlay()
    taken = {tenant: len(entries) for tenant, entries in by_tenant(overlay.due(AT, 1_000, 200_000)).items()}
    assert taken["large"] in range(7, 14)
    assert taken["small"] in range(400, 600)


def test_what_is_left_is_found_again_with_what_comes_after_it_of_its_tenant(tables: Tables) -> None:
    first, second = of("a", 4), of("b", 4)
    tables.put(*first, *second)
    overlay = tables.overlay()
    assert len(overlay.due(AT, 100, MUCH).entries) == 8
    for each in (*first[:2], *second):
        overlay.remove(identity_of(each))
    for each in (first[2], first[3]):
        overlay.leave(each)
    tables.commit(overlay)
    assert tables.fire(AT) == ["a-0002", "a-0003"]


def test_tenants_are_found_again_when_a_table_is_opened(tables: Tables) -> None:
    tables.put(*of("a", 2), *of("a.b", 1, AT + 1), *of("a-b", 1, AT + MINUTE), *of("b", 1, AT + 2))
    overlay = tables.overlay()
    overlay.remove(identity("b", "b-0000"))
    tables.commit(overlay)
    table = tables.reopen()
    assert len(table.floors) == 3
    assert tables.overlay().due(AT - 1, 10, MUCH).next_due == AT
    assert tables.fire(AT + 1) == ["a-0000", "a-0001", "a.b-0000"]
    assert tables.overlay().due(AT + 1, 10, MUCH).next_due == AT + MINUTE
    assert len(table.floors) == 1


def test_a_cancelled_tenant_is_forgotten_and_hides_nobody(tables: Tables) -> None:
    tables.put(*of("a", 1, AT), *of("b", 1, AT + 1), *of("c", 2, AT + 2))
    overlay = tables.overlay()
    for tenant in "ab":
        overlay.remove(identity(tenant, f"{tenant}-0000"))
    assert overlay.due(AT - 1, 10, MUCH).next_due == AT + 2
    tables.commit(overlay)
    assert tables.overlay().due(AT - 1, 10, MUCH).next_due == AT + 2
    assert len(tables.table.floors) == 1


# -- caps -------------------------------------------------------------------------------------------------------------


def test_a_tenant_gets_what_it_is_allowed_and_the_others_the_rest(tables: Tables) -> None:
    first, second = of("a", 5, AT - MINUTE), of("b", 5)
    tables.put(*first, *second)
    overlay = tables.overlay()
    scan = overlay.due(AT, 100, MUCH, allowed={"a": 2}.get)
    assert by_tenant(scan) == {"a": first[:2], "b": second}
    assert (scan.allowed, scan.held, scan.next_due) == ({"a": 2}, {"a": AT - MINUTE}, None)
    for each in scan.entries:
        overlay.remove(identity_of(each))
    tables.commit(overlay)
    assert tables.fire(AT) == [each.schedule.id for each in first[2:]]


@pytest.mark.parametrize(
    ("allowed", "held", "next_due"),
    [
        pytest.param(0, {"a": AT}, AT + MINUTE, id="nothing"),
        pytest.param(2, {"a": AT}, AT + MINUTE, id="less than is due"),
        pytest.param(3, {}, AT + 5, id="all that is due"),
        pytest.param(9, {}, AT + 5, id="more than is due"),
    ],
)
def test_a_tenant_is_held_if_more_is_due_than_it_is_allowed(
    tables: Tables, allowed: int, held: dict[str, int], next_due: int
) -> None:
    tables.put(*of("a", 3), entry("later", AT + 5, tenant="a"), *of("b", 1, AT + MINUTE))
    scan = tables.overlay().due(AT, 100, MUCH, allowed={"a": allowed}.get)
    assert (len(scan.entries), scan.held, scan.next_due) == (min(3, allowed), held, next_due)


def test_a_tenant_whose_first_schedules_were_cancelled_is_not_held_for_them(tables: Tables) -> None:
    tables.put(*of("a", 3), entry("later", AT + 5, tenant="a"))
    overlay = tables.overlay()
    for each in of("a", 3):
        overlay.remove(identity_of(each))
    assert overlay.due(AT, 100, MUCH, allowed={"a": 0}.get).held == {}


# -- what waits for its target ----------------------------------------------------------------------------------------

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
    assert [each.schedule.id for _, each in tables.table.by_due("acme")] == ["a", "c", "d"]
    assert [each.schedule.id for each in tables.table.by_id("acme")] == ["a", "c", "d"]
    assert fire_but(tables, AT + MINUTE, P1) == ["d"]
    assert tables.table.floors.get("acme") is None, "nothing but what waits is left"
    assert [each.schedule.id for _, each in tables.table.by_due("acme")] == ["a", "c"]


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
@settings(max_examples=40)
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
            assert sorted(each.schedule.id for _, each in tables.table.by_due("acme")) == sorted(model)
        assert model == {}
        assert not tables.table.held
        tables.table.close()


# -- all or nothing ---------------------------------------------------------------------------------------------------


def test_a_dropped_overlay_leaves_everything_as_it_was(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1), entry("c", AT + MINUTE))
    before, checkpoint = tables.everything(), tables.table.checkpoint
    overlay = tables.overlay()
    put(overlay, entry("a", AT + 5, version=2))
    put(overlay, entry("new", AT))
    overlay.remove(identity("acme", "c"))
    overlay.position = 99
    overlay.due(AT + 10, 10, MUCH)
    del overlay
    assert tables.everything() == before
    assert tables.table.checkpoint == checkpoint
    assert tables.fire(AT + 1) == ["a", "b"]


def test_what_is_applied_comes_with_the_checkpoint_it_reaches(tables: Tables) -> None:
    overlay = tables.overlay()
    put(overlay, entry("a", AT))
    put(overlay, entry("b", AT + 1))
    overlay.position = 7
    overlay.apply(changelog_offset=12, complete_at=AT + 3)
    reached = tables.table.checkpoint
    assert (reached.changelog_offset, reached.position, reached.pending, reached.complete_at) == (12, 7, 2, AT + 3)
    assert tables.reopen().checkpoint == reached
    assert tables.overlay().position == 7


def test_an_empty_store_begins_at_the_beginning(tables: Tables) -> None:
    assert tables.table.checkpoint == Checkpoint()
    assert tables.table.pending == 0
    assert tables.overlay().position == 0


def test_a_checkpoint_keeps_the_changelogs_identity(tables: Tables) -> None:
    tables.table.checkpoint = msgspec.structs.replace(tables.table.checkpoint, changelog_id="x1")
    tables.put(entry("a"))
    assert tables.reopen().checkpoint.changelog_id == "x1"


def test_a_store_of_a_newer_version_is_refused_and_left_as_it_is(tables: Tables) -> None:
    newer = bytes([CHECKPOINT_VERSION + 1]) + msgspec.msgpack.encode(["of another", "layout"])
    tables.store.write({layout.CHECKPOINT_KEY: newer})
    with pytest.raises(FormatTooNew, match=f"format {CHECKPOINT_VERSION + 1}"):
        ScheduleTable(tables.store)
    assert tables.everything() == {layout.CHECKPOINT_KEY: newer}


def test_a_store_of_another_layout_is_refused_as_too_old_and_left_as_it_is(tables: Tables) -> None:
    older = b"\x01" + msgspec.msgpack.encode([1, 2, b"t", 3, "x", 4])
    tables.store.write({layout.CHECKPOINT_KEY: older})
    with pytest.raises(FormatTooOld, match="format 1"):
        ScheduleTable(tables.store)
    assert tables.everything() == {layout.CHECKPOINT_KEY: older}


@pytest.mark.parametrize("garbage", [b"", b"\x00", b"\x03" + b"\xff" * 20, b"\x03\x96\x00\x00\xc4\x00\x00\xa1\xff\x00"])
def test_a_checkpoint_that_cannot_be_read_is_a_format_error(tables: Tables, garbage: bytes) -> None:
    tables.store.write({layout.CHECKPOINT_KEY: garbage})
    with pytest.raises(FormatError, match="checkpoint"):
        ScheduleTable(tables.store)


# -- counting and listing ---------------------------------------------------------------------------------------------


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
    by_id = tables.table.by_id
    assert listed(by_id("acme")) == ["a", "a/1", "a/2", "b", "ö", "\N{SLEEPING FACE}"]
    assert listed(by_id("acme", prefix="a")) == ["a", "a/1", "a/2"]
    assert listed(by_id("acme", prefix="a/")) == ["a/1", "a/2"]
    assert listed(by_id("acme", prefix="ö")) == ["ö"]
    assert listed(by_id("acme", after="a/1")) == ["a/2", "b", "ö", "\N{SLEEPING FACE}"]
    assert listed(by_id("acme", after="a", prefix="a/")) == ["a/1", "a/2"]
    assert listed(by_id("acme", after="a/1", prefix="a/")) == ["a/2"]
    assert listed(by_id("acme", after="b", prefix="a")) == []
    assert listed(by_id("acme", after="a/11")) == ["a/2", "b", "ö", "\N{SLEEPING FACE}"]
    assert listed(by_id("acm")) == ["x"]
    assert listed(by_id("nobody")) == []


def test_a_tenants_schedules_are_listed_by_due_from_a_position_on(tables: Tables) -> None:
    tables.put(entry("b", AT + 1), entry("a", AT), entry("c", AT + MINUTE, tenant="other"), entry("d", AT + MINUTE))
    positions = list(tables.table.by_due("acme"))
    assert [each.schedule.id for _, each in positions] == ["a", "b", "d"]
    assert [each.schedule.id for _, each in tables.table.by_due("other")] == ["c"]
    assert [each.schedule.id for _, each in tables.table.by_due("nobody")] == []
    for place, (position, _) in enumerate(positions):
        assert list(tables.table.by_due("acme", position)) == positions[place + 1 :]


def test_a_position_can_be_found_by_time(tables: Tables) -> None:
    tables.put(entry("a", AT), entry("b", AT + 1), entry("c", AT + MINUTE))
    for due, expected in [(AT - 1, "abc"), (AT, "abc"), (AT + 1, "bc"), (AT + 2, "c"), (AT + MINUTE + 1, "")]:
        position = tables.table.position_at("acme", due)
        assert "".join(each.schedule.id for _, each in tables.table.by_due("acme", position)) == expected


def test_a_listing_goes_on_while_schedules_come_and_go(tables: Tables) -> None:
    tables.put(entry("a"), entry("b"), entry("c"))
    by_due, by_id = tables.table.by_due("acme"), tables.table.by_id("acme")
    assert (next(by_due)[1].schedule.id, next(by_id).schedule.id) == ("a", "a")
    overlay = tables.overlay()
    overlay.remove(identity("acme", "b"))
    put(overlay, entry("bb"))
    tables.commit(overlay)
    assert [each.schedule.id for _, each in by_due] == ["b", "c"]  # as it was when the listing began
    assert listed(by_id) == ["c"]


# -- bulk commands ------------------------------------------------------------------------------------------------


def for_many(offset: int) -> ControlCommand:
    return ControlCommand("cancel", "acme", "*", None, 0, offset, AT, selection=Selection())


def test_bulk_commands_at_work_are_found_in_the_order_in_which_they_arrived(tables: Tables) -> None:
    parts = [BulkPart(for_many(offset), 1, 2, "a", offset) for offset in (3, 200, 70_000)]
    overlay = tables.overlay()
    for part in reversed(parts):
        overlay.keep(bulk_part_key(part.command.offset), encode_bulk_part(part))
    assert overlay.bulk_parts() == []  # they were not there before the cycle
    tables.commit(overlay)
    tables.reopen()
    assert tables.overlay().bulk_parts() == parts

    overlay = tables.overlay()
    overlay.keep(bulk_part_key(200), None)
    tables.commit(overlay)
    assert [part.command.offset for part in tables.overlay().bulk_parts()] == [3, 70_000]


def test_a_tally_is_found_by_the_offset_of_its_command(tables: Tables) -> None:
    total = BulkTotal(for_many(7), (0, 1), 5)
    overlay = tables.overlay()
    overlay.keep(bulk_total_key(7), encode_bulk_total(total))
    tables.commit(overlay)
    tables.reopen()
    assert (tables.overlay().bulk_total(7), tables.overlay().bulk_total(8)) == (total, None)
    assert tables.overlay().bulk_parts() == []

    overlay = tables.overlay()
    overlay.keep(bulk_total_key(7), None)
    tables.commit(overlay)
    assert tables.overlay().bulk_total(7) is None


def test_bulk_commands_come_back_from_the_changelog(tables: Tables) -> None:
    part, total = BulkPart(for_many(3), 1, 2), BulkTotal(for_many(7), (0,))
    overlay = tables.overlay()
    overlay.replay(bulk_part_key(3), encode_bulk_part(replace(part, changed=1)))
    overlay.replay(bulk_part_key(3), encode_bulk_part(part))
    overlay.replay(bulk_part_key(4), None)
    overlay.replay(bulk_total_key(7), encode_bulk_total(total))
    tables.commit(overlay)
    assert (tables.overlay().bulk_parts(), tables.overlay().bulk_total(7)) == ([part], total)


@pytest.mark.parametrize(
    ("prefix", "after", "found"),
    [
        (("acme", ""), ("acme", ""), ["a", "a/b", "b", "ö"]),
        (("acme", "a"), ("acme", ""), ["a", "a/b"]),
        (("acme", "a"), ("acme", "a"), ["a/b"]),
        (("acme", ""), ("acme", "a/c"), ["b", "ö"]),
        (("acme", "ö"), ("acme", "b"), ["ö"]),
        (("acme", "c"), ("acme", ""), []),
        (("acme", ""), ("acme", "ö"), []),
        (("acm", ""), ("acm", ""), []),
        (("other", ""), ("other", ""), ["b"]),
    ],
)
def test_identities_are_gone_through_in_order_from_any_place(
    tables: Tables, prefix: tuple[str, str], after: tuple[str, str], found: list[str]
) -> None:
    tables.put(*(entry(id) for id in ("b", "ö", "a", "a/b")), entry("b", tenant="other"))
    overlay = tables.overlay()
    put(overlay, entry("new"))
    overlay.remove(identity("acme", "a"))
    assert [id_in(name) for name in overlay.stored(identity(*prefix), identity(*after))] == found


# -- the changelog ----------------------------------------------------------------------------------------------------


def key_of(tenant: str, id: str) -> bytes:
    return SCHEDULE_KIND + identity(tenant, id)


def test_a_changelog_record_of_an_unknown_kind_is_refused(tables: Tables) -> None:
    with pytest.raises(FormatError, match="unknown kind"):
        tables.overlay().replay(b"\x7fx", b"\x01")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (POSITION_KEY, b"\x01x"),
        (POSITION_KEY, None),
        (key_of("a", "b"), b"\x01"),
        (bulk_part_key(1), b"\x01"),
        (bulk_total_key(1), b"\x01"),
    ],
)
def test_a_changelog_record_that_cannot_be_read_is_refused(tables: Tables, key: bytes, value: bytes | None) -> None:
    with pytest.raises(FormatError):
        tables.overlay().replay(key, value)


@pytest.mark.parametrize("key", [POSITION_KEY, key_of("a", "b"), bulk_part_key(1), bulk_total_key(1)])
def test_a_changelog_record_of_a_newer_format_is_refused_as_such(tables: Tables, key: bytes) -> None:
    with pytest.raises(FormatTooNew):
        tables.overlay().replay(key, bytes([FORMAT_VERSION + 1]) + b"whatever")


def test_a_tombstone_of_what_is_not_there_is_nothing(tables: Tables) -> None:
    overlay = tables.overlay()
    overlay.replay(key_of("acme", "a"), None)
    tables.commit(overlay)
    assert tables.table.pending == 0


@dataclass(frozen=True)
class Step:
    """One cycle: commands, then perhaps a scan; and whether it is applied, aborted, or committed but not applied."""

    commands: list[tuple[tuple[str, str], int | None, int]] = field(default_factory=list)
    """Name, due (None: cancel), priority."""
    advance: int = 0
    limit: int = 5
    end: str = "applied"


Name = tuple[str, str]
NAMES = [("acme", id) for id in ["a", "a/b", "b", "ö", "öö", "zzz"]] + [("acme-2", "a"), ("acme-2", "b"), ("z", "b")]
steps = st.builds(
    Step,
    st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.integers(-2, 6), st.sampled_from([0, 100])), max_size=4),
    st.integers(0, 3),
    st.sampled_from([1, 2, 5, 100]),
    st.sampled_from(["applied", "applied", "applied", "aborted", "crashed", "reopened"]),
)
UNIT = 45_000  # so that minutes change within a few steps


@pytest.mark.parametrize("disk", DISKS)
@settings(max_examples=60)
@given(history=st.lists(steps, max_size=12))
def test_whatever_happens_the_table_is_what_a_dict_would_be_and_so_is_its_changelog(
    disk: type[Any], history: list[Step]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(disk(Path(folder)))
        model: dict[Name, Entry] = {}
        log: list[tuple[bytes, bytes | None]] = []
        now, offset = AT, 0

        for step in history:
            now += step.advance * UNIT
            overlay, after = tables.overlay(), dict(model)
            records: list[tuple[bytes, bytes | None]] = []
            for name, due, priority in step.commands:
                offset += 1
                tenant, id = name
                assert overlay.get(identity(*name)) == after.get(name)
                if due is None:
                    overlay.remove(identity(*name))
                    after.pop(name, None)
                    records.append((key_of(*name), None))
                else:
                    after[name] = entry(id, now + due * UNIT, tenant=tenant, priority=priority, arrival=offset)
                    put(overlay, after[name])
                    records.append((key_of(*name), encode_entry(after[name])))
            scan = overlay.due(now, step.limit, MUCH)
            due_now = sorted((e for e in after.values() if e.progress.due <= now), key=layout.order_of)
            assert scan.entries == sorted(scan.entries, key=layout.order_of)
            assert len(scan.entries) == min(step.limit, len(due_now))
            for tenant, taken in by_tenant(scan).items():
                of_tenant = [each for each in due_now if each.schedule.tenant == tenant]
                assert taken == of_tenant[: len(taken)]
                assert scan.cut.get(tenant) == (taken[-1] if len(taken) < len(of_tenant) else None)
            for each in scan.entries:
                overlay.remove(identity_of(each))
                del after[each.schedule.tenant, each.schedule.id]
                records.append((key_of(each.schedule.tenant, each.schedule.id), None))
            assert scan.next_due == min((each.progress.due for each in after.values()), default=None)
            if step.end == "aborted":
                continue
            overlay.position = offset
            model = after
            log += [*records, (POSITION_KEY, encode_position(offset))]
            if step.end == "crashed":  # committed, but the write to the table was not reached
                replay(tables.reopen(), log)
            else:
                overlay.apply(changelog_offset=len(log), complete_at=now)
                if step.end == "reopened":
                    tables.reopen()

        assert contents(tables.table) == sorted(model.values(), key=index_key)
        assert tables.table.pending == len(model)
        compacted = list({key: (key, value) for key, value in log}.values())
        for records in (log, log * 2, compacted, compacted[::-1]):
            rebuilt = ScheduleTable(MemoryStore())
            replay(rebuilt, records)
            assert contents(rebuilt) == contents(tables.table)
            assert rebuilt.pending == tables.table.pending
            assert rebuilt.checkpoint.position == (offset_of(log) if log else 0)
        tables.table.close()


def replay(table: ScheduleTable, log: list[tuple[bytes, bytes | None]]) -> None:
    """Bring a table up to date from the offset that it has, three records at a time."""
    while (start := table.checkpoint.changelog_offset) < len(log):
        overlay = Overlay(table)
        for key, value in log[start : start + 3]:
            overlay.replay(key, value)
        overlay.apply(changelog_offset=min(start + 3, len(log)), complete_at=AT)


def contents(table: ScheduleTable) -> list[Entry]:
    found = []
    for tenant in sorted({tenant for tenant, _ in NAMES}):
        of_tenant = [each for _, each in table.by_due(tenant)]
        assert sorted(of_tenant, key=lambda each: each.schedule.id.encode()) == list(table.by_id(tenant))
        found += of_tenant
    return found


def offset_of(log: list[tuple[bytes, bytes | None]]) -> int:
    return int.from_bytes(next(value for key, value in reversed(log) if key == POSITION_KEY and value)[1:])
