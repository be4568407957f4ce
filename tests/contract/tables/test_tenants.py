"""How tenants share what is due, and what caps hold back."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from support.tables import AT, MINUTE, MUCH, Tables, by_tenant, entry, put

from light_scheduler.engine import FairQueue
from light_scheduler.engine.fairness import QUANTUM
from light_scheduler.model import (
    Entry,
)
from light_scheduler.tables import DueScan
from light_scheduler.wire.state import (
    identity,
    identity_of,
)

replace = msgspec.structs.replace


# -- several tenants --------------------------------------------------------------------------------------------------


def of(tenant: str, count: int, due: int = AT, **fields: Any) -> list[Entry]:
    return [entry(f"{tenant}-{place:04}", due, tenant=tenant, arrival=place, **fields) for place in range(count)]


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
