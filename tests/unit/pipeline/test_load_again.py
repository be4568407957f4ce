"""Which rows a load sends of those that it has met before, and which it holds back as they may have been sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.model import Headers
from light_scheduler.pipeline.load import task as task_module
from light_scheduler.pipeline.load.columns import Column
from light_scheduler.pipeline.load.files import FileMark, Guard, path_digest
from light_scheduler.pipeline.load.marks import BatchMark, T
from light_scheduler.pipeline.load.records import Record, RecordMaker, Refusal
from light_scheduler.pipeline.load.task import LoadTask

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


class Runs:
    """Runs of a load of one file, which has one-shots with payloads of 1, 60 and 1 bytes; `sent` has their ids.

    It stands for the producer of a run, and for the marks that it knows.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.sent: list[bytes] = []
        self.marks = self

    def __call__(self, limit: int, at: int = NOW * 2, **options: Any) -> tuple[int, list[str]]:
        """Load with a limit of payloads; return how many rows count as sent, and the fields at fault in the others."""
        columns = tuple(Column(name, name.replace("_", "-")) for name in ("id", "at", "target_topic", "payload"))
        maker = RecordMaker(columns, {}, Limits(limit, 100))
        given = {"guard": Guard("table", has_lost=False), **options}
        task = LoadTask(maker, "commands", "name", "marks", {"kafka.bootstrap.servers": "x:1"}, **given)
        place = {"_file": ["f"] * 3, "_block": [0] * 3, "_size": [9] * 3, "_modified": [1] * 3}
        cells = {"id": ["a", "b", "c"], "at": [at] * 3, "target_topic": ["t"] * 3, "payload": ["x", "x" * 60, "x"]}
        (report,) = task(iter([pa.RecordBatch.from_pydict({**cells, **place})]))
        return report.column("sent").to_pylist()[-1], report.column("field").to_pylist()[:-1]

    def get(self, key: bytes, type: type[T]) -> T | None:
        return msgspec.json.decode(self.values[key], type=type) if key in self.values else None

    @contextmanager
    def transaction(self, marks: Mapping[bytes, msgspec.Struct]) -> Iterator[Runs]:
        yield self
        self.values.update((key, msgspec.json.encode(mark)) for key, mark in marks.items())

    def send(self, topic: str, key: bytes, value: bytes | None, headers: Headers) -> None:
        self.sent.append(key)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    monkeypatch.setattr(task_module, "MarkingProducer", lambda *_: runs)
    return runs


def test_a_row_that_was_refused_is_sent_once_by_a_run_that_may_send_it(runs: Runs) -> None:
    assert runs(50) == (2, ["payload"])
    assert runs(50) == (0, ["payload"])
    assert runs(100, run="raised") == (1, [])
    assert runs(100, run="raised") == (1, []), "a task that is run again counts it again"
    assert runs(100) == (0, [])
    assert runs.sent == [b"a", b"c", b"b"]


def test_a_row_that_was_refused_is_held_back_if_it_may_have_been_sent_from_the_table_of_refused_rows(
    runs: Runs,
) -> None:
    passed = 1_700_000_000_000
    assert runs(50, passed) == (2, ["payload"])
    for _ in range(2):
        assert runs(100, passed) == (0, ["at"])
    assert runs(100, passed, sends_past=True) == (1, [])
    assert runs(100, passed) == (0, [])
    assert runs.sent == [b"a", b"c", b"b"]


def test_rows_of_a_table_of_refused_rows_are_sent_once_their_limit_is_raised(runs: Runs) -> None:
    passed = 1_700_000_000_000
    assert runs(50, passed, guard=None) == (2, ["payload"])
    assert runs(100, passed, guard=None) == (1, [])


def test_what_a_mark_of_an_older_version_was_written_for_counts_as_sent(runs: Runs) -> None:
    assert runs(50) == (2, ["payload"])
    older = {"at": NOW, "rows": 3, "held": False, "by": "", "sent": 2}
    runs.values = {
        key: value if b"modified" in value else msgspec.json.encode(older) for key, value in runs.values.items()
    }
    assert runs(50) == (0, ["payload"])
    assert runs(100) == (0, [])
    assert runs.sent == [b"a", b"c"]


@pytest.mark.parametrize("refused", [set(), {0}, {7, 8}, set(range(9))], ids=str)
def test_a_mark_says_which_rows_were_refused(refused: set[int]) -> None:
    mark = BatchMark(NOW, 9).refusing(refused)
    stored = msgspec.json.decode(msgspec.json.encode(mark), type=BatchMark)
    assert stored.unsent() == frozenset(refused)
    assert BatchMark(NOW, 9).unsent() is None
