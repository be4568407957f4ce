"""Records as the producers of other schedulers write them, made from the public description of each."""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import fastavro
from aiokafka.structs import ConsumerRecord

from .partition import AT, HOUR, NAMES, PARTITION

Headers = list[tuple[str, bytes | None]]

SKYUK_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "AvroSchedule",
    "namespace": "uk.sky.scheduler.kafka.avro",
    "fields": [
        {"name": "time", "type": "long", "doc": "The time to execute the Schedule, in epoch milliseconds."},
        {"name": "topic", "type": "string"},
        {"name": "key", "type": "bytes"},
        {"name": "value", "type": ["null", "bytes"]},
        {"name": "headers", "type": {"type": "map", "values": "bytes"}},
    ],
}
LIGHT4J_KEY: dict[str, Any] = {
    "type": "record",
    "name": "TaskDefinitionKey",
    "namespace": "com.networknt.scheduler",
    "fields": [{"name": "host", "type": "string"}, {"name": "name", "type": "string"}],
}
LIGHT4J_VALUE: dict[str, Any] = {
    "type": "record",
    "name": "TaskDefinition",
    "namespace": "com.networknt.scheduler",
    "fields": [
        {"name": "host", "type": "string"},
        {"name": "name", "type": "string"},
        {
            "name": "action",
            "type": {"type": "enum", "name": "DefinitionAction", "symbols": ["INSERT", "UPDATE", "DELETE"]},
        },
        {
            "name": "frequency",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "TaskFrequency",
                    "fields": [
                        {
                            "name": "timeUnit",
                            "type": {
                                "type": "enum",
                                "name": "TimeUnit",
                                "symbols": ["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"],
                            },
                        },
                        {"name": "time", "type": "int"},
                    ],
                },
            ],
            "default": None,
        },
        {"name": "topic", "type": "string"},
        {"name": "start", "type": ["null", "long"], "default": None},
        {"name": "data", "type": ["null", {"type": "map", "values": "string"}], "default": None},
    ],
}
LIGHT4J_CLASS_VALUE = {
    **LIGHT4J_VALUE,
    "fields": [
        {"name": "start", "type": "long"} if field["name"] == "start" else field for field in LIGHT4J_VALUE["fields"]
    ],
}
"""As light-4j's Java classes have it: a start is required."""

LONG = 1_000
"""Hours between two firings of a light-4j task that is to fire once within a test."""


def avro(schema: dict[str, Any], document: dict[str, Any], id: int | None = None) -> bytes:
    """Return a document as Avro; `id` frames it as a schema registry's serializers do."""
    stream = BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), document)
    return (b"" if id is None else struct.pack(">BI", 0, id)) + stream.getvalue()


def record(
    key: bytes | None, value: bytes | None, headers: Headers, *, offset: int = 42, timestamp: int = AT
) -> ConsumerRecord:
    return ConsumerRecord(NAMES.commands, PARTITION, offset, timestamp, 0, key, value, None, -1, -1, tuple(headers))


