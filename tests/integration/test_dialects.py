"""Topics of all dialects at once, on one worker: the records of other schedulers' producers in, their messages out."""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import fastavro
import pytest
from aiokafka import AIOKafkaProducer
from support.application import Application
from support.foreign import (
    LIGHT4J_CLASS_VALUE,
    LIGHT4J_KEY,
    LIGHT4J_VALUE,
    SKYUK_SCHEMA,
    etf1_headers,
    karafka_headers,
    skyuk_avro,
    skyuk_json,
    task,
    task_key,
)
from support.reading import READ_TIMEOUT_S, Record, read_all, read_until
from support.registry import FakeRegistry
from support.waiting import eventually

from light_scheduler.clock import SystemClock
from light_scheduler.host.ports import free_port
from light_scheduler.kafka.connection import started_producer, stop_producer
from light_scheduler.testing import Kafka
from light_scheduler.wire import decode_dead_letter

pytestmark = pytest.mark.integration

DAY = 86_400_000


def now() -> int:
    return SystemClock().now()


class Topics:
    """One commands topic of each dialect, named after it, with a prefix of the test's own."""

    def __init__(self, prefix: str) -> None:
        self.karafka, self.etf1, self.skyuk, self.light4j, self.native, self.json = (
            f"{prefix}-{dialect}" for dialect in ("karafka", "etf1", "skyuk", "light4j", "native", "json")
        )

    @property
    def setting(self) -> str:
        return ",".join(f"{name}:{name.rpartition('-')[2]}" for name in vars(self).values())


@pytest.fixture
async def topics(tmp_path: Path) -> Topics:
    return Topics(f"d{tmp_path.name[-8:]}-{now()}")


@pytest.fixture
async def producer(kafka: Kafka) -> Any:
    producer = await started_producer({"bootstrap_servers": kafka.bootstrap_servers})
    yield producer
    await stop_producer(producer)


@pytest.fixture
async def application(kafka: Kafka, tmp_path: Path, topics: Topics) -> Any:
    application = await Application.create(kafka.bootstrap_servers, tmp_path, commands_topics=topics.setting)
    for name in (topics.karafka, topics.etf1, topics.skyuk):
        await application.configure_topic(name, **{"cleanup.policy": "compact"})  # as their projects have them
    yield application
    application.close()


async def delivered(application: Application, count: int) -> list[Record]:
    return await read_until(application.bootstrap_servers, [application.target], lambda records: len(records) >= count)


Send = Callable[..., Awaitable[Any]]
"""(topic, key, value, headers) -> where the record is."""


