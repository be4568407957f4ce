"""Which rows a load holds back if another state of their file may have been sent."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.pipeline.load.columns import Column
from light_scheduler.pipeline.load.files import FileMark, path_digest
from light_scheduler.pipeline.load.records import Record, RecordMaker, Refusal

NOW = 1_800_000_000_000
MARK = FileMark("table", "file", 100, NOW, held=False)


def made(*, holds_past: bool, **fields: Any) -> Record | Refusal:
    """Return what a row comes to."""
    row = {"id": "a", "target-topic": "t", "payload": b"x", **fields}
    maker = RecordMaker(tuple(Column(name, name) for name in row), {}, NO_LIMITS)
    batch = pa.RecordBatch.from_pydict({name: [cell] for name, cell in row.items()})
    (one,) = maker.make(maker.read(batch), NOW, holds_past=holds_past)
    return one


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"at": NOW}, "at"),
        ({"at": NOW - 1, "tenant": "acme"}, "at"),
        ({"after": "1h"}, "after"),
        ({}, "at"),
    ],
    ids=["due", "due, the general way", "after a delay", "for now"],
)
def test_a_one_shot_that_may_have_been_delivered_is_held_back(fields: dict[str, Any], column: str) -> None:
    assert isinstance(made(holds_past=False, **fields), Record)
    held = made(holds_past=True, **fields)
    assert isinstance(held, Refusal)
    assert (held.field, held.held) == (column, True)
    assert "--send-past" in held.reason


@pytest.mark.parametrize("fields", [{"at": NOW + 1}, {"every": "1h"}, {"cron": "0 9 * * *"}], ids=str)
def test_what_is_ahead_and_series_are_sent(fields: dict[str, Any]) -> None:
    assert isinstance(made(holds_past=True, **fields), Record)


@pytest.mark.parametrize(
    ("mark", "holds_back"),
    [
        (MARK, False),
        (FileMark("table", "file", 101, NOW, held=False), True),
        (FileMark("table", "file", 100, NOW + 1, held=False), True),
        (FileMark("table", "file", 100, NOW, held=True), True),
    ],
    ids=["as it is", "another size", "another time", "new in a table that had lost files"],
)
def test_a_file_holds_back_unless_it_is_as_its_mark_says(mark: FileMark, holds_back: bool) -> None:
    assert mark.holds_back(MARK) is holds_back


def test_a_path_is_the_same_however_spark_spells_it() -> None:
    spelled = ("/a b/c.csv", "file:/a b/c.csv", "file:///a%20b/c.csv", "/a b/c.csv/")
    assert len({path_digest(path) for path in spelled}) == 1
    assert path_digest("s3a://a/b") != path_digest("/a/b")
