"""Payloads from values and back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import MetaData, create_engine, select

from light_scheduler.client import AvroSerializer, JsonSerializer, MsgspecSerializer
from light_scheduler.client.serializers import Serializer
from light_scheduler.errors import FormatError, InvalidCommand
from light_scheduler.outbox import Outbox
from light_scheduler.testing import BlockingInMemoryScheduler, InMemoryScheduler

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "item", "type": "string"}, {"name": "count", "type": "long"}],
}


class Order(msgspec.Struct):
    item: str
    count: int


ORDER = {"item": "lamp", "count": 2}
ALL = [
    (JsonSerializer(), ORDER, b'{"item":"lamp","count":2}'),
    (MsgspecSerializer(Order), Order("lamp", 2), b'{"item":"lamp","count":2}'),
    (MsgspecSerializer(Order, "msgpack"), Order("lamp", 2), b"\x82\xa4item\xa4lamp\xa5count\x02"),
    (AvroSerializer(SCHEMA), ORDER, b"\x08lamp\x04"),
    (AvroSerializer(SCHEMA, schema_id=7), ORDER, b"\x00\x00\x00\x00\x07\x08lamp\x04"),
]


@pytest.mark.parametrize(("serializer", "value", "payload"), ALL)
async def test_a_value_is_written_and_read_again(serializer: Serializer, value: Any, payload: bytes) -> None:
    scheduler = InMemoryScheduler(serializer=serializer)
    await scheduler.schedule("a", value, topic="t")
    await scheduler.send_later("b", value, "t", "0ms")
    await scheduler.schedule_many([{"id": "c", "payload": value, "topic": "t"}])
    scheduler.every("1h", name="d", payload=value, topic="t")(print)
    await scheduler.sync("g")
    await scheduler.advance(hours=1)
    assert [firing.payload for firing in scheduler.firings] == [payload] * 4
    assert serializer.deserialize(payload) == value


@pytest.mark.parametrize(("serializer", "value", "payload"), ALL)
async def test_bytes_and_tombstones_are_sent_as_they_are(serializer: Serializer, value: Any, payload: bytes) -> None:
    scheduler = InMemoryScheduler(serializer=serializer)
    await scheduler.schedule("a", b"raw", topic="t")
    await scheduler.schedule("b", None, topic="t")
    await scheduler.advance(seconds=1)
    assert [firing.payload for firing in scheduler.firings] == [b"raw", None]


@pytest.mark.parametrize("serializer", [each for each, _, _ in ALL])
@pytest.mark.parametrize(
    "payload",
    [
        *(None, b"", b"\xff\xff", b"{", b"\x00\x00\x00\x00\x07\x08l", b"\x08lamp\x04\x00"),
        *(b'{"item":"caf\xe9","count":2}', b"\x82\xa4item\xa4caf\xe9\xa5count\x02"),
    ],
)
def test_what_was_not_written_so_is_an_error(serializer: Serializer, payload: bytes | None) -> None:
    with pytest.raises(FormatError):
        serializer.deserialize(payload)


@pytest.mark.parametrize("serializer", [JsonSerializer(), AvroSerializer(SCHEMA)])
async def test_what_cannot_be_written_is_refused_before_it_is_sent(serializer: Serializer) -> None:
    with pytest.raises(InvalidCommand, match="payload: cannot be written by"):
        await InMemoryScheduler(serializer=serializer).schedule("a", {"other": object()}, topic="t")


@pytest.mark.parametrize("wait", [False, True])
async def test_the_first_of_many_that_cannot_be_written_is_named_by_its_number(wait: bool) -> None:
    requests = [{"id": f"order-{number}", "topic": "t", "payload": number} for number in range(5_002)]
    requests[5_000]["payload"] = object()
    match = r"^payload: cannot be written by JsonSerializer: .* \(request 5001\)$"
    with pytest.raises(InvalidCommand, match=match) as refused:
        await InMemoryScheduler(serializer=JsonSerializer()).schedule_many(requests, wait=wait)  # type: ignore[call-overload]
    assert isinstance(refused.value.__cause__, TypeError)
    with pytest.raises(InvalidCommand, match=match):
        BlockingInMemoryScheduler(serializer=JsonSerializer()).schedule_many(requests, wait=wait)  # type: ignore[call-overload]


async def test_without_a_serializer_a_payload_is_bytes() -> None:
    with pytest.raises(InvalidCommand, match="must be bytes or None, not dict"):
        await InMemoryScheduler().schedule("a", {}, topic="t")


def test_the_outbox_takes_a_serializer_too() -> None:
    metadata = MetaData()
    outbox = Outbox(metadata, serializer=JsonSerializer())
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    with engine.begin() as connection:
        outbox.schedule(connection, "a", ORDER, topic="t")
        assert connection.scalar(select(outbox.tables.commands.c.value)) == b'{"item":"lamp","count":2}'
    engine.dispose()


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidCommand, match="schema: is not an Avro schema"):
        AvroSerializer({"type": "record"})
