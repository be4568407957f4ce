"""Views over tables: pages without gaps or repeats, whatever the limits, budgets and filters."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.progress import standing
from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import Checkpoint, MemoryStore, ScheduleTable, Store
from light_scheduler.tables.cell_changes import CellChanges
from light_scheduler.tables.layout import index_key, primary_key
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.tables.views import Lane, Mark, Query, QueryError, Sort, encode_cursor, scan
from light_scheduler.wire.state import encode_entry, identity_of

NOW = 1_800_000_000_000
NESTED_TOO_DEEPLY = urlsafe_b64encode(b"\x92\xa2id\x94\xc4\x01k\xa1t\x00" + b"\x91" * 100_000 + b"\xc0").decode()


def make_entry(id: str, *, tenant: str = "t", due: int = 0, priority: int = 100, topic: str = "out") -> Entry:
    schedule = Schedule(tenant, id, 1, Once(NOW + due), Target(topic), b"", [], 0, 0, NOW, priority=priority)
    return Entry(schedule, Progress(due=NOW + due, arrival=7))


def table_of(entries: list[Entry], store: Store | None = None) -> ScheduleTable:
    table = ScheduleTable(store or MemoryStore())
    changes: dict[bytes, bytes | None] = {}
    counted = CellChanges(table.counts)
    for entry in entries:
        key = index_key(entry, identity_of(entry))
        primary = primary_key(entry.schedule.tenant, entry.schedule.id)
        changes |= {key: encode_entry(entry), primary: counted.add(entry, key) + key}
    table.write(changes, Checkpoint(pending=len(entries)), counted)
    return ScheduleTable(table.store)


def read_all(tables: dict[Lane, ScheduleTable], query: Query, limit: int, budget: int) -> list[tuple[Mark, Entry]]:
    """Scan again and again from where the scan before stopped, each time through a cursor's text."""
    rows: list[tuple[Mark, Entry]] = []
    after = None
    for _ in range(1_000):
        part = scan(tables, query, after=after, limit=limit, budget=budget)
        assert len(part.rows) <= limit
        rows += part.rows
        if part.reached is None:
            return rows
        after = Query(tenant="t", sort=query.sort, cursor=encode_cursor(query.sort, part.reached)).start()
    raise AssertionError("the scan does not get on")


ids = st.text(st.sampled_from("aéb/\U0001f600\x7f"), min_size=1, max_size=3)
entries = st.builds(
    make_entry,
    ids,
    tenant=st.sampled_from(["t", "t2", "s"]),
    due=st.integers(0, 3),
    priority=st.sampled_from([0, 100]),
    topic=st.sampled_from(["out", "mail"]),
)
shares = st.lists(st.lists(entries, max_size=8, unique_by=lambda entry: entry.schedule.id), min_size=1, max_size=4)
queries: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    id_prefix=st.sampled_from(["", "", "a", "é", "zz"]),
    id_contains=st.sampled_from(["", "", "b", "é/", "zz"]),
    target_topic=st.sampled_from([None, None, "mail"]),
    lane=st.sampled_from([None, None, ("commands", 1), ("other", 0)]),
    due_from=st.sampled_from([None, None, NOW + 1]),
    due_to=st.sampled_from([None, None, NOW + 3]),
    sort=st.sampled_from(["id", "due"]),
)


@given(shares=shares, query=queries, limit=st.integers(1, 9), budget=st.integers(0, 9))
def test_scans_put_together_hold_every_match_once_and_in_order(
    shares: list[list[Entry]], query: dict[str, Any], limit: int, budget: int
) -> None:
    tables = {("commands", partition): table_of(share) for partition, share in enumerate(shares)}
    rows = read_all(tables, Query(tenant="t", **query), limit, budget)

    def order(row: tuple[int, Entry]) -> tuple[Any, ...]:
        partition, entry = row
        id = entry.schedule.id.encode()
        by_due = (entry.progress.due, entry.schedule.priority) if query["sort"] == "due" else ()
        return *by_due, id, partition

    expected = [
        (partition, entry)
        for partition, share in enumerate(shares)
        for entry in share
        if entry.schedule.tenant == "t"
        and query["lane"] in (None, ("commands", partition))
        and entry.schedule.id.startswith(query["id_prefix"])
        and query["id_contains"] in entry.schedule.id
        and query["target_topic"] in (None, entry.schedule.target.topic)
        and (query["due_from"] or 0) <= entry.progress.due < (query["due_to"] or NOW * 2)
    ]
    assert [(mark.partition, entry) for mark, entry in rows] == sorted(expected, key=order)


