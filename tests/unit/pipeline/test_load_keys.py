"""What rows are known by once they are loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from light_scheduler.engine.limits import NO_LIMITS
from light_scheduler.pipeline.load.columns import Column
from light_scheduler.pipeline.load.records import RecordMaker
from light_scheduler.pipeline.load.task import LoadTask, batch_key

ROWS: dict[str, Any] = {"id": ["a", "b"], "payload": [b"x", None], "labels": [[("k", "v")], None], "at": [5, 6]}
LABELS = pa.map_(pa.string(), pa.string())


def task(**changes: Any) -> LoadTask:
    maker = RecordMaker((), {"target-topic": "t"}, NO_LIMITS)
    return replace(LoadTask(maker, "commands", "name", "marks", None), **changes)


def key(task: LoadTask = task(), types: dict[str, pa.DataType] | None = None, **columns: Any) -> bytes:  # noqa: B008
    given = {**ROWS, **columns}
    arrays = {name: pa.array(cells, (types or {"labels": LABELS}).get(name)) for name, cells in given.items()}
    maker = replace(task.maker, columns=tuple(Column(name, name.replace("_", "-")) for name in given))
    return batch_key(task, maker.read(pa.RecordBatch.from_pydict(arrays)))


def test_rows_that_say_the_same_are_known_however_they_are_stored() -> None:
    assert key() == key()
    assert key() == key(ttl=[None, None]), "a column that says nothing"
    assert key() == key(at=["5", "6"]), "numbers as text, as in a CSV"
    assert key(headers=["nonsense", "{"]) == key(headers=["nonsense", "{"]), "what cannot be read"


@pytest.mark.parametrize(
    "other",
    [
        key(id=["a", "c"]),
        key(id=["b", "a"]),
        key(payload=[b"x", b""]),
        key(headers=['{"k": "v"}', None]),
        key(headers=["nonsense", None]),
        key(ttl=["1h", None]),
        key(task(name="other")),
        key(task(topic="other")),
        key(task(maker=RecordMaker((), {"target-topic": "u"}, NO_LIMITS))),
    ],
)
def test_what_would_be_another_command_or_load_is_not_known(other: bytes) -> None:
    assert other != key()


def test_cells_of_a_malformed_row_are_not_taken_for_those_of_a_whole_one() -> None:
    load = task(maker=RecordMaker((Column("id", "id"),), {}, NO_LIMITS))
    rows = load.maker.read(pa.RecordBatch.from_pydict({"id": ["a"]}))
    keys = [batch_key(load, rows, whys) for whys in ([], ["is malformed: a,b"], ["is malformed: a,c"])]
    assert keys[0] == batch_key(load, rows)
    assert len(set(keys)) == 3
