"""Avro that is read byte by byte: the same as a decoder reads, whatever schema a frame names."""

from __future__ import annotations

from copy import deepcopy
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.foreign import (
    LIGHT4J_CLASS_VALUE,
    LIGHT4J_KEY,
    LIGHT4J_VALUE,
    SKYUK_SCHEMA,
    avro,
    record,
    skyuk_avro,
    task,
    task_key,
)
from support.partition import AT, HOUR

from light_scheduler.model import Entry, FixedRate, Once, Progress, Schedule, ScheduleCommand
from light_scheduler.wire import dialect_named
from light_scheduler.wire.dialects.avro import AvroForm, _Reading
from light_scheduler.wire.dialects.skyuk import PUBLISHED, VARIANTS
from light_scheduler.wire.schemas import Schemas

from .test_avro import DOCUMENT, DUE, EVOLVED

# -- frames that are read byte by byte --------------------------------------------------------------------------------


def java(schema: Any) -> Any:
    """Return a schema as Java's classes have it: with notes, other names of types, and texts that are Java's."""
    if isinstance(schema, list):
        return [java(branch) for branch in schema]
    if isinstance(schema, dict):
        changed = {key: java(value) if key in ("type", "items") else value for key, value in schema.items()}
        if "fields" in schema:
            changed |= {"fields": [java(field) | {"doc": "a note"} for field in schema["fields"]]}
            changed["name"] = "Java" + schema["name"]
        return changed
    return {"type": "string", "avro.java.string": "String"} if schema == "string" else schema


def registered(*schemas: Any) -> Schemas:
    """Return a registry's schemas with ids from 1 on."""
    known = Schemas()
    for number, schema in enumerate(schemas, start=1):
        known.note(number, schema)
    return known


ALIKE = [LIGHT4J_KEY, LIGHT4J_VALUE, java(LIGHT4J_KEY), java(LIGHT4J_VALUE), java(LIGHT4J_CLASS_VALUE)]
IDS = [(1, 2), (3, 4), (1, None), (None, 2), (None, None)]


@pytest.mark.parametrize("schemas", [None, registered(*ALIKE)], ids=["published", "registry"])
@pytest.mark.parametrize(("key_id", "value_id"), IDS)
@pytest.mark.parametrize("is_of_classes", [False, True])
def test_a_framed_task_takes_the_short_way(
    schemas: Schemas | None, key_id: int | None, value_id: int | None, is_of_classes: bool
) -> None:
    dialect = dialect_named("light4j", schemas)
    if is_of_classes:
        value_id = None if value_id is None else 5
        sent = record(task_key(id=key_id), task(DUE, id=value_id, schema=LIGHT4J_CLASS_VALUE), [])
    else:
        sent = record(task_key(id=key_id), task(DUE, id=value_id), [])
    short, read = dialect.task(sent), dialect.decode(sent)
    assert short is not None
    assert isinstance(read, ScheduleCommand)
    assert (short.tenant, short.id, short.trigger, short.target) == (read.tenant, read.id, read.timing, read.target)
    assert (short.payload, short.headers) == (read.payload, read.headers)


@pytest.mark.parametrize("id", [1, 2, 9, None])
def test_a_framed_schedule_takes_the_short_way(monkeypatch: pytest.MonkeyPatch, id: int | None) -> None:
    for schemas in (None, registered(SKYUK_SCHEMA, java(SKYUK_SCHEMA), *[SKYUK_SCHEMA] * 7)):
        dialect = dialect_named("skyuk", schemas)
        sent = record(b"a", skyuk_avro(DUE, id=id), [])
        read = dialect.decode(sent)
        with monkeypatch.context() as patched:
            patched.delattr(type(dialect), "_scheduled")
            short = dialect.plain(sent)
        assert short is not None
        assert isinstance(read, ScheduleCommand)
        assert (Once(short[0]), *short[1:]) == (read.timing, read.target, read.payload, read.headers)


def unframed(form: AvroForm, data: bytes) -> bytes | None:
    """Return what is read byte by byte; asked twice, for a frame is remembered."""
    first, second = form.body_at(data), form.body_at(data)
    assert first == second
    return None if first is None else data[first[0] :]


def test_a_frame_of_another_layout_or_none_that_is_known_is_left_to_the_decoder() -> None:
    nullable = deepcopy(SKYUK_SCHEMA)
    nullable["fields"][2]["type"] = ["null", "bytes"]
    moment = deepcopy(SKYUK_SCHEMA)
    moment["fields"][0]["type"] = {"type": "long", "logicalType": "timestamp-millis"}
    form = AvroForm("value", [SKYUK_SCHEMA], registered(nullable, moment, EVOLVED, SKYUK_SCHEMA))
    bodies = [unframed(form, skyuk_avro(DUE, id=id)) for id in (1, 2, 3, 4, 5, 2**24 - 1)]
    assert bodies == [None, None, None, skyuk_avro(DUE), None, None]
    for data in (b"", b"\0", b"\0\0\0\0", skyuk_avro(DUE), skyuk_avro(DUE, id=2**24)):
        assert unframed(form, data) == data


