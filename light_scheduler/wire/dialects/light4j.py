"""The dialect of light-4j's light-scheduler: tasks that repeat, as Avro.

    key     TaskDefinitionKey {host, name}: the tenant, and the id of the schedule
    value   TaskDefinition {host, name, action, frequency {timeUnit, time}, topic, start, data}; null: delete

INSERT and UPDATE both store the task, and replace one with the same name. It is first due `time` units after its start,
counted from the beginning of the start's unit, and then repeatedly until it is deleted. If the start has passed, it is
due from the record's timestamp on. Without a start, the next unit after the record's timestamp is the start. The
message has the record's key and value, with a `start` that says when it was due: the end of that unit, as in light-4j.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    DEFAULT_TENANT,
    LATEST_INSTANT,
    Bounds,
    Command,
    Entry,
    FixedRate,
    Headers,
    ScheduleCommand,
    Target,
)
from light_scheduler.wire.dialect import PlainTask
from light_scheduler.wire.durations import LONGEST_DURATION
from light_scheduler.wire.fields import parse_id, parse_tenant, parse_topic
from light_scheduler.wire.instants import instant_of
from light_scheduler.wire.record import CommandRecord
from light_scheduler.wire.requester import REQUESTED_BY
from light_scheduler.wire.schemas import Schemas

from .avro import AvroForm, nullabilities
from .compatible import CompatibleDialect, Traced
from .light4j_alike import AlikeTasks
from .light4j_bytes import UNITS, kind_of, task_bytes, with_start
from .reading import Given, cancel, has_plain_headers, topic_named

RECORD_KEY = "record key"
RECORD_VALUE = "record value"
_NAMESPACE = "com.networknt.scheduler"
KEY_SCHEMA: dict[str, Any] = {
    "type": "record",
    "namespace": _NAMESPACE,
    "name": "TaskDefinitionKey",
    "fields": [{"name": "host", "type": "string"}, {"name": "name", "type": "string"}],
}
_ACTIONS = ["INSERT", "UPDATE", "DELETE"]
_UNIT_NAMES = list(UNITS)
_ACTION = {"type": "enum", "name": "DefinitionAction", "symbols": _ACTIONS}
_UNIT = {"type": "enum", "name": "TimeUnit", "symbols": _UNIT_NAMES}
_FREQUENCY = {
    "type": "record",
    "name": "TaskFrequency",
    "fields": [{"name": "timeUnit", "type": _UNIT}, {"name": "time", "type": "int"}],
}


def _value_schema(start: dict[str, Any]) -> dict[str, Any]:
    fields = [
        {"name": "host", "type": "string"},
        {"name": "name", "type": "string"},
        {"name": "action", "type": _ACTION},
        {"name": "frequency", "type": ["null", _FREQUENCY], "default": None},
        {"name": "topic", "type": "string"},
        {"name": "start", **start},
        {"name": "data", "type": ["null", {"type": "map", "values": "string"}], "default": None},
    ]
    return {"type": "record", "namespace": _NAMESPACE, "name": "TaskDefinition", "fields": fields}


VALUE_SCHEMA = _value_schema({"type": "long"})
"""The schema of light-4j's classes."""

NULLABLE_START_SCHEMA = _value_schema({"type": ["null", "long"], "default": None})
"""For senders without a start. Plain data is tried with this schema first: a start with few bytes is read as null."""

PUBLISHED = [NULLABLE_START_SCHEMA, VALUE_SCHEMA]
"""In the same order as in `light4j_bytes`."""

_VARIANTS = nullabilities(NULLABLE_START_SCHEMA, ("frequency", "start", "data"))


_STORING = (_ACTIONS.index("INSERT"), _ACTIONS.index("UPDATE"))
_MOST_UNITS = 2**31 - 1
"""The maximum of an Avro int."""

_KEY_OF, _VALUE_OF = attrgetter("key"), attrgetter("value")

_SHORT = 63
"""Maximum size (bytes) of a text whose length Avro writes as one byte, which is twice the length."""


class _Frequency(NamedTuple):
    """The time unit and the interval of a task, both in ms."""

    unit: int
    interval: int


