"""Tasks of light-4j, byte by byte: whatever is read so is what a decoder reads."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.wire.dialects.light4j import PUBLISHED, published_task
from light_scheduler.wire.dialects.light4j_bytes import NULLABLE_START, START, UNITS, kind_of, task_bytes, with_start

SCHEMAS = [fastavro.parse_schema(schema) for schema in PUBLISHED]
ACTIONS = ["INSERT", "UPDATE", "DELETE"]
INSTANTS = st.integers(0, 253_402_300_799_999)

_text = st.text(max_size=80)
tasks = st.fixed_dictionaries(
    {
        "host": _text,
        "name": _text,
        "action": st.sampled_from(ACTIONS),
        "frequency": st.none() | st.fixed_dictionaries(
            {"timeUnit": st.sampled_from(list(UNITS)), "time": st.integers(-2, 2**31 - 1)}
        ),
        "topic": _text,
        "start": st.none() | st.integers(-2, 2**62),
        "data": st.none() | st.dictionaries(_text, st.text(max_size=300), max_size=3),
    }
)  # fmt: skip
PLAIN = {
    "host": "shop", "name": "order-1", "action": "INSERT", "frequency": {"timeUnit": "HOURS", "time": 24},
    "topic": "out", "start": 1_800_000_000_000, "data": {"payload": "x" * 200},
}  # fmt: skip


def written(task: Any, schema: int = 0) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, SCHEMAS[schema], task)
    return stream.getvalue()


def decoded(body: bytes, schema: int) -> Any:
    stream = BytesIO(body)
    task = fastavro.schemaless_reader(stream, SCHEMAS[schema], None)
    assert stream.tell() == len(body)
    return task


def check(body: bytes, start: int, schema: int) -> None:
    task = task_bytes(body, 0, schema)
    kind = None if task is None else kind_of(task[3])
    if task is None or kind is None or kind.action >= len(ACTIONS) or kind.unit >= len(UNITS):
        return
    host, name, _, _, given, _, _ = task
    expected = decoded(body, schema)
    assert (host, name, kind.topic, given) == tuple(expected[name] for name in ("host", "name", "topic", "start"))
    assert ACTIONS[kind.action] == expected["action"]
    assert {"timeUnit": list(UNITS)[kind.unit], "time": kind.time} == expected["frequency"]
    assert written(expected, schema) == body
    assert with_start(body, task, start) == written({**expected, "start": start}, schema)


every_schema = pytest.mark.parametrize("schema", range(len(PUBLISHED)))


@every_schema
@given(tasks, INSTANTS)
def test_a_task_is_read_and_changed_as_by_a_decoder(schema: int, task: Any, start: int) -> None:
    if task["start"] is not None or schema == NULLABLE_START:
        check(written(task, schema), start, schema)


@every_schema
@given(st.integers(0, len(written(PLAIN)) - 1), st.binary(max_size=3), st.integers(0, 3), INSTANTS)
def test_a_damaged_task_is_no_other_task(schema: int, at: int, put: bytes, cut: int, start: int) -> None:
    body = written(PLAIN, schema)
    check(body[:at] + put + body[at + cut :], start, schema)


@every_schema
@given(st.integers(0, len(written(PLAIN)) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_task_of_no_known_schema_is_read_as_by_the_first_that_it_fits(
    schema: int, at: int, put: bytes, cut: int
) -> None:
    whole = written(PLAIN, schema)
    body = whole[:at] + put + whole[at + cut :]
    task = task_bytes(body)
    kind = None if task is None else kind_of(task[3])
    if task is not None and kind is not None and kind.action < len(ACTIONS) and kind.unit < len(UNITS):
        expected = published_task(body)
        assert (task[0], task[1], task[4]) == (expected["host"], expected["name"], expected["start"])


@every_schema
@pytest.mark.parametrize("change", [{}, {"data": None}, {"data": {}}, {"action": "DELETE"}], ids=str)
def test_what_is_usual_needs_no_decoder(schema: int, change: dict[str, Any]) -> None:
    body = written({**PLAIN, **change}, schema)
    task = task_bytes(body)
    assert task is not None
    assert kind_of(task[3]) is not None
    assert task_bytes(body, 0, schema) == task
    assert task_bytes(body, 0, START if schema == NULLABLE_START else NULLABLE_START) is None


def test_no_start_is_usual_where_it_may_be_null() -> None:
    body = written({**PLAIN, "start": None})
    assert task_bytes(body) is not None
    assert task_bytes(body, 0, START) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        written(PLAIN)[:-1],
        written(PLAIN) + b"\0",
        b"\0\0\0\0\1" + written(PLAIN),
        written({**PLAIN, "name": "n" * 64}),
        written({**PLAIN, "start": -1}),
        written({**PLAIN, "frequency": None}),
        written({**PLAIN, "host": ""}),
        written(PLAIN).replace(b"\x30\x06out", b"\xff" * 100_000 + b"\x30\x06out"),
        written(PLAIN).replace(b"\x30\x06out", b"\x30\x80\x01" + b"o" * 64),
    ],
    ids=[
        "empty",
        "short",
        "long",
        "framed",
        "long name",
        "negative start",
        "no frequency",
        "no host",
        "long time",
        "long topic",
    ],
)
def test_what_is_unusual_is_left_to_the_decoder(body: bytes) -> None:
    task = task_bytes(body)
    assert task is None or kind_of(task[3]) is None


@pytest.mark.parametrize("start", range(-1_800_000_000_100, -1_800_000_000_000))
def test_no_negative_start_is_taken_for_another_one(start: int) -> None:
    assert all(task_bytes(written({**PLAIN, "start": start}, schema)) is None for schema in range(len(PUBLISHED)))