async def test_topics_of_all_dialects_at_once_and_nothing_twice_after_a_kill(
    application: Application, topics: Topics, producer: AIOKafkaProducer
) -> None:
    target = application.target
    worker = await application.start_worker()
    due = (now() // 1_000 + 12) * 1_000

    async def send(topic: str, key: bytes, value: bytes | None, headers: Any = ()) -> Any:
        return await producer.send_and_wait(topic, value, key, headers=list(headers))

    in_etf1 = await send(topics.etf1, b"a", b"from etf1", etf1_headers(due, target))
    in_karafka = await send(topics.karafka, b"a", b"from karafka", karafka_headers(due, topic=target))
    await send(topics.skyuk, b"a", skyuk_json(due, b"from skyuk, JSON", topic=target))
    await send(topics.skyuk, b"b", skyuk_avro(due, b"from skyuk, Avro", topic=target))
    ticking = task(due, frequency={"timeUnit": "SECONDS", "time": 1_000}, start=due - 1_000_000, topic=target)
    await send(topics.light4j, task_key(), ticking)
    in_native = [("schedule-at", b"%d" % due), ("schedule-target-topic", target.encode())]
    await send(topics.native, b"a", b"from native", in_native)
    in_json = b'{"trigger": {"at": %d}, "target": {"topic": "%s"}, "payload": {"text": "from json"}}'
    await send(topics.json, b"a", in_json % (due, target.encode()))
    await send_what_is_not_delivered(send, topics, due, target)

    worker.kill()
    worker.start()
    await worker.ready()
    await worker.shows(lambda info: all(lane["lag"] == 0 for lane in info["lanes"]))
    records = await delivered(application, 7)
    assert all(record.timestamp >= due for record in records)
    by_value = {record.value: record for record in records}
    check_etf1(by_value[b"from etf1"], in_etf1, due, target)
    check_karafka(by_value[b"from karafka"], in_karafka, due, target)
    for value in (b"from skyuk, JSON", b"from skyuk, Avro"):
        assert (by_value[value].key, list(by_value[value].headers)) == (b"target-key", [("x", b"\xff")])
    message = by_value[task(due, frequency={"timeUnit": "SECONDS", "time": 1_000}, start=due + 1_000, topic=target)]
    assert (message.key, list(message.headers)) == (task_key(), [])
    assert {b"from native", b"from json"} <= by_value.keys()

    letters = [
        decode_dead_letter(each)
        for each in await read_all(application.bootstrap_servers, application.settings.topics.dead_letters)
    ]
    assert {(topic, letter.field) for letter, topic in letters} == {
        (topics.etf1, "scheduler-epoch"),
        (topics.karafka, "schedule_source_type"),
        (topics.skyuk, "record value"),
        (topics.light4j, "record key"),
    }
    await check_http_cancels(f"{worker.url}/api/v1/tenants/default/schedules/moved", times=3)
    assert len(await read_all(application.bootstrap_servers, target)) == 7


async def send_what_is_not_delivered(send: Send, topics: Topics, due: int, target: str) -> None:
    """Send what is moved to a later day, cancelled, or told to be over, and what cannot be understood."""
    for key, headers in ((b"moved", etf1_headers(due + DAY, target)), (b"gone", None)):
        await send(topics.etf1, key, b"never", etf1_headers(due, target))
        await send(topics.etf1, key, b"never" if headers else None, headers or [])
        await send(topics.karafka, key, b"never", karafka_headers(due, topic=target))
        kind = "schedule" if headers else "cancel"
        await send(topics.karafka, key, b"never" if headers else None, karafka_headers(due + DAY, kind, target))
        await send(topics.skyuk, key, skyuk_json(due, b"never", topic=target))
        await send(topics.skyuk, key, skyuk_json(due + DAY, b"never", topic=target) if headers else None)
    await send(topics.etf1, b"bad", b"x", etf1_headers(due, target)[1:])
    await send(topics.karafka, b"bad", b"x", karafka_headers(due, "schedul", target))
    await send(topics.skyuk, b"bad", b"neither")
    await send(topics.light4j, b"bad", None)


def check_etf1(message: Record, sent: Any, due: int, target: str) -> None:
    """A message looks like etf1's own, of a command that was sent there."""
    assert message.key == b"target-key"
    assert list(message.headers) == [
        *etf1_headers(due, target),
        ("scheduler-timestamp", b"%d" % (sent.timestamp // 1_000)),
        ("scheduler-key", b"a"),
        ("scheduler-topic", sent.topic.encode()),
    ]


def check_karafka(message: Record, sent: Any, due: int, target: str) -> None:
    """A message looks like Karafka's own, of a command that was sent there."""
    assert message.key == b"target-key"
    assert list(message.headers) == [
        *karafka_headers(due, topic=target),
        ("schedule_source_topic", sent.topic.encode()),
        ("schedule_source_partition", b"%d" % sent.partition),
        ("schedule_source_offset", b"%d" % sent.offset),
        ("schedule_source_key", b"a"),
    ]


async def check_http_cancels(url: str, times: int) -> None:
    """HTTP sees and cancels what any dialect has scheduled under an id, one after the other."""
    async with aiohttp.ClientSession() as session:
        for _ in range(times):
            async with session.delete(url) as response:
                assert response.status == 200, await response.text()
        async with session.get(url) as response:
            assert response.status == 404


@pytest.mark.soak
async def test_a_registry_that_is_down_holds_its_topic_and_nothing_else(
    application: Application, topics: Topics, producer: AIOKafkaProducer
) -> None:
    port = free_port()
    worker = await application.start_worker(schema_registry=f"http://127.0.0.1:{port}")
    target = application.target
    # A firing of the topic that will be held, known before it is.
    due = (now() // 1_000 + 8) * 1_000
    await producer.send_and_wait(topics.skyuk, skyuk_json(due, b"known before", topic=target), b"k")
    key = task_key(id=1)
    value = task(now(), id=2, frequency={"timeUnit": "SECONDS", "time": 2}, start=now(), topic=target)
    await producer.send_and_wait(topics.light4j, value, key)
    framed = skyuk_avro(1, b"by its schema", id=3, topic=target)
    sent = await producer.send_and_wait(topics.skyuk, framed, b"k")
    await producer.send_and_wait(topics.etf1, b"from etf1", b"a", headers=etf1_headers(due, target))

    records = await delivered(application, 2)
    assert {record.value for record in records} == {b"known before", b"from etf1"}

    def held(info: Any) -> dict[str, Any]:
        lanes = {(lane["topic"], lane["partition"]): lane for lane in info["lanes"]}
        lane: dict[str, Any] = lanes[topics.skyuk, sent.partition]
        return lane

    info = await worker.shows(lambda info: f"127.0.0.1:{port}" in (held(info)["reason"] or ""))
    assert held(info)["state"] == "running"

    registry = FakeRegistry({1: LIGHT4J_KEY, 2: LIGHT4J_VALUE, 3: SKYUK_SCHEMA})
    async with registry.serve(port):
        await read_until(
            application.bootstrap_servers,
            [target],
            lambda records: (
                {b"target-key", key} <= {record.key for record in records}
                and b"by its schema" in {record.value for record in records}
            ),
        )
    await worker.shows(lambda info: {lane["reason"] for lane in info["lanes"]} == {None})


@pytest.mark.soak
async def test_the_states_topic_of_karafka_tells_how_far_a_partition_is(
    application: Application, topics: Topics, producer: AIOKafkaProducer
) -> None:
    states = f"{topics.karafka}_states"
    due = now() // 1_000 * 1_000 + 3 * DAY
    sent = await producer.send_and_wait(
        topics.karafka, b"x", b"a", headers=karafka_headers(due, topic=application.target)
    )
    worker = await application.start_worker()

    def is_told(record: Record, state: str, day: str) -> bool:
        told = _state(record)
        return record.partition == sent.partition and told["state"] == state and day in told["daily"]

    async def told(state: str, day: int) -> dict[str, Any]:
        name = datetime.fromtimestamp(day / 1_000, UTC).date().isoformat()
        records = await read_until(
            application.bootstrap_servers,
            [states],
            lambda records: any(is_told(record, state, name) for record in records),
        )
        last = next(record for record in records if is_told(record, state, name))
        assert (last.key, list(last.headers)) == (b"state", [("zlib", b"true")])
        document = _state(last)
        document["that day"] = document["daily"][name]
        return document

    loaded = await told("loaded", due)
    assert loaded["that day"] == 1
    assert loaded["schema_version"] == "1.0.0"
    assert loaded["offsets"]["high"] == sent.offset
    await worker.end()
    assert (await told("stopped", now()))["that day"] == 0


def _state(record: Record) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(zlib.decompress(record.value))
    return document


async def test_a_task_that_is_sent_over_http_is_delivered_as_light_4j_does(application: Application) -> None:
    worker = await application.start_worker()
    task = {
        "host": "networknt.com",
        "name": "ticks",
        "action": "INSERT",
        "frequency": {"timeUnit": "SECONDS", "time": 1},
        "topic": application.target,
        "data": {"key1": "value1"},
    }
    async with aiohttp.ClientSession() as session:

        async def send(action: str) -> int:
            async with session.post(f"{worker.url}/schedulers", json={**task, "action": action}) as response:
                return response.status

        assert await send("INSERT") == 201
        records = await delivered(application, 2)
        assert await send("DELETE") == 201

        async def is_gone() -> bool:
            found: list[Any] = await worker.get("/schedulers?host=networknt.com")
            return not found

        await eventually(is_gone, every=0.05, what="no task")
        assert await send("UPDATE") == 404
    for record in records:
        told: Any = fastavro.schemaless_reader(BytesIO(record.value), LIGHT4J_CLASS_VALUE, None)
        assert {**told, "start": None} == {**task, "start": None}
        assert 0 <= record.timestamp - (told["start"] - 1_000) < READ_TIMEOUT_S * 1_000, "at the beginning of the unit"
        assert (record.key, list(record.headers)) == (task_key("ticks"), [])


async def test_tasks_of_light_4j_are_listed_as_its_scheduler_lists_them(
    application: Application, topics: Topics, producer: AIOKafkaProducer
) -> None:
    worker = await application.start_worker()
    frequency = {"timeUnit": "HOURS", "time": 2}
    sent = {name: task(now(), name, name=name, frequency=frequency, start=now() + DAY) for name in ("a", "b", "c")}
    for name, value in sent.items():
        await producer.send_and_wait(topics.light4j, value, task_key(name))
    await producer.send_and_wait(topics.light4j, task(now(), name="b", action="DELETE"), task_key("b"))

    async def tasks() -> list[dict[str, Any]] | None:
        async with session.get(f"{worker.url}/schedulers", params={"unit": "HOURS"}) as response:
            found: list[dict[str, Any]] = await response.json() if response.status == 200 else []
        return found if [each["name"] for each in found] == ["a", "c"] else None

    async with aiohttp.ClientSession() as session:
        listed = await eventually(tasks, every=0.05, what="tasks a and c")
    for each in listed:
        given = fastavro.schemaless_reader(BytesIO(sent[each["name"]]), LIGHT4J_VALUE, None)
        assert each == given
    assert await worker.get("/schedulers?host=networknt.com&name=c") == listed[1:]
    assert await worker.get("/schedulers?host=acme") == []