class Light4jDialect(CompatibleDialect):
    """Reads tasks from keys and values."""

    name = "light4j"
    has_schemas = True
    has_tasks = True
    has_tenants = True
    names: ClassVar = {"id": "name", "tenant": "host", "payload": RECORD_VALUE, "at": "start", "target-topic": "topic"}

    def __init__(self, schemas: Schemas | None = None) -> None:
        self._keys = AvroForm(RECORD_KEY, [KEY_SCHEMA], schemas)
        self._values = AvroForm(RECORD_VALUE, PUBLISHED, schemas, _VARIANTS, len(PUBLISHED))
        self._alike = AlikeTasks()

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:
        return self._keys.schema_ids(record.key) + self._values.schema_ids(record.value)

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:
        return self._keys.may_need(map(_KEY_OF, records)) or self._values.may_need(map(_VALUE_OF, records))

    def task(self, record: CommandRecord) -> PlainTask | None:
        key, value = record.key, record.value
        headers = record.headers
        if key is None or value is None or not has_plain_headers(record):
            return None
        if headers and (headers[0][0] == REQUESTED_BY or (len(headers) > 1 and len(_sent(record)) < len(headers))):
            return None
        if (alike := self._alike.read(key, value)) is None:
            return self._task(record)
        id, start, (tenant, topic, unit, interval) = alike
        if not id.isprintable() or start > LATEST_INSTANT - interval:
            return self._task(record)
        anchor = start - start % unit
        first = _first(anchor, interval, record.timestamp)
        return PlainTask(tenant, id, FixedRate(interval, anchor), first, Target(topic, key), value, list(headers))

    def _task(self, record: CommandRecord) -> PlainTask | None:
        """Read a task that is not similar to an earlier one, and remember its shape for similar tasks."""
        key, value = record.key, record.value
        assert key is not None
        assert value is not None
        whose, place = self._keys.body_at(key), self._values.body_at(value)
        if whose is None or place is None:
            return None
        at, schema = place
        task = task_bytes(value, at, schema)
        if task is None:
            return None
        host, name, name_end, kind, start, _, _ = task
        stored = _stored(kind)
        if stored is None or value[at:name_end] != key[whose[0] :]:
            return None
        topic, unit, interval = stored
        try:
            tenant = parse_tenant(host)
            id = name if name and name.isprintable() else parse_id(name)
            if start is None or start > LATEST_INSTANT - interval:
                anchor = _anchor(start, record.timestamp, _Frequency(unit, interval))
            else:
                anchor = start - start % unit
        except (ValueError, InvalidCommand):
            return None
        if start is None:
            if schema is not None:  # as in `_with_start`
                value = with_start(value, task, anchor)
        else:
            self._alike.keep(key, whose[0], value, at, task, (tenant, topic, unit, interval))
        trigger, target = FixedRate(interval, anchor), Target(topic, key)
        first = _first(anchor, interval, record.timestamp)
        return PlainTask(tenant, id, trigger, first, target, value, list(record.headers))

    def read(self, record: CommandRecord, headers: Given) -> Command:  # noqa: ARG002 - everything is in the value
        given = None if record.value is None else self._values.read(record.value)
        tenant, id = self._named(record, given)
        action = "DELETE" if given is None else given.get("action")
        if action == "DELETE":
            return cancel(record, id, tenant)
        assert given is not None
        if action not in ("INSERT", "UPDATE"):
            raise InvalidCommand("action", "must be INSERT, UPDATE or DELETE")
        topic = given.get("topic")
        if not isinstance(topic, str):
            raise InvalidCommand("topic", "must be text: the topic that the message goes to")
        frequency, start = _frequency(given.get("frequency")), given.get("start")
        anchor = _anchor(start, record.timestamp, frequency)
        assert record.value is not None
        payload = self._with_start(record.value, anchor) if start is None else record.value
        return ScheduleCommand(
            tenant,
            id,
            record.key,
            FixedRate(frequency.interval, anchor),
            Target(topic_named(topic, "topic"), record.key),
            payload,
            _sent(record),
            record.partition,
            record.offset,
            record.timestamp,
            bounds=Bounds(start=_first(anchor, frequency.interval, record.timestamp)),
        )

    def whose(self, record: CommandRecord) -> tuple[str, str | None]:
        try:
            given = None if record.value is None else self._values.read(record.value)
        except InvalidCommand:
            given = None
        try:
            return self._named(record, given)
        except InvalidCommand:
            return DEFAULT_TENANT, None

    def delivered(self, entry: Entry, fired_at: int, source_topic: bytes) -> tuple[bytes | None, Headers]:
        payload, headers = super().delivered(entry, fired_at, source_topic)
        if payload is None:
            return payload, headers
        due = entry.progress.due
        place = self._values.body_at(payload)
        task = None if place is None else task_bytes(payload, *place)
        frequency = None if task is None else _known_frequency(task[3])
        if task is None or frequency is None or due < 0:
            is_known = self._values.is_known(payload)
            payload = self._values.with_field(
                payload, "start", lambda task, start: _start_told(task, start, due, is_known=is_known)
            )
        elif _is_in_ms(task[4]):
            payload = with_start(payload, task, _end_of_unit(frequency, due))
        return payload, headers

    def traced(self, key: bytes | None, value: bytes | None, headers: Headers) -> Traced | None:  # noqa: ARG002
        if key is None or value is None:
            return None
        try:
            whose, task = self._keys.read(key), self._values.read(value)
            host, name = whose.get("host"), whose.get("name")
            if not isinstance(host, str) or not isinstance(name, str) or (host, name) != (task["host"], task["name"]):
                return None
            return Traced(parse_tenant(host), parse_id(name))
        except (InvalidCommand, ValueError, KeyError):
            return None

    def _with_start(self, value: bytes, start: int) -> bytes:
        """Return the value to store for a task without a start. If its schema is in a registry, add the start.

        When the message is created later, it may be unknown whether a start is in ms.
        """
        if not self._values.is_of_registry(value):
            return value
        return self._values.with_field(value, "start", lambda _task, _start: start)

    def _named(self, record: CommandRecord, given: dict[str, Any] | None) -> tuple[str, str]:
        """Return tenant and id from the key, or from the value if the key has another format."""
        try:
            if record.key is None:
                raise InvalidCommand(RECORD_KEY, "is required: the task's host and name")
            key = given if given is not None and _is_key_of(record.key, given) else self._keys.read(record.key)
        except InvalidCommand:
            if given is None:
                raise
            key = given
        host, name = key.get("host"), key.get("name")
        try:
            tenant = parse_tenant(host if isinstance(host, str) else "")
        except ValueError as error:
            raise InvalidCommand("host", f"is the tenant: {error}") from None
        try:
            return tenant, parse_id(name if isinstance(name, str) else "")
        except ValueError as error:
            raise InvalidCommand("name", f"is the id of the schedule: {error}") from None


