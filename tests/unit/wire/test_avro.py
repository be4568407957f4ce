"""Avro with the schemas of a registry, and without one."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import fastavro
import pytest
from support.foreign import LIGHT4J_KEY, LIGHT4J_VALUE, SKYUK_SCHEMA, avro, record, skyuk_avro, task, task_key
from support.partition import AT, HOUR

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Entry, FixedRate, Once, Progress, Schedule, ScheduleCommand, Target
from light_scheduler.wire import dialect_named
from light_scheduler.wire.dialects.avro import AvroForm
from light_scheduler.wire.schemas import NEEDED_S, Schemas

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
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", framed, [])) == (7,)
    command = _read(framed, schemas)
    assert (command.timing, command.payload, command.target) == (Once(DUE), b"v", Target("reminders", b"k"))
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", framed, [])) == ()


def test_without_a_registry_a_frame_is_read_with_the_published_schema() -> None:
    framed = skyuk_avro(DUE, id=7)
    assert _read(framed, None).payload == b"payload"
    assert dialect_named("skyuk").schema_ids(record(b"a", framed, [])) == ()


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
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", value, [])) == ()


def test_a_frame_of_a_large_id_is_a_frame() -> None:
    schemas, id = Schemas(), 0x12000000
    schemas.note(id, EVOLVED)
    framed = avro(EVOLVED, {"version": 2, **DOCUMENT}, id=id)
    assert dialect_named("skyuk", schemas).schema_ids(record(b"a", framed, [])) == (id,)
    assert _read(framed, schemas).timing == Once(DUE)


@pytest.mark.parametrize("types", [{"value": "bytes"}, {"key": ["null", "bytes"]}, {"value": "bytes", "key": "bytes"}])
@pytest.mark.parametrize("id", [None, 7])
def test_fields_of_skyuk_may_be_null_or_not(types: dict[str, Any], id: int | None) -> None:
    schema = deepcopy(SKYUK_SCHEMA)
    for field in schema["fields"]:
        field["type"] = types.get(field["name"], field["type"])
    read = _read(avro(schema, {**DOCUMENT, "value": b"a payload"}, id), None)
    assert (read.timing, read.payload, read.target) == (Once(DUE), b"a payload", Target("reminders", b"k"))


@pytest.mark.parametrize(("id", "key"), [(7, None), (None, b"")], ids=["framed", "plain"])
def test_a_null_key_of_skyuk_stays_null_where_the_registrys_schema_tells_it_from_an_empty_one(
    id: int | None, key: bytes | None
) -> None:
    schemas, schema = Schemas(), deepcopy(SKYUK_SCHEMA)
    schema["fields"][2]["type"] = ["null", "bytes"]
    schemas.note(7, schema)
    assert _read(avro(schema, {**DOCUMENT, "key": None}, id), schemas).target == Target("reminders", key)


def test_a_record_of_skyuk_without_a_key_is_refused() -> None:
    schemas, schema = Schemas(), deepcopy(SKYUK_SCHEMA)
    del schema["fields"][2]
    schemas.note(7, schema)
    with pytest.raises(InvalidCommand, match="must be bytes"):
        _read(avro(schema, {name: part for name, part in DOCUMENT.items() if name != "key"}, 7), schemas)


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


def _with_start(type: Any) -> dict[str, Any]:
    schema = deepcopy(LIGHT4J_VALUE)
    schema["fields"][5]["type"] = ["null", type]
    return schema


@pytest.mark.parametrize(("unit", "told"), [("millis", AT + 2 * HOUR), ("micros", AT)])
def test_a_start_of_light4j_may_be_a_timestamp(unit: str, told: int) -> None:
    schemas = Schemas()
    schema = _with_start({"type": "long", "logicalType": f"timestamp-{unit}"})
    schemas.note(1, schema)
    document: dict[str, Any] = {"host": "h", "name": "a", "action": "INSERT", "topic": "t", "data": None}
    document |= {"frequency": {"timeUnit": "HOURS", "time": 1}, "start": datetime.fromtimestamp(AT / 1_000, UTC)}
    dialect, value = dialect_named("light4j", schemas), avro(schema, document, 1)
    command = dialect.decode(record(task_key("a", "h"), value, []))
    assert isinstance(command, ScheduleCommand)
    assert command.timing == FixedRate(HOUR, AT)
    schedule = Schedule("h", "a", 1, FixedRate(HOUR, AT), command.target, value, [], 0, 0, AT)
    payload, _ = dialect.delivered(Entry(schedule, Progress(AT + HOUR, 0)), AT + HOUR, b"tasks")
    assert payload is not None
    message: Any = fastavro.schemaless_reader(BytesIO(payload[5:]), schema, None)
    assert message == {**document, "start": datetime.fromtimestamp(told / 1_000, UTC)}


def _delivered(schemas: Schemas | None, value: bytes) -> bytes:
    target = Target("t", b"key")
    schedule = Schedule("h", "a", 1, FixedRate(HOUR, AT), target, value, [], 0, 0, AT)
    payload, _ = dialect_named("light4j", schemas).delivered(
        Entry(schedule, Progress(AT + HOUR, 0)), AT + HOUR, b"tasks"
    )
    assert payload is not None
    return payload


MICROS = {"type": "long", "logicalType": "timestamp-micros"}


@pytest.mark.parametrize(
    ("type", "start", "is_known"),
    [
        pytest.param(["null", MICROS], datetime.fromtimestamp(AT / 1_000, UTC), True, id="microseconds"),
        pytest.param(["null", MICROS], datetime.fromtimestamp(AT / 1_000, UTC), False, id="not known to be any"),
        pytest.param(MICROS, datetime.fromtimestamp(AT / 1_000, UTC), False, id="required, not known"),
        pytest.param(["null", MICROS], None, True, id="none, in microseconds"),
        pytest.param(["long", "null"], None, True, id="none, of a union in another order"),
        pytest.param(["long", "null"], 1, True, id="of a union in another order"),
    ],
)
def test_a_start_that_is_not_written_as_published_is_delivered_as_it_was_sent(
    type: Any, start: Any, is_known: bool
) -> None:
    schema = deepcopy(LIGHT4J_VALUE)
    schema["fields"][5] = {"name": "start", "type": type}
    document = {"host": "h", "name": "a", "action": "INSERT", "topic": "t", "data": None, "start": start}
    value = avro(schema, {**document, "frequency": {"timeUnit": "HOURS", "time": 1}}, 1)
    schemas = Schemas()
    if is_known:
        schemas.note(1, schema)
    assert _delivered(schemas, value) == value
    if not is_known:
        assert _delivered(None, value) == value, "as for whoever sends a dead letter again"


def test_a_start_that_is_none_is_delivered_so_while_its_unit_is_not_known() -> None:
    value = task(AT, id=1, schema=_with_start(MICROS), start=None)
    assert _delivered(Schemas(), value) == value


def _stored(schemas: Schemas, key: bytes, value: bytes, *, short: bool = False) -> bytes | None:
    """Return what is stored of a task's value, by the short way or the general one."""
    dialect, sent = dialect_named("light4j", schemas), record(key, value, [], timestamp=AT + 1)
    if short:
        plain = dialect.task(sent)
        assert plain is not None
        return plain.payload
    command = dialect.decode(sent)
    assert isinstance(command, ScheduleCommand)
    return command.payload


