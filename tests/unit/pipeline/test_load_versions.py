"""What a load between two versions of a Delta table notes, and reads from the table's log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.pipeline.load.commits import vector_path
from light_scheduler.pipeline.load.files import FileMark, Guard
from light_scheduler.pipeline.load.records import RecordMaker
from light_scheduler.pipeline.load.task import LoadTask, mark_key
from light_scheduler.pipeline.load.versions import TableMark

TASK = LoadTask(RecordMaker((), {}, NO_LIMITS), "commands", "name", "marks", None)
UUID = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"


def test_a_batch_that_comes_back_between_other_versions_is_another_one() -> None:
    keys = {mark_key(replace(TASK, versions=versions), b"rows") for versions in ((), ("id", 1, 2), ("id", 3, 4))}
    assert len(keys) == 3
    assert mark_key(TASK, b"rows") == b"rows", "a whole table is known by its content"


@pytest.mark.parametrize(
    ("mark", "scope"),
    [
        (TableMark(None, 7, "", "id"), ()),
        (TableMark(5, 7, "c", "id"), ("id", 5, 7)),
        (msgspec.json.decode(b'{"loaded": 5, "begun": 7, "commit": "c"}', type=TableMark), ()),
    ],
    ids=["a whole table", "between versions", "begun by an older version of the package"],
)
def test_a_load_goes_on_with_the_marks_that_it_began_with(mark: TableMark, scope: tuple[Any, ...]) -> None:
    assert mark.scope == scope


@pytest.mark.parametrize(
    ("load", "holds_back"),
    [("between", False), ("another", True), ("", True)],
    ids=["by this load", "by an earlier one", "by an older version of the package"],
)
def test_what_comes_back_in_a_file_is_held_back_if_another_load_had_the_file(load: str, holds_back: bool) -> None:
    file = Guard("table", True).between(("id", 5, 7), restores=False).mark("/t/file", 1, 2)
    assert not file.held
    first = FileMark(file.table, file.file, 1, 2, held=False, load=file.load if load == "between" else load)
    assert first.holds_back(file) is holds_back


def test_all_files_of_a_restored_table_are_held_back() -> None:
    assert Guard("table", False).between(("id", 5, 7), restores=True).mark("/t/file", 1, 2).held


@pytest.mark.parametrize(
    ("storage", "place", "path"),
    [
        ("u", "ab^-aqEH.-t@S}K{vb[*k^", f"ab/deletion_vector_{UUID}.bin"),
        ("u", "^-aqEH.-t@S}K{vb[*k^", f"deletion_vector_{UUID}.bin"),
        ("p", "s3://a/vector.bin", "s3://a/vector.bin"),
    ],
)
def test_a_deletion_vector_is_found_as_the_protocol_of_delta_says(storage: str, place: str, path: str) -> None:
    assert vector_path(storage, place) == path
