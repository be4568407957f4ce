"""The dialect of sky-uk's kafka-message-scheduler: schedules as JSON or as Avro.

    record                                                   message
    key             id of the schedule
    value           null: cancel; otherwise JSON or Avro of
      time          due: UTC epoch ms, or RFC 3339
      topic         target topic
      key           bytes; in JSON base64                    key: null stays null, if a registry's schema allows it
      value         bytes or null; in JSON base64 or null    value: null is a tombstone for the target
      headers       names to bytes; in JSON base64           headers

A time that has passed is due immediately, however long ago it was. Nothing is added to the message. A value that begins
with `{` is JSON. A value that begins with 0x00 is framed Avro (see `wire.schemas`), or a plain record whose time is 0.
Any other value is plain Avro.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar

import msgspec

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import (
    DEFAULT_TENANT,
    FIRE_PAST,
    LATEST_INSTANT,
    Command,
    Headers,
    Once,
    ScheduleCommand,
    Target,
)
from light_scheduler.wire.dialect import Plain
from light_scheduler.wire.instants import BeforeEpochError, instant_of, parse_instant
from light_scheduler.wire.record import CommandRecord
from light_scheduler.wire.schemas import Schemas

from .avro import AvroForm, nullabilities
from .compatible import CompatibleDialect
from .reading import Given, cancel, has_plain_headers, is_plain_key, key_id, topic_named
from .skyuk_bytes import plain_schedule

RECORD_KEY = "record key"
RECORD_VALUE = "record value"

_BYTES_OR_NULL = ["null", "bytes"]
_HEADERS = {"name": "headers", "type": {"type": "map", "values": "bytes"}}


def _schema(name: str, time: str, *, headers: bool) -> dict[str, Any]:
    fields = [
        {"name": "time", "type": time},
        {"name": "topic", "type": "string"},
        {"name": "key", "type": "bytes"},
        {"name": "value", "type": _BYTES_OR_NULL},
        *([_HEADERS] if headers else ()),
    ]
    return {"type": "record", "name": name, "namespace": "uk.sky.scheduler.kafka.avro", "fields": fields}


PUBLISHED = [
    _schema("AvroSchedule", "long", headers=True),
    _schema("AvroScheduleWithoutHeaders", "long", headers=False),
    _schema("AvroScheduleOfText", "string", headers=True),  # the first releases had times as text
    _schema("AvroScheduleOfTextWithoutHeaders", "string", headers=False),
]


VARIANTS = [variant for schema in PUBLISHED for variant in nullabilities(schema, ("key", "value", "headers"))]


class SkyUkDialect(CompatibleDialect):
    """Reads schedules from values."""

    name = "skyuk"
    has_schemas = True
    leaves_traces = False
    names: ClassVar = {"id": RECORD_KEY, "payload": "value", "at": "time", "target-topic": "topic"}

    def __init__(self, schemas: Schemas | None = None) -> None:
        self._avro = AvroForm(RECORD_VALUE, PUBLISHED, schemas, VARIANTS)

    def schema_ids(self, record: CommandRecord) -> Sequence[int]:
        return self._avro.schema_ids(record.value)

    def needs_schemas(self, records: Sequence[CommandRecord]) -> bool:
        return self._avro.may_need(map(attrgetter("value"), records))

    def plain(self, record: CommandRecord) -> Plain | None:
        if record.value is None or not is_plain_key(record.key) or not has_plain_headers(record):
            return None
        place = self._avro.body_at(record.value)
        plain = (None if place is None else plain_schedule(record.value[place[0] :])) or self._scheduled(record.value)
        return plain if 0 < record.timestamp <= plain[0] else None

    def read(self, record: CommandRecord, headers: Given) -> Command:  # noqa: ARG002 - everything is in the value
        id = key_id(record, RECORD_KEY)
        if record.value is None:
            return cancel(record, id)
        at, target, payload, given = self._scheduled(record.value)
        return ScheduleCommand(
            DEFAULT_TENANT,
            id,
            record.key,
            Once(at),
            target,
            payload,
            given,
            record.partition,
            record.offset,
            record.timestamp,
            on_past=FIRE_PAST,
        )

    def _scheduled(self, record_value: bytes) -> Plain:
        """Read the schedule in a value. Raises InvalidCommand."""
        is_json = record_value.lstrip()[:1] == b"{"
        given = _json(record_value) if is_json else self._avro.read(record_value)
        data = _from_base64 if is_json else _bytes
        topic, key, value = given.get("topic"), given.get("key"), given.get("value")
        if not isinstance(topic, str):
            raise InvalidCommand("topic", "must be text: the topic that the message goes to")
        at = _instant(given.get("time"))
        is_null = key is None and "key" in given and not is_json  # only a sender's own schema has nullable keys
        target = Target(topic_named(topic, "topic"), None if is_null else data(key, "key"))
        return at, target, None if value is None else data(value, "value"), _headers(given.get("headers"), data)


_TIMES = "a whole number of ms since 1970 (1767225600000), or RFC 3339 text (2026-01-01T00:00:00Z)"
_WHOLE_MINUTE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(Z|[+-]\d\d:\d\d)", re.ASCII)
"""Java's format of an instant without seconds."""


def _json(value: bytes) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidCommand(RECORD_VALUE, f"is not JSON: {error}") from None
    assert isinstance(given, dict)  # it begins with a brace
    time = given.get("time")
    if type(time) is float and time.is_integer():  # JSON has one kind of number
        given["time"] = int(time)
    return given


def _instant(time: Any) -> int:
    try:
        if isinstance(time, datetime):
            ms = instant_of(time)
        elif isinstance(time, str):
            ms = _of_text(time)
        elif type(time) is int:
            ms = time
        elif time is None:
            raise ValueError(f"is required: {_TIMES}")
        else:
            raise ValueError(f"is {repr(time)[:40]}; it must be {_TIMES}")
    except ValueError as error:
        raise InvalidCommand("time", str(error)) from None
    if ms > LATEST_INSTANT:
        raise InvalidCommand("time", f"{ms} is beyond the year 9999: use UTC epoch ms")
    return max(ms, 0)


def _of_text(time: str) -> int:
    try:
        return parse_instant(_WHOLE_MINUTE.sub(r"\1:00\2", time))
    except BeforeEpochError:
        return 0  # in the past, so it is due immediately


def _headers(given: Any, data: Any) -> Headers:
    if given is None:
        return []
    if not isinstance(given, dict):
        raise InvalidCommand("headers", "must be names and values")
    return [(str(name), data(value, f"headers.{name}")) for name, value in given.items()]


def _bytes(value: Any, field: str) -> bytes:
    if not isinstance(value, bytes):
        raise InvalidCommand(field, "must be bytes")
    return value


def _from_base64(value: Any, field: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidCommand(field, "must be base64 text")
    try:
        return binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=True)
    except ValueError as error:
        raise InvalidCommand(field, f"is not base64: {error}") from None
