"""Schedules of sky-uk, byte by byte: whatever is read so is what a decoder reads."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.wire.dialects.skyuk import PUBLISHED, SkyUkDialect
from light_scheduler.wire.dialects.skyuk_bytes import plain_schedule

SCHEMAS = [fastavro.parse_schema(schema) for schema in PUBLISHED]
DIALECT = SkyUkDialect()
DUE = 1_800_000_000_123

_bytes = st.binary(max_size=200)
schedules = st.fixed_dictionaries(
    {
        "time": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 253_402_300_799_999),
        "topic": st.sampled_from(["out", "a" * 100, "no topic", ""]) | st.text(max_size=10),
        "key": _bytes,
        "value": st.none() | _bytes,
        "headers": st.dictionaries(st.text(max_size=80), _bytes, max_size=3),
    }
)
PLAIN = {"time": DUE, "topic": "out", "key": b"order-1", "value": b"x" * 200, "headers": {"trace": b"\xff" * 16}}


def written(schedule: Any, schema: Any = SCHEMAS[0]) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, schedule)
    return stream.getvalue()


def check(body: bytes) -> None:
    read = plain_schedule(body)
    if read is None:
        return
    stream = BytesIO(body)
    expected: Any = fastavro.schemaless_reader(stream, SCHEMAS[0], None)
    assert stream.tell() == len(body)
    due, target, value, headers = read
    told = (due, target.topic, target.key, value, dict(headers))
    assert told == tuple(expected[name] for name in ("time", "topic", "key", "value", "headers"))
    assert (len(headers), target.partition, target.partition_key) == (len(expected["headers"]), None, None)
    assert written(expected) == body
    assert read == DIALECT._scheduled(body)


@given(schedules)
def test_a_schedule_is_read_as_by_a_decoder(schedule: Any) -> None:
    check(written(schedule))


@given(st.integers(0, len(written(PLAIN)) - 1), st.binary(max_size=3), st.integers(0, 3))
def test_a_damaged_schedule_is_no_other_schedule(at: int, put: bytes, cut: int) -> None:
    body = written(PLAIN)
    check(body[:at] + put + body[at + cut :])


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"value": None},
        {"value": b""},
        {"key": b""},
        {"headers": {}},
        {"headers": {"a": b"", "b": b"x" * 100}},
        {"time": 253_402_300_799_999},
        {"time": 600_000_000_000},
        {"time": 1_000},
        {"key": b"k" * 20_000},
    ],
    ids=str,
)
def test_what_is_usual_needs_no_decoder(change: dict[str, Any]) -> None:
    body = written({**PLAIN, **change})
    assert plain_schedule(body) is not None
    check(body)


TWICE = written({**PLAIN, "headers": {"a": b"1", "b": b"2"}}).replace(b"\x02b\x02", b"\x02a\x02")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        written(PLAIN)[:-1],
        written(PLAIN) + b"\0",
        b"\0\0\0\0\1" + written(PLAIN),
        b' {"time": 1}',
        written({**PLAIN, "time": 0}),
        written({**PLAIN, "time": -1_000}),
        written({**PLAIN, "time": -DUE}),
        written({**PLAIN, "time": ~DUE}),
        written({**PLAIN, "time": 253_402_300_800_000}),
        written({**PLAIN, "time": 2**62}),
        written({**PLAIN, "topic": "no topic"}),
        written(PLAIN, SCHEMAS[1]),
        written({**PLAIN, "time": "2027-01-15T08:00:00Z"}, SCHEMAS[2]),
        TWICE,
    ],
    ids=[
        "empty",
        "short",
        "long",
        "framed",
        "JSON",
        "time 0",
        "negative time",
        "negative long time",
        "another negative long time",
        "late time",
        "large time",
        "no topic",
        "without headers",
        "time as text",
        "a header twice",
    ],
)
def test_what_is_unusual_is_left_to_the_decoder(body: bytes) -> None:
    assert plain_schedule(body) is None
