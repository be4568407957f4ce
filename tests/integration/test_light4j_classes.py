"""A Java producer that uses light-4j's own Avro classes, and a schema registry that has their schemas."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from support.application import Application
from support.foreign import record
from support.light4j_classes import required, send_tasks
from support.reading import Record, read_all, read_until
from support.registry import FakeRegistry
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.host.ports import free_port
from light_scheduler.model import ControlCommand
from light_scheduler.testing import Kafka
from light_scheduler.wire import dialect_named
from light_scheduler.wire.schemas import FRAME, Schemas

pytestmark = pytest.mark.integration

DATA = {"key1": "value1", "ž": ""}


class Framed:
    """Keys and values that are framed with the ids of a registry."""

    def __init__(self, registry: FakeRegistry) -> None:
        self._registry = registry

    def read(self, data: bytes) -> Any:
        """Return what data says by the schema that it names."""
        schema = self._registry.schemas[FRAME.unpack_from(data)[1]]
        return fastavro.schemaless_reader(BytesIO(data[FRAME.size :]), fastavro.parse_schema(schema), None)


@pytest.mark.soak
async def test_tasks_of_light_4js_own_classes_are_delivered_as_light_4j_does(kafka: Kafka, tmp_path: Path) -> None:
    class_path, registry = required(), FakeRegistry({})
    topic = f"classes-{tmp_path.name[-8:]}-{SystemClock().now()}"
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=f"{topic}:light4j")
    servers, target = application.bootstrap_servers, application.target
    try:
        async with registry.serve(free_port()) as address:
            await send_tasks(class_path, servers, address, topic, target)
            worker = await application.start_worker(schema_registry=address)
            messages = await read_until(servers, [target], lambda records: len(records) >= 2)

            async def are_listed() -> bool:
                listed = await worker.get("/schedulers?host=networknt.com")
                return [(each["name"], each["frequency"]["time"]) for each in listed] == [("kept", 1), ("later", 1_000)]

            await eventually(are_listed, what="the tasks of all partitions, and no more")
    finally:
        application.close()
    framed = Framed(registry)
    starts = [check(message, framed, target) for message in messages]
    assert starts == sorted(set(starts)), "each tells when it was due"
    sent = await read_all(servers, topic)
    schemas = Schemas()
    for id, schema in registry.schemas.items():
        schemas.note(id, schema)
    dialect = dialect_named("light4j", schemas)
    commands = [record(each.key, each.value, []) for each in sent]  # of whichever partition was read first
    plain = [command for command in commands if dialect.task(command) is not None]
    others = [command for command in commands if command not in plain]
    assert len(plain) == 4
    assert [type(dialect.decode(command)) for command in others] == [ControlCommand]


def check(message: Record, framed: Framed, target: str) -> int:
    """Return the start in a message of the task `kept`: the end of the second that it was due at."""
    assert framed.read(message.key) == {"host": "networknt.com", "name": "kept"}
    told = framed.read(message.value)
    start: int = told.pop("start")
    assert start % 1_000 == 0
    assert start - 1_000 <= message.timestamp
    frequency = {"timeUnit": "SECONDS", "time": 1}
    expected = {"host": "networknt.com", "name": "kept", "action": "INSERT", "topic": target, "data": DATA}
    assert told == {**expected, "frequency": frequency}
    assert list(message.headers) == []
    return start
