"""Whose schedules the rows of a table are, as cancels for deleted rows need it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from light_scheduler.engine.limits import NO_LIMITS, Limits
from light_scheduler.pipeline.load.cancels import is_valid
from light_scheduler.pipeline.load.columns import Column
from light_scheduler.pipeline.load.records import Record, RecordMaker, Refusal


def maker_of(rows: dict[str, list[Any]]) -> tuple[RecordMaker, pa.RecordBatch]:
    maker = RecordMaker(tuple(Column(name, name) for name in rows), {"target-topic": "out"}, NO_LIMITS)
    return maker, pa.RecordBatch.from_pydict(rows)


def test_a_row_that_is_refused_still_says_whose_schedule_it_is() -> None:
    maker, batch = maker_of({"id": ["a", "b"], "headers": ["no json", None], "tenant": ["acme", None]})
    made = list(maker.make(maker.read(batch), 0))
    assert isinstance(made[0], Refusal)
    assert list(maker.owners(maker.read(batch))) == [(b"acme", b"a", b"a"), (None, b"b", b"b")]


@pytest.mark.parametrize(
    "rows",
    [
        {"id": ["a"], "payload": ["x"]},
        {"key": ["k"], "payload": ["x"]},
        {"id": ["a"], "key": ["k"], "payload": ["x"]},
        {"payload": ["x"]},
    ],
)
def test_a_row_is_of_the_schedule_that_its_record_is_of(rows: dict[str, list[Any]]) -> None:
    maker, batch = maker_of({**rows, "after": ["1h"]})
    (record,) = maker.make(maker.read(batch), 0)
    ((_, id, key),) = maker.owners(maker.read(batch))
    assert isinstance(record, Record)
    assert (id, key) == (dict(record.headers).get("schedule-id") or record.key, record.key)


@pytest.mark.parametrize(
    ("tenant", "id", "valid"), [(b"acme", b"a", True), (b"no tenant", b"a", False), (b"acme", b"a" * 300, False)]
)
def test_no_cancel_is_sent_for_what_no_schedule_can_be(tenant: bytes, id: bytes, *, valid: bool) -> None:
    assert is_valid(tenant, id, id, Limits(1_000, 256)) == valid