def test_a_schema_that_becomes_known_later_is_read_byte_by_byte_then() -> None:
    schemas = Schemas()
    form = AvroForm("value", [SKYUK_SCHEMA], schemas)
    assert unframed(form, skyuk_avro(DUE, id=1)) is None
    schemas.note(1, SKYUK_SCHEMA)
    assert form.schema_ids(skyuk_avro(DUE, id=1)) == (1,)
    assert form.may_need([None, b"", skyuk_avro(DUE), skyuk_avro(DUE, id=1)])
    assert unframed(form, skyuk_avro(DUE, id=1)) == skyuk_avro(DUE)
    assert form.schema_ids(skyuk_avro(DUE, id=1)) == ()
    assert not form.may_need([None, b"", skyuk_avro(DUE), skyuk_avro(DUE, id=1)])
    assert form.may_need([skyuk_avro(DUE, id=1), skyuk_avro(DUE, id=2)])


@pytest.mark.parametrize("schemas", [None, registered(*ALIKE)], ids=["published", "registry"])
@pytest.mark.parametrize("given", [{}, {"start": None}, {"topic": "other"}, {"action": "UPDATE"}, {"name": "n" * 100}])
@pytest.mark.parametrize("id", [2, 4, 5])
def test_the_message_of_a_framed_task_is_the_same_either_way(
    monkeypatch: pytest.MonkeyPatch, schemas: Schemas | None, given: dict[str, Any], id: int
) -> None:
    dialect = dialect_named("light4j", schemas)
    schema = LIGHT4J_CLASS_VALUE if id == 5 else LIGHT4J_VALUE
    if id == 5 and given == {"start": None}:
        given = {"start": 1}  # in one byte
    key, value = task_key(given.get("name", "a"), id=1), task(DUE, id=id, schema=schema, **given)
    command = dialect.decode(record(key, value, []))
    assert isinstance(command, ScheduleCommand)
    assert isinstance(command.timing, FixedRate)
    schedule = Schedule(command.tenant, command.id, 1, command.timing, command.target, value, [], AT, 0, 0)
    entry = Entry(schedule, Progress(due=DUE, arrival=0))
    short = dialect.delivered(entry, DUE, b"commands")
    monkeypatch.setattr(AvroForm, "body_at", lambda self, data: None)
    assert short == dialect.delivered(entry, DUE, b"commands")
    assert short[0] == task(DUE, id=id, schema=schema, **{**given, "start": DUE + HOUR})


@pytest.mark.parametrize(("schema", "anchor"), [(LIGHT4J_VALUE, AT + HOUR), (LIGHT4J_CLASS_VALUE, 0)])
def test_the_schema_of_a_frame_tells_whether_a_task_has_no_start_or_one_of_few_bytes(
    schema: dict[str, Any], anchor: int
) -> None:
    dialect = dialect_named("light4j", registered(LIGHT4J_KEY, schema))
    value = task(DUE, id=2, schema=schema, start=None if schema is LIGHT4J_VALUE else 0)
    sent = record(task_key(id=1), value, [])
    short, read = dialect.task(sent), dialect.decode(sent)
    assert isinstance(read, ScheduleCommand)
    assert isinstance(read.timing, FixedRate)
    assert read.timing.anchor == anchor
    assert short is None or short.trigger == read.timing


@given(
    data=st.binary(max_size=40) | st.lists(st.sampled_from([b"\0", b"\2", b"\2t", b"\4", b"\1", b"k"])).map(b"".join)
)
@example(avro(VARIANTS[0], DOCUMENT))
@example(avro(PUBLISHED[0], DOCUMENT))
def test_data_is_the_same_records_whether_places_are_read_once_for_all_schemas_or_again_for_each(data: bytes) -> None:
    def alone(schema: Any) -> Any:
        stream = BytesIO(data)
        try:
            found = fastavro.schemaless_reader(stream, schema, None)
        except Exception:  # noqa: BLE001 - as many as there are ways to be no Avro
            return None
        return found if stream.tell() == len(data) else None

    reading = _Reading(data)
    for schema in map(fastavro.parse_schema, [*PUBLISHED, *VARIANTS]):
        assert reading.record(schema) == alone(schema)