@pytest.mark.parametrize("sort", ["id", "due"])
def test_a_table_on_disk_is_read_to_its_end(tmp_path: Path, sort: Sort) -> None:
    store = RocksStore(tmp_path / "table")
    tables = {("commands", 0): table_of([make_entry(f"{n:04}", due=n) for n in range(1_000)], store)}
    rows = read_all(tables, Query(tenant="t", sort=sort, id_prefix="0"), limit=300, budget=170)
    store.close()
    assert [entry.schedule.id for _, entry in rows] == [f"{n:04}" for n in range(1_000)]


@pytest.mark.parametrize("sort", ["id", "due"])
def test_a_scan_stops_when_its_budget_is_spent_and_tells_where(sort: Sort) -> None:
    tables = {("commands", 0): table_of([make_entry(f"{n:02}", due=n) for n in range(20)])}
    part = scan(tables, Query(tenant="t", labels={"team": "none"}, sort=sort), after=None, limit=5, budget=7)
    assert (part.rows, part.spent, part.read) == ([], 7, 7)
    assert part.reached is not None
    rest = scan(tables, Query(tenant="t", sort=sort), after=part.reached, limit=1, budget=7)
    assert rest.rows[0][1].schedule.id == "07"


def test_large_payloads_spend_the_budget_sooner() -> None:
    large = make_entry("a")
    entries = [
        Entry(Schedule("t", id, 1, Once(NOW), Target("out"), bytes(100_000), [], 0, 0, NOW), large.progress)
        for id in "abc"
    ]
    part = scan({("commands", 0): table_of(entries)}, Query(tenant="t"), after=None, limit=9, budget=25)
    assert (len(part.rows), part.read) == (1, 1)
    assert part.reached is not None


def test_a_due_range_reads_nothing_outside_of_it() -> None:
    tables = {("commands", 0): table_of([make_entry(f"{n:02}", due=n) for n in range(50)])}
    query = Query(tenant="t", sort="due", due_from=NOW + 20, due_to=NOW + 23)
    part = scan(tables, query, after=None, limit=50, budget=50)
    assert ([entry.schedule.id for _, entry in part.rows], part.spent, part.reached) == (["20", "21", "22"], 3, None)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("tenant", {"tenant": ""}),
        ("tenant", {"tenant": "a\0b"}),
        ("id_prefix", {"id_prefix": "\0"}),
        ("id_contains", {"id_contains": "\0"}),
        ("limit", {"limit": 0}),
        ("limit", {"limit": 1001}),
        ("sort", {"sort": "-due"}),
        ("state", {"state": "gone"}),
        ("due_to", {"due_from": 2, "due_to": 1}),
        ("cursor", {"cursor": "AAAA"}),
        ("cursor", {"cursor": encode_cursor("due", Mark(b"x", "commands", 0))}),
        ("cursor", {"cursor": encode_cursor("id", Mark(b"", "commands", 0))}),
        ("cursor", {"cursor": encode_cursor("id", Mark(b"\xff", "commands", 0))}),
        ("cursor", {"cursor": NESTED_TOO_DEEPLY}),
    ],
)
def test_a_bad_query_is_refused_by_the_name_of_its_field(field: str, given: dict[str, Any]) -> None:
    with pytest.raises(QueryError) as error:
        Query(**{"tenant": "t", **given})
    assert error.value.field == field


@pytest.mark.parametrize("sort", ["id", "due"])
def test_a_schedule_that_is_paused_is_in_no_due_range(sort: Sort) -> None:
    paused = standing(make_entry("a").schedule, Progress(NOW, 7, paused=True))
    assert paused is not None
    tables = {("commands", 0): table_of([paused, make_entry("b")])}
    for due_from, found in ((None, {"a", "b"}), (NOW, {"b"})):
        rows = read_all(tables, Query(tenant="t", sort=sort, due_from=due_from), 10, 10)
        assert {entry.schedule.id for _, entry in rows} == found
