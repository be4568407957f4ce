"""A value in JSON that only passes through is refused as if it were read, without being read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.errors import InvalidCommand
from light_scheduler.wire import UnsentRecord, json_values
from light_scheduler.wire.backoff import MOST_INTERVALS, backoff_of_list
from light_scheduler.wire.json_commands import JSON
from light_scheduler.wire.json_values import UNREADABLE, check, is_null
from light_scheduler.wire.plain_json_commands import plain_json

AT = 1_767_225_600_000

NUMBERS = [
    *(b"1e999", b"-1e309", b"1E+400", b"1e308", b"1.8e308", b"17e307", b"18e307", b"1e-999", b"0e999", b"1e0000005"),
    *(b"0.0001e313", b"0.00001e312", b"1." + b"1" * 500 + b"e307", b"9." + b"1" * 500 + b"e308", b"0." + b"1" * 500),
    *(b"9" * 309, b"9" * 309 + b".5", b"1" * 309 + b".5", b"1" * 250 + b"e90", b"1" * 250 + b"e-90"),
    *(b"1" * 600 + b"e-200", b"1" * 4_300, b"-" + b"1" * 4_300, b"1" * 4_301, b"12.5", b"0", b"123"),
]
TEXTS = [
    *(b'"9e999"', b'"1.2.3e999"', b'"e999"', b'"\\"1e999"', b'"\\\\"', b'"\\\\\\"1e999\\\\"', b'"\\\\9e999"'),
    *(b'"' + b"1" * 5_000 + b'"', b'"\xc5\xbe"', b'"\xff"', b'"\xed\xa0\x80"', b'""'),
]
NAMES = [b'"a"', b'"1e999"', b'"\\"9e999"', b'"\\\\"', b'"\xff"']


def arrays(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.lists(values, max_size=4).map(lambda each: b"[" + b", ".join(each) + b"]")


def objects(values: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    members = st.tuples(st.sampled_from(NAMES), values).map(b":".join)
    return st.lists(members, max_size=4).map(lambda each: b"{" + b",".join(each) + b"}")


documents = st.recursive(
    st.sampled_from([*NUMBERS, *TEXTS, b"null", b"true"]), lambda values: arrays(values) | objects(values)
)


def failure(read: Any, value: bytes) -> tuple[type[Exception], str] | None:
    try:
        read(value)
    except UNREADABLE as error:
        return type(error), str(error)
    return None


@settings(max_examples=tries(2_000))
@given(documents)
def test_what_cannot_be_read_is_refused_for_the_same_reason(value: bytes) -> None:
    assert failure(check, value) == failure(check, value + b" " * 300) == failure(msgspec.json.decode, value)


@pytest.mark.parametrize("count", [1, 1_001])
@pytest.mark.parametrize("value", [*NUMBERS, *TEXTS])
def test_each_number_and_text_is_refused_or_not_in_a_large_value_too(value: bytes, count: int) -> None:
    document = b"[" + b",".join([b'"text"'] * 100 + [value] * count) + b"]"
    assert failure(check, document) == failure(msgspec.json.decode, document)


@pytest.mark.parametrize("depth", [900, 5_000])
def test_a_value_that_is_nested_too_deeply_is_refused_as_it_is_skipped(depth: int) -> None:
    value = b'{"target": {"topic": "t"}, "payload": {"json": ' + b"[" * depth + b"]" * depth + b"}}"
    if depth < 1_000:
        assert JSON.decode(UnsentRecord(b"x", value)).payload == b"[" * depth + b"]" * depth  # type: ignore[union-attr]
        return
    with pytest.raises(InvalidCommand, match="is not JSON: maximum recursion depth"):
        JSON.decode(UnsentRecord(b"x", value))


@pytest.mark.parametrize(
    ("value", "expected"), [(b"null", True), (b"[null]", False), (b'"null"', False), (b"1", False)]
)
def test_null_is_told_from_other_values(value: bytes, expected: bool) -> None:
    assert is_null(msgspec.Raw(value)) is expected


@pytest.mark.parametrize(
    "json",
    [b"[" + b",".join([each] * 500) + b"]" for each in (b"[]", b"1", b'"text"', "ž".join('""').encode())],
)
def test_a_large_payload_is_passed_on_without_its_objects_being_made(
    json: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = json_values.read

    def small(value: bytes | msgspec.Raw) -> Any:
        assert len(bytes(value)) < len(json)
        return read(value)

    monkeypatch.setattr(json_values, "read", small)
    monkeypatch.setattr(msgspec.json, "decode", small)
    value = b'{"trigger": {"at": %d}, "target": {"topic": "t"}, "payload": {"json": %s}}' % (AT, json)
    record = UnsentRecord(b"x", value)
    plain = plain_json(record)
    assert plain is not None
    assert plain[2] == JSON.decode(record).payload == json  # type: ignore[union-attr]


def test_a_list_of_too_many_intervals_is_refused_before_their_text_is_made() -> None:
    class Interval:
        def __str__(self) -> str:
            raise AssertionError

    with pytest.raises(ValueError, match=f"has {MOST_INTERVALS + 1} intervals; at most {MOST_INTERVALS} are allowed"):
        backoff_of_list([Interval()] * (MOST_INTERVALS + 1))
    assert backoff_of_list(["1s", 2_000]).intervals == (1_000, 2_000)


@pytest.mark.parametrize("many", [b"[]", b"{}", b"[" + b"[]," * 500 + b"[]]"])
@pytest.mark.parametrize(
    ("path", "types", "value"),
    [
        ("id", "string", b'{"id": %s, "trigger": {"after": "1h"}, "target": {"topic": "t"}}'),
        ("key", "string", b'{"key": %s, "id": "a", "trigger": {"after": "1h"}, "target": {"topic": "t"}}'),
        ("target.topic", "string", b'{"id": "a", "trigger": {"after": "1h"}, "target": {"topic": %s}}'),
        ("trigger.max_firings", "integer or string", b'{"id": "a", "trigger": {"max_firings": %s}}'),
        ("payload.text", "string", b'{"id": "a", "target": {"topic": "t"}, "payload": {"text": %s}}'),
    ],
)
def test_many_values_in_place_of_one_are_refused_without_their_objects_being_made(
    path: str, types: str, value: bytes, many: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = json_values.read

    def one(raw: bytes | msgspec.Raw) -> Any:
        assert bytes(raw) != many
        return read(raw)

    monkeypatch.setattr("light_scheduler.wire.json_commands.read", one)
    with pytest.raises(InvalidCommand, match=types) as refused:
        JSON.decode(UnsentRecord(b"x", value % many))
    assert refused.value.field == path