def task_record(task: Mapping[str, Any], key_id: int | None, value_id: int | None) -> tuple[bytes, bytes]:
    """Encode key and value of a task with the published schemas, framed with their ids in a schema registry, if any.

    Raises InvalidCommand for values that Avro cannot represent, such as a `time` of more than 31 bits.
    """
    key = {"host": task["host"], "name": task["name"]}
    return _KEYS.written(key, key_id), _SENT.written(task, value_id)


def published_task(value: bytes | None) -> dict[str, Any]:
    """Decode a record's value with the schemas that light-4j publishes. Empty if it has another schema."""
    try:
        return {} if value is None else _PUBLISHED.read(value)
    except InvalidCommand:
        return {}


_KEYS = AvroForm(RECORD_KEY, [KEY_SCHEMA], None)
_SENT = AvroForm(RECORD_VALUE, [VALUE_SCHEMA], None)
_PUBLISHED = AvroForm(RECORD_VALUE, PUBLISHED, None, _VARIANTS)


def _sent(record: CommandRecord) -> Headers:
    """Return a record's headers without the one that workers add."""
    headers = record.headers
    return [header for header in headers if header[0] != REQUESTED_BY] if headers else []


def _is_key_of(key: bytes, task: dict[str, Any]) -> bool:
    """Return whether a key is the plain key of a task with short names, without decoding it. Nearly every key is."""
    host, name = task.get("host"), task.get("name")
    if not isinstance(host, str) or not isinstance(name, str):
        return False
    whose, id = host.encode(), name.encode()
    if not 0 < len(whose) <= _SHORT or len(id) > _SHORT:
        return False
    return key == b"%c%b%c%b" % (2 * len(whose), whose, 2 * len(id), id)


