"""Tasks of light-4j, byte by byte: whatever is read so is what a decoder reads."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.wire.dialects.light4j import VALUE_SCHEMA
from light_scheduler.wire.dialects.light4j_bytes import UNITS, kind_of, task_bytes, with_start

SCHEMA = fastavro.parse_schema(VALUE_SCHEMA)
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


def written(task: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, SCHEMA, task)
    return stream.getvalue()


def decoded(body: bytes) -> Any:
    stream = BytesIO(body)
    task = fastavro.schemaless_reader(stream, SCHEMA, None)
    assert stream.tell() == len(body)
    return task


def check(body: bytes, start: int) -> None:
    task = task_bytes(body)
    kind = None if task is None else kind_of(task[3])
    if task is None or kind is None or kind.action >= len(ACTIONS) or kind.unit >= len(UNITS):
        return
    host, name, _, _, given, _, _ = task
    expected = decoded(body)
    assert (host, name, kind.topic, given) == tuple(expected[name] for name in ("host", "name", "topic", "start"))
    assert ACTIONS[kind.action] == expected["action"]
    assert {"timeUnit": list(UNITS)[kind.unit], "time": kind.time} == expected["frequency"]
    assert written(expected) == body
    assert with_start(body, task, start) == written({**expected, "start": start})


@given(tasks, INSTANTS)
def test_a_task_is_read_and_changed_as_by_a_decoder(task: Any, start: int) -> None:
    check(written(task), start)


@given(st.integers(0, len(written(PLAIN)) - 1), st.binary(max_size=3), st.integers(0, 3), INSTANTS)
def test_a_damaged_task_is_no_other_task(at: int, put: bytes, cut: int, start: int) -> None:
    body = written(PLAIN)
    check(body[:at] + put + body[at + cut :], start)


@pytest.mark.parametrize("change", [{}, {"start": None}, {"data": None}, {"data": {}}, {"action": "DELETE"}], ids=str)
def test_what_is_usual_needs_no_decoder(change: dict[str, Any]) -> None:
    task = task_bytes(written({**PLAIN, **change}))
    assert task is not None
    assert kind_of(task[3]) is not None


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
    assert task_bytes(written({**PLAIN, "start": start})) is None