@pytest.mark.parametrize(("id", "short"), [(1, True), (1, False), (0x12000000, False)])
def test_a_task_without_a_start_tells_when_it_was_due_also_if_its_schema_is_not_known_any_more(
    id: int, short: bool
) -> None:
    schemas = Schemas()
    schemas.note(7, LIGHT4J_KEY)
    schemas.note(id, LIGHT4J_VALUE)
    value = task(AT, id=id, start=None, topic="t")
    stored = _stored(schemas, task_key(id=7), value, short=short)
    assert stored is not None
    assert stored == task(AT, id=id, start=AT + HOUR, topic="t")
    assert _delivered(Schemas(), stored) == task(AT, id=id, start=AT + 2 * HOUR, topic="t")


@pytest.mark.parametrize("id", [1, None])
def test_a_task_without_a_start_is_stored_as_it_was_sent_if_it_is_plain_or_its_start_not_in_ms(id: int | None) -> None:
    schemas = Schemas()
    schemas.note(1, _with_start(MICROS))
    value = task(AT, start=None) if id is None else task(AT, id=id, schema=_with_start(MICROS), start=None)
    assert _stored(schemas, task_key(), value) == value


def test_a_start_of_light4j_without_a_time_zone_is_refused() -> None:
    schemas = Schemas()
    schema = _with_start({"type": "long", "logicalType": "local-timestamp-millis"})
    schemas.note(1, schema)
    document: dict[str, Any] = {"host": "h", "name": "a", "action": "INSERT", "topic": "t", "data": None}
    document |= {"frequency": {"timeUnit": "HOURS", "time": 1}, "start": AT}
    with pytest.raises(InvalidCommand, match="no time zone") as refused:
        dialect_named("light4j", schemas).decode(record(task_key("a", "h"), avro(schema, document, 1), []))
    assert refused.value.field == "start"


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
    with pytest.raises(InvalidCommand, match="id 8, which is not the schema of a record"):
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
    assert dialect_named("light4j", Schemas()).schema_ids(both) == (1, 2)


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


@pytest.mark.parametrize("schema", [SKYUK_SCHEMA, EVOLVED])
def test_what_taken_commands_need_is_there_until_they_are_read_however_many_schemas_there_are(
    monkeypatch: pytest.MonkeyPatch, schema: dict[str, Any]
) -> None:
    monkeypatch.setattr("light_scheduler.wire.schemas.MOST_KEPT", 10)
    passed = [0.0]
    schemas = Schemas(lambda: passed[-1])
    dialect = dialect_named("skyuk", schemas)
    values = {id: avro(schema, {"version": 2, **DOCUMENT}, id=id) for id in range(1, 32)}
    taken = [record(b"a", values[id], []) for id in range(1, 21)]
    for id in range(1, 21):
        schemas.note(id, schema)
    assert dialect.needs_schemas(taken)
    assert all(id in schemas for each in taken for id in dialect.schema_ids(each))
    passed.append(NEEDED_S)
    for id in range(21, 31):  # of another lane
        schemas.note(id, schema)
        _read(values[id], schemas)
    for each in taken:
        assert isinstance(dialect.decode(each), ScheduleCommand)
    passed.append(3 * NEEDED_S)
    schemas.note(31, schema)
    _read(values[31], schemas)
    assert sum(dialect.schema_ids(each) != () for each in taken) > 10, "what was not needed for long is dropped"
