"""One payload, decoded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import fastavro
import pytest
from support.documented import ROOT
from support.snippets import snippets

from light_scheduler.payloads import decode
from light_scheduler.payloads.decode import decoded
from light_scheduler.payloads.job import Decoded, Job

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "card", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "raw", "type": "bytes"},
    ],
}
ORDER = {"id": 7, "card": "4111", "at": datetime(2030, 1, 1, tzinfo=UTC), "price": Decimal("9.90"), "raw": b"\xff"}
SHOWN = {"id": 7, "card": "4111", "at": "2030-01-01T00:00:00Z", "price": 9.90, "raw": "/w=="}


def job(payload: bytes, **fields: Any) -> Job:
    return Job(payload=payload, **{"headers": [("h", b"1"), ("n", None)], "topic": "out", **fields})


def framed(value: Any = ORDER, schema: Any = SCHEMA, **fields: Any) -> Job:
    """Return a job of Avro behind the frame of a schema registry."""
    stream = BytesIO(b"\0\0\0\0\x07")
    stream.seek(5)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return job(stream.getvalue(), schema=json.dumps(schema).encode(), skip=5, **fields)


def contained(values: Sequence[Any], codec: str = "null") -> bytes:
    """Return an object container file."""
    stream = BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(SCHEMA), values, codec=codec)
    return stream.getvalue()


def value_of(found: Decoded | None) -> Any:
    """Return the value of what was decoded."""
    assert found is not None
    assert found.json is not None, found.error
    return json.loads(found.json)


def error_of(found: Decoded | None) -> str:
    """Return why a payload could not be decoded."""
    assert found is not None
    assert found.error is not None
    assert (found.json, found.text) == (None, None)
    return found.error


def test_avro_is_decoded_with_its_schema() -> None:
    found = decoded(framed(), None)
    assert value_of(found) == SHOWN
    assert found is not None
    assert found.by == "avro"


def test_a_container_file_has_its_schema_and_all_its_records() -> None:
    assert value_of(decoded(job(contained([ORDER, ORDER], "deflate")), None)) == [SHOWN, SHOWN]


def test_masked_fields_are_masked_in_avro_too() -> None:
    assert value_of(decoded(framed(masked=("card", "x")), None)) == {**SHOWN, "card": "********"}
    records = value_of(decoded(job(contained([ORDER]), masked=("*.card", "price")), None))
    assert records == [{**SHOWN, "price": "********"}]


@pytest.mark.parametrize("cut", [6, 12, 20])
def test_avro_that_is_cut_off_or_has_more_is_an_error(cut: int) -> None:
    whole = framed()
    error_of(decoded(job(whole.payload[:cut], schema=whole.schema, skip=5), None))
    more = job(whole.payload + b"x", schema=whole.schema, skip=5)
    assert error_of(decoded(more, None)) == "ValueError: 1 bytes are left over"


def test_a_schema_that_is_none_or_is_not_known_is_an_error() -> None:
    error_of(decoded(job(b"\0\0\0\0\x07x", schema=b'{"type": "nothing"}', skip=5), None))
    assert error_of(decoded(job(b"\0\0\0\0\x07x", trouble="the registry sleeps"), None)) == "the registry sleeps"


def test_json_is_left_to_the_reader_unless_fields_are_masked() -> None:
    sent = job(b'{"a": 1, "b": 2}', masked=("a",))
    assert decoded(job(sent.payload), None) is None
    found = decoded(sent, None)
    assert found is not None
    assert (found.by, value_of(found)) == ("json", {"a": "********", "b": 2})


@pytest.mark.parametrize("payload", [b"", b"plain", b"41", b'"41"', b'{"a": ', b'\xff{"a": 1}', b"\xef\xbb\xbf{}"])
def test_a_payload_that_nothing_knows_is_not_decoded(payload: bytes) -> None:
    assert decoded(job(payload, masked=("a",)), None) is None


def test_json_that_is_nested_too_deeply_is_an_error() -> None:
    assert error_of(decoded(job(b"[" * 100_000, masked=("a",)), None)) == "it is nested too deeply"


def test_the_hook_comes_first_and_gets_payload_headers_and_topic() -> None:
    given: list[Any] = []

    def hook(*arguments: Any) -> Any:
        given.append(arguments)
        return {"a": {"secret": 1}}

    found = decoded(framed(masked=("secret",)), hook)
    assert given == [(framed().payload, [("h", b"1"), ("n", None)], "out")]
    assert found is not None
    assert (found.by, value_of(found)) == ("hook", {"a": {"secret": "********"}})


def test_what_the_hook_does_not_know_is_decoded_as_without_it() -> None:
    assert value_of(decoded(framed(), lambda *_: NotImplemented)) == SHOWN


def test_the_hook_may_return_text() -> None:
    assert decoded(job(b"x"), lambda *_: "<b>\0") == Decoded(by="hook", text="<b>\0")
    assert decoded(job(b"x"), lambda *_: None) == Decoded(by="hook", json="null")


class _Odd:
    """No JSON value."""


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (_Odd(), "unsupported"),
        ("\ud800", "UnicodeEncodeError"),
        (["\ud800"], "Error"),
        ("x" * (4 << 20) + "x", "larger than 4 MiB"),
        (["x" * (4 << 20)], "larger than 4 MiB"),
    ],
)
def test_a_value_that_cannot_be_shown_is_an_error(returned: object, error: str) -> None:
    assert error in error_of(decoded(job(b"x"), lambda *_: returned))


def test_a_value_that_contains_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert error_of(decoded(job(b"x"), lambda *_: endless)) == "it is nested too deeply"


@pytest.mark.parametrize("raised", [ValueError("no \ud800" + "x" * 10_000), KeyError("a"), MemoryError()])
def test_an_error_of_the_hook_is_shown_in_short(raised: Exception) -> None:
    def hook(*_: object) -> Any:
        raise raised

    assert len(error_of(decoded(job(b"x"), hook)).encode()) <= decode.MOST_ERROR + 10


def test_the_documented_hook_and_answer_are_so() -> None:
    class Order:
        @staticmethod
        def FromString(payload: bytes) -> Any:  # noqa: N802 - the name that protobuf gives it
            return SimpleNamespace(as_dict=lambda: {"id": payload[0]})

    page = ROOT / "docs" / "http.md"
    names: dict[str, Any] = {"Order": Order}
    (program,) = (each.text for each in snippets(page) if each.language == "python")
    exec(program, names)
    assert value_of(decoded(job(b"\x07", topic="orders-eu"), names["decode"])) == {"id": 7}
    assert decoded(job(b"\x07", topic="mails"), names["decode"]) is None
    (shown,) = (json.loads(each.text) for each in snippets(page) if '"decoded":' in each.text)
    fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "Named", "fields": fields}).encode()
    found = decoded(job(shown["payload"]["text"].encode(), schema=schema, skip=5), None)
    assert found == Decoded(**shown["decoded"])
