"""The commands of a round in the formats of other schedulers' producers."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from typing import Any

from light_scheduler.model import Headers
from light_scheduler.wire.schemas import FRAME, MAGIC

Written = tuple[bytes, bytes, Headers]
"""Key, value and headers of a record."""

Write = Callable[[bytes, bytes, Headers, str, int], Written]
"""(key, payload, user's headers, target topic, due in UTC epoch ms) -> record."""

_TASK_HOURS = 24


def _native(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
    return key, payload, [("schedule-at", b"%d" % due), ("schedule-target-topic", target.encode()), *headers]


def _json(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
    document = {"trigger": {"at": due}, "target": {"topic": target}, "payload": {"base64": _base64(payload)}}
    return key, json.dumps(document).encode(), headers


def _karafka(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
    ours: Headers = [
        ("schedule_schema_version", b"1.0.0"),
        ("schedule_target_epoch", b"%d" % (due // 1_000)),
        ("schedule_source_type", b"schedule"),
        ("schedule_target_topic", target.encode()),
        ("schedule_target_key", key),
    ]
    return key, payload, [*ours, *headers]


def _etf1(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
    ours: Headers = [
        ("scheduler-epoch", b"%d" % (due // 1_000)),
        ("scheduler-target-topic", target.encode()),
        ("scheduler-target-key", key),
    ]
    return key, payload, [*ours, *headers]


def _skyuk(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
    named = {name: value or b"" for name, value in headers}
    document = {"time": due, "topic": target, "key": key, "value": payload, "headers": named}
    return key, _avro("skyuk", document), []


def _light4j(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
    whose = {"host": "bench", "name": key.decode()}
    frequency = {"timeUnit": "HOURS", "time": _TASK_HOURS}
    data = {"payload": _base64(payload)}
    start = due - _TASK_HOURS * 3_600_000
    task = {**whose, "action": "INSERT", "frequency": frequency, "topic": target, "start": start, "data": data}
    return _avro("light4j key", whose), _avro("light4j", task), headers


WRITERS: dict[str, Write] = {
    "native": _native,
    "json": _json,
    "karafka": _karafka,
    "etf1": _etf1,
    "skyuk": _skyuk,
    "light4j": _light4j,
}


AVRO = ("skyuk", "light4j")
"""Dialects whose commands a schema registry may frame."""

_KEY_ID, _VALUE_ID = 1, 2


def registered(dialect: str) -> dict[int, Any]:
    """Return the Avro schemas of a dialect by their ids in a schema registry."""
    from light_scheduler.wire.dialects import light4j, skyuk

    if dialect == "skyuk":
        return {_VALUE_ID: skyuk.PUBLISHED[0]}
    return {_KEY_ID: light4j.KEY_SCHEMA, _VALUE_ID: light4j.VALUE_SCHEMA}


def framed(dialect: str) -> Write:
    """Return a writer of a dialect's Avro with the framing of a schema registry."""
    schemas = registered(dialect)
    of_key, of_value = (FRAME.pack(MAGIC, id) if id in schemas else b"" for id in (_KEY_ID, _VALUE_ID))
    write = WRITERS[dialect]

    def write_framed(key: bytes, payload: bytes, headers: Headers, target: str, due: int) -> Written:
        key, value, headers = write(key, payload, headers, target, due)
        return of_key + key, of_value + value, headers

    return write_framed


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _avro(name: str, document: dict[str, Any]) -> bytes:
    import fastavro

    from light_scheduler.wire.dialects import light4j, skyuk

    schemas = {"skyuk": skyuk.PUBLISHED[0], "light4j key": light4j.KEY_SCHEMA, "light4j": light4j.VALUE_SCHEMA}
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schemas[name], document)
    return stream.getvalue()