@lru_cache(maxsize=4096)
def _known_frequency(body: bytes) -> dict[str, Any] | None:
    """Return the frequency of tasks of a kind; None if a decoder must read it."""
    kind = kind_of(body)
    if kind is None or kind.unit >= len(_UNIT_NAMES) or kind.action >= len(_ACTIONS):
        return None
    return {"timeUnit": _UNIT_NAMES[kind.unit], "time": kind.time}


@lru_cache(maxsize=4096)
def _stored(body: bytes) -> tuple[str, int, int] | None:
    """Return topic, unit and interval (ms) of a kind of tasks to store.

    None if they are not stored, or if a decoder must report what is wrong.
    """
    kind, known = kind_of(body), _known_frequency(body)
    if kind is None or known is None or kind.action not in _STORING or kind.time > _MOST_UNITS:
        return None
    try:
        frequency = _frequency(known)
        return parse_topic(kind.topic), frequency.unit, frequency.interval
    except (ValueError, InvalidCommand):
        return None


def _frequency(given: Any) -> _Frequency:
    if not isinstance(given, dict):
        raise InvalidCommand("frequency", "is required: a timeUnit and a time, such as MINUTES and 2")
    unit, time = UNITS.get(str(given.get("timeUnit"))), given.get("time")
    if unit is None:
        raise InvalidCommand("frequency.timeUnit", f"must be one of {', '.join(UNITS)}")
    if type(time) is not int or time < 1 or time * unit > LONGEST_DURATION:
        most = LONGEST_DURATION // unit
        raise InvalidCommand(
            "frequency.time", f"{time!r} must be a whole number of units, at least 1 and at most {most}"
        )
    return _Frequency(unit, time * unit)


def _start_told(task: Mapping[str, Any], start: int | None, due: int, *, is_known: bool) -> int | None:
    """Return the `start` for a task's message. A stored start that is not in ms is kept.

    If the schema is unknown, a missing start is kept too, since its unit is unknown.
    """
    if start is None and not is_known:
        return None
    return _end_of_unit(task.get("frequency"), due) if _is_in_ms(start) else start


def _is_in_ms(start: int | None) -> bool:
    """Return whether a start can be in ms. Current times in microseconds, which an unknown schema may have, cannot."""
    return start is None or start <= LATEST_INSTANT


def _end_of_unit(frequency: Any, due: int) -> int:
    try:
        unit = _frequency(frequency).unit
    except InvalidCommand:
        return due
    return due if unit == 1 else due - due % unit + unit


def _first(anchor: int, interval: int, recorded_at: int) -> int:
    """Return the start of a task's firings: one interval after its start, or the timestamp of its record.

    The latter is for a firing due exactly then, since a series whose start has passed begins after its record.
    """
    passed = recorded_at - anchor
    return recorded_at if passed > 0 and passed % interval == 0 else anchor + interval


def _anchor(start: Any, recorded_at: int, frequency: _Frequency) -> int:
    """Return the instant from which a task's interval counts."""
    unit = frequency.unit
    if start is None:
        start = max(recorded_at, 0) + (0 if unit == 1 else unit)
    elif isinstance(start, datetime):  # because of its schema
        try:
            start = instant_of(start)
        except ValueError as error:
            raise InvalidCommand("start", str(error)) from None
    if type(start) is not int or start < 0 or start > LATEST_INSTANT - frequency.interval:
        raise InvalidCommand("start", f"{start!r} must be UTC epoch ms, before the year 9999")
    return start - start % unit
