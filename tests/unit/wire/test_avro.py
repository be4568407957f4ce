"""Avro with the schemas of a registry, and without one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from support.foreign import LIGHT4J_VALUE, SKYUK_SCHEMA, avro, record, skyuk_avro, task, task_key
from support.partition import AT, HOUR

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Entry, FixedRate, Once, Progress, Schedule, ScheduleCommand, Target
from light_scheduler.wire import dialect_named
from light_scheduler.wire.dialects.avro import AvroForm
from light_scheduler.wire.schemas import Schemas

DUE = AT + HOUR
DOCUMENT = {"time": DUE, "topic": "reminders", "key": b"k", "value": b"v", "headers": {}}

EVOLVED: dict[str, Any] = {
    "type": "record",
    "name": "Schedule",
    "fields": [
        {"name": "version", "type": "int"},
        {"name": "topic", "type": "string"},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "value", "type": ["null", "bytes"]},
        {"name": "key", "type": "bytes"},
    ],
}
"""Another order, another type of time, a field that nobody needs, and no headers."""


def _read(value: bytes, schemas: Schemas | None) -> ScheduleCommand:
    command = dialect_named("skyuk", schemas).decode(record(b"a", value, []))
    assert isinstance(command, ScheduleCommand)
    return command


def test_a_frame_is_read_with_the_schema_that_it_names() -> None:
    schemas = Schemas()
    schemas.note(7, EVOLVED)
    framed = avro(EVOLVED, {"version": 2, **DOCUMENT}, id=7)
    command = _read(framed, schemas)
    assert (command.timing, command.payload, command.target) == (Once(DUE), b"v", Target("reminders", b"k"))
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", framed, [])) == [7]


def test_without_a_registry_a_frame_is_read_with_the_published_schema() -> None:
    framed = skyuk_avro(DUE, id=7)
    assert _read(framed, None).payload == b"payload"
    assert dialect_named("skyuk").schema_ids(record(b"a", framed, [])) == []


def test_plain_avro_is_read_with_a_registry_too() -> None:
    assert _read(skyuk_avro(DUE), Schemas()).payload == b"payload"


@pytest.mark.parametrize("time", ["long", "string"])
@pytest.mark.parametrize("with_headers", [True, False])
def test_every_published_schema_of_skyuk_is_read(time: str, with_headers: bool) -> None:
    schema, document = deepcopy(SKYUK_SCHEMA), dict(DOCUMENT)
    schema["fields"][0]["type"] = time
    if time == "string":
        document["time"] = "2026-01-01T02:00:00+01:00"
    if not with_headers:
        del schema["fields"][4], document["headers"]
    assert _read(avro(schema, document), None).timing == Once(DUE)


@pytest.mark.parametrize("schemas", [None, Schemas()])
@pytest.mark.parametrize("topic", ["t", "reminders", "t" * 100])
def test_a_plain_record_whose_time_is_0_is_no_frame(topic: str, schemas: Schemas | None) -> None:
    value = skyuk_avro(0, topic=topic)
    assert value[0] == 0
    assert _read(value, schemas).timing == Once(0)
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", value, [])) == []


def test_a_frame_of_a_large_id_is_a_frame() -> None:
    schemas, id = Schemas(), 0x12000000
    schemas.note(id, EVOLVED)
    framed = avro(EVOLVED, {"version": 2, **DOCUMENT}, id=id)
    assert _read(framed, schemas).timing == Once(DUE)
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", framed, [])) == [id]


@pytest.mark.parametrize("types", [{"value": "bytes"}, {"key": ["null", "bytes"]}, {"value": "bytes", "key": "bytes"}])
@pytest.mark.parametrize("id", [None, 7])
def test_fields_of_skyuk_may_be_null_or_not(types: dict[str, Any], id: int | None) -> None:
    schema = deepcopy(SKYUK_SCHEMA)
    for field in schema["fields"]:
        field["type"] = types.get(field["name"], field["type"])
    read = _read(avro(schema, {**DOCUMENT, "value": b"a payload"}, id), None)
    assert (read.timing, read.payload, read.target) == (Once(DUE), b"a payload", Target("reminders", b"k"))


@pytest.mark.parametrize("required", [("start",), ("data",), ("frequency",), ("frequency", "start", "data")])
def test_fields_of_light4j_may_be_required(required: tuple[str, ...]) -> None:
    schema = deepcopy(LIGHT4J_VALUE)
    for field in schema["fields"]:
        if field["name"] in required:
            field["type"] = field["type"][1]
            del field["default"]
    document = {"host": "h", "name": "a", "action": "INSERT", "topic": "t", "start": AT, "data": {"k": "v"}}
    value = avro(schema, {**document, "frequency": {"timeUnit": "HOURS", "time": 1}})
    command = dialect_named("light4j").decode(record(task_key("a", "h"), value, []))
    assert isinstance(command, ScheduleCommand)
    assert (command.timing, command.target.topic) == (FixedRate(HOUR, AT), "t")


def test_what_can_be_read_in_several_ways_is_refused() -> None:
    form = AvroForm(
        "value",
        [{"type": "record", "name": "R", "fields": [{"name": "n", "type": "bytes"}, {"name": "m", "type": "bytes"}]}],
        None,
        [
            {"type": "record", "name": "A", "fields": [{"name": "n", "type": "int"}]},
            {"type": "record", "name": "B", "fields": [{"name": "n", "type": "boolean"}]},
        ],
    )
    with pytest.raises(InvalidCommand, match="can be read in several ways"):
        form.read(b"\x01")


def test_a_schema_that_cannot_be_had_is_told_of_by_its_id() -> None:
    schemas = Schemas()
    schemas.refuse(7, "the registry has no schema 7")
    with pytest.raises(InvalidCommand, match="id 7: the registry has no schema 7"):
        _read(skyuk_avro(DUE, id=7), schemas)
    schemas.note(8, "string")
    with pytest.raises(InvalidCommand, match="id 8, which is of no Avro record"):
        _read(skyuk_avro(DUE, id=8), schemas)
    schemas.note(9, {"type": "record", "name": "x", "fields": [{"name": "a", "type": "nothing"}]})
    with pytest.raises(InvalidCommand, match="id 9"):
        _read(skyuk_avro(DUE, id=9), schemas)


def test_a_task_of_another_schema_is_delivered_as_it_was_sent() -> None:
    evolved = deepcopy(LIGHT4J_VALUE)
    evolved["fields"].append({"name": "owner", "type": "string"})
    document = {"host": "h", "name": "a", "action": "INSERT", "topic": "t", "start": AT, "data": None, "owner": "me"}
    value = avro(evolved, {**document, "frequency": {"timeUnit": "HOURS", "time": 1}}, id=5)
    schedule = Schedule("h", "a", 1, FixedRate(HOUR, AT), Target("t"), value, [], 0, 0, AT)
    payload, _ = dialect_named("light4j").delivered(Entry(schedule, Progress(DUE, 0)), DUE, b"tasks")
    assert payload == value


def test_the_ids_of_key_and_value_are_both_needed() -> None:
    both = record(task_key(id=1), task(DUE, id=2), [])
    assert dialect_named("light4j", Schemas()).schema_ids(both) == [1, 2]


@pytest.mark.parametrize(
    ("type", "reason"),
    [
        (["null", "Schedule"], "Schedule contains itself"),
        ({"type": "array", "items": "null"}, "the items of an array have no bytes"),
        ({"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}}, "the items of an array have no bytes"),
        ({"type": "array", "items": {"type": "record", "name": "E", "fields": []}}, "the items of an array have no"),
    ],
)
def test_a_schema_by_which_few_bytes_are_much_is_refused(type: Any, reason: str) -> None:
    """fastavro would end the process, or fill its memory."""
    schemas = Schemas()
    schemas.note(7, {**EVOLVED, "fields": [*EVOLVED["fields"], {"name": "more", "type": type}]})
    with pytest.raises(InvalidCommand, match=reason):
        _read(b"\x00\x00\x00\x00\x07" + 8_000 * b"\x02", schemas)


def test_an_id_that_no_registry_can_have_is_refused_without_asking() -> None:
    schemas = Schemas()
    assert 2**31 in schemas
    assert 2**31 - 1 not in schemas
    with pytest.raises(InvalidCommand, match="no schema registry has the id 2147483648"):
        _read(b"\x00\x80\x00\x00\x00x", schemas)