def etf1_headers(due: int, topic: str = "reminders", key: bytes = b"target-key") -> Headers:
    return [
        ("scheduler-epoch", b"%d" % (due // 1_000)),
        ("scheduler-target-topic", topic.encode()),
        ("scheduler-target-key", key),
    ]


def karafka_headers(due: int, kind: str = "schedule", topic: str = "reminders", key: bytes = b"target-key") -> Headers:
    return [
        ("schedule_schema_version", b"1.0.0"),
        ("schedule_target_epoch", b"%d" % (due // 1_000)),
        ("schedule_source_type", kind.encode()),
        ("schedule_target_topic", topic.encode()),
        ("schedule_target_key", key),
    ]


def skyuk_json(due: object, payload: bytes | None = b"payload", **members: object) -> bytes:
    return json.dumps(
        {
            "time": due,
            "topic": "reminders",
            "key": b64encode(b"target-key").decode(),
            "value": None if payload is None else b64encode(payload).decode(),
            "headers": {"x": b64encode(b"\xff").decode()},
            **members,
        }
    ).encode()


def skyuk_avro(due: int, payload: bytes | None = b"payload", id: int | None = None, topic: str = "reminders") -> bytes:
    document = {"time": due, "topic": topic, "key": b"target-key", "value": payload, "headers": {"x": b"\xff"}}
    return avro(SKYUK_SCHEMA, document, id)


def task_key(name: str = "a", host: str = "networknt.com", id: int | None = None) -> bytes:
    return avro(LIGHT4J_KEY, {"host": host, "name": name}, id)


def task(
    due: int, data: str = "payload", id: int | None = None, schema: dict[str, Any] = LIGHT4J_VALUE, **fields: Any
) -> bytes:
    """A task that is due at an instant on the hour, and in a thousand hours again."""
    document = {
        "host": "networknt.com",
        "name": "a",
        "action": "INSERT",
        "frequency": {"timeUnit": "HOURS", "time": LONG},
        "topic": "reminders",
        "start": due - LONG * HOUR,
        "data": {"key1": data},
    }
    return avro(schema, {**document, **fields}, id)


@dataclass(frozen=True)
class Foreign:
    """How the senders of a dialect say the same things, and what their consumers expect.

    `schedule` takes the due time, a payload, an offset and the record's timestamp; `tombstone` is the record that tells
    that a schedule is over. `expected` takes the due time, the payload and the record, and returns key, value and
    headers of the message.
    """

    dialect: str
    tenant: str
    schedule: Callable[[int, bytes, int, int], ConsumerRecord]
    cancel: Callable[[int], ConsumerRecord]
    tombstone: Callable[[int], ConsumerRecord]
    expected: Callable[[int, bytes, ConsumerRecord], tuple[bytes | None, bytes | None, Headers]]


ETF1 = Foreign(
    "etf1",
    "default",
    lambda due, payload, offset, at: record(
        b"a", payload, [("x", b"\xff"), *etf1_headers(due)], offset=offset, timestamp=at
    ),
    lambda offset: record(b"a", None, [], offset=offset),
    lambda offset: record(b"a", None, [*etf1_headers(AT), ("scheduler-key", b"a")], offset=offset),
    lambda due, payload, sent: (
        b"target-key",
        payload,
        [
            *sent.headers,
            ("scheduler-timestamp", b"%d" % (sent.timestamp // 1_000)),
            ("scheduler-key", b"a"),
            ("scheduler-topic", NAMES.commands.encode()),
        ],
    ),
)
KARAFKA = Foreign(
    "karafka",
    "default",
    lambda due, payload, offset, at: record(
        b"a", payload, [*karafka_headers(due), ("x", b"\xff")], offset=offset, timestamp=at
    ),
    lambda offset: record(
        b"a", None, [("schedule_schema_version", b"1.0.0"), ("schedule_source_type", b"cancel")], offset=offset
    ),
    lambda offset: record(b"a", None, karafka_headers(AT, "tombstone"), offset=offset),
    lambda due, payload, sent: (
        b"target-key",
        payload,
        [
            *sent.headers,
            ("schedule_source_topic", NAMES.commands.encode()),
            ("schedule_source_partition", b"%d" % PARTITION),
            ("schedule_source_offset", b"%d" % sent.offset),
            ("schedule_source_key", b"a"),
        ],
    ),
)
SKYUK_JSON = Foreign(
    "skyuk",
    "default",
    lambda due, payload, offset, at: record(b"a", skyuk_json(due, payload), [], offset=offset, timestamp=at),
    lambda offset: record(b"a", None, [], offset=offset),
    lambda offset: record(b"a", None, [("schedule:expired", b"true")], offset=offset),
    lambda due, payload, sent: (b"target-key", payload, [("x", b"\xff")]),
)
SKYUK_AVRO = Foreign(
    "skyuk",
    "default",
    lambda due, payload, offset, at: record(b"a", skyuk_avro(due, payload), [], offset=offset, timestamp=at),
    SKYUK_JSON.cancel,
    SKYUK_JSON.tombstone,
    SKYUK_JSON.expected,
)


def _light4j(schema: dict[str, Any]) -> Foreign:
    return Foreign(
        "light4j",
        "networknt.com",
        lambda due, payload, offset, at: record(
            task_key(id=1), task(due, payload.decode(), 2, schema), [("x", b"\xff")], offset=offset, timestamp=at
        ),
        lambda offset: record(task_key(id=1), task(AT, id=2, schema=schema, action="DELETE"), [], offset=offset),
        lambda offset: record(task_key(id=1), None, [], offset=offset),
        lambda due, payload, sent: (
            task_key(id=1),
            task(due, payload.decode(), 2, schema, start=due + HOUR),
            [("x", b"\xff")],
        ),
    )


LIGHT4J = _light4j(LIGHT4J_VALUE)
LIGHT4J_CLASSES = _light4j(LIGHT4J_CLASS_VALUE)
FOREIGN = {
    "etf1": ETF1,
    "karafka": KARAFKA,
    "skyuk, JSON": SKYUK_JSON,
    "skyuk, Avro": SKYUK_AVRO,
    "light4j": LIGHT4J,
    "light4j, its classes": LIGHT4J_CLASSES,
}


@dataclass(frozen=True)
class Sender:
    """A sender of a dialect that schedules under any name, for any topic: what its records are, without their place.

    `schedule` takes the name, the due time, a payload and the target topic, and returns key, value and headers.
    """

    dialect: str
    tenant: str
    schedule: Callable[[str, int, bytes, str], tuple[bytes, bytes | None, Headers]]
    cancel: Callable[[str], tuple[bytes, bytes | None, Headers]]


SENDERS = {
    sender.dialect: sender
    for sender in (
        Sender(
            "etf1",
            "default",
            lambda name, due, payload, topic: (name.encode(), payload, [("x", b"\xff"), *etf1_headers(due, topic)]),
            lambda name: (name.encode(), None, []),
        ),
        Sender(
            "karafka",
            "default",
            lambda name, due, payload, topic: (
                name.encode(),
                payload,
                [*karafka_headers(due, topic=topic), ("x", b"\xff")],
            ),
            lambda name: (name.encode(), None, karafka_headers(AT, "cancel")),
        ),
        Sender(
            "skyuk",
            "default",
            lambda name, due, payload, topic: (name.encode(), skyuk_json(due, payload, topic=topic), []),
            lambda name: (name.encode(), None, []),
        ),
        Sender(
            "light4j",
            "networknt.com",
            lambda name, due, payload, topic: (
                task_key(name),
                task(
                    due,
                    payload.decode(),
                    name=name,
                    topic=topic,
                    frequency={"timeUnit": "SECONDS", "time": LONG * HOUR // 1_000},
                ),
                [("x", b"\xff")],
            ),
            lambda name: (task_key(name), None, []),
        ),
    )
}
"""By dialect."""
