"""Telling from stored bytes what cannot match: nothing that matches is ever passed over."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.model import NEVER, Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import Checkpoint, MemoryStore, ScheduleTable, layout
from light_scheduler.tables.cell_changes import CellChanges
from light_scheduler.tables.layout import index_key, primary_key
from light_scheduler.tables.views import Query, scan
from light_scheduler.wire.state import encode_entry, encode_progress, identity_of

NOW = 1_800_000_000_000

texts = st.text(st.sampled_from("aé\x01\U0001f600\u202e"), max_size=3)
names = st.text(st.sampled_from("aé\x01\U0001f600\u202e"), min_size=1, max_size=3)


def make_entry(id: str, topic: str = "out", labels: dict[str, str] | None = None, **progress: Any) -> Entry:
    schedule = Schedule("t", id, 1, Once(NOW), Target(topic), b"a", [], 0, 0, NOW, labels=labels)
    return Entry(schedule, Progress(due=NOW, arrival=7, **progress))


@given(
    id=names, labels=st.dictionaries(names, texts, max_size=3), topic=st.sampled_from(["out", "mail"]), data=st.data()
)
def test_what_matches_has_its_traits(id: str, labels: dict[str, str], topic: str, data: st.DataObject) -> None:
    entry = make_entry(id, topic, labels)
    asked = dict(data.draw(st.lists(st.sampled_from(sorted(labels.items())))) if labels else [])
    begin, end = sorted((data.draw(st.integers(0, len(id))), data.draw(st.integers(0, len(id)))))
    label = "=".join(data.draw(st.sampled_from(sorted(labels.items())))) if labels else ""
    first, last = sorted((data.draw(st.integers(0, len(label))), data.draw(st.integers(0, len(label)))))
    query = Query(
        tenant="t",
        id_prefix=id[:begin],
        id_contains=id[begin:end],
        labels=asked,
        label_contains=label[first:last],
        target_topic=topic,
    )
    assert query.matches(entry)
    traits = query.traits()
    assert traits is not None
    assert traits.are_in(index_key(entry, identity_of(entry)), encode_entry(entry))


@pytest.mark.parametrize(
    "asked",
    [
        *({"id_prefix": "z"}, {"id_contains": "z"}, {"target_topic": "z"}),
        *({"labels": {"z": "a"}}, {"labels": {"a": "z"}}, {"label_contains": "z"}, {"label_contains": "a=z"}),
    ],
)
def test_what_lacks_one_of_them_is_not_decoded(asked: dict[str, Any]) -> None:
    entry = make_entry("a", labels={"a": "a"})
    traits = Query(tenant="t", **asked).traits()
    assert traits is not None
    assert not traits.are_in(index_key(entry, identity_of(entry)), encode_entry(entry))


def test_the_definition_of_a_split_schedule_is_looked_up() -> None:
    entry = make_entry("a", labels={"team": "billing"})
    table = ScheduleTable(MemoryStore())
    counted, key = CellChanges(table.counts), index_key(entry, identity_of(entry))
    changes: dict[bytes, bytes | None] = {
        key: layout.PROGRESS_ONLY + encode_progress(entry.progress),
        layout.DEFINITION + identity_of(entry): encode_entry(entry),
        primary_key("t", "a"): counted.add(entry, key) + key + layout.SPLIT,
    }
    table.write(changes, Checkpoint(pending=1), counted)
    tables = {("commands", 0): ScheduleTable(table.store)}
    for labels, found in (({"team": "billing"}, [entry]), ({"team": "other"}, [])):
        for sort in ("id", "due"):
            query = Query(tenant="t", labels=labels, sort=sort)
            part = scan(tables, query, after=None, limit=9, budget=9)
            assert [each for _, each in part.rows] == found


def test_a_table_without_what_is_asked_for_is_not_read() -> None:
    table = ScheduleTable(MemoryStore())
    entries = [make_entry(f"{number:02}") for number in range(50)]
    entries += [make_entry("p1", "mail", paused=True, wake=NEVER), make_entry("p2", paused=True, triggered=(NOW,))]
    counted = CellChanges(table.counts)
    changes: dict[bytes, bytes | None] = {}
    for entry in entries:
        key = index_key(entry, identity_of(entry))
        changes |= {key: encode_entry(entry), primary_key("t", entry.schedule.id): counted.add(entry, key) + key}
    table.write(changes, Checkpoint(pending=len(entries)), counted)
    tables = {("commands", 0): ScheduleTable(table.store)}

    def found(**asked: Any) -> tuple[list[str], int]:
        part = scan(tables, Query(tenant="t", **asked), after=None, limit=9, budget=99)
        return [entry.schedule.id for _, entry in part.rows], part.read

    assert found(state="awaiting") == found(target_topic="none") == ([], 0)
    assert found(state="awaiting", target_topic="mail", sort="due") == ([], 0)
    assert found(state="pending", target_topic="mail") == ([], 0)
    for sort in ("id", "due"):
        assert sorted(found(state="paused", sort=sort)[0]) == ["p1", "p2"]
        assert found(state="paused", sort=sort, target_topic="mail") == (["p1"], 52)
