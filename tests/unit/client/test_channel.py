"""The asyncio client's channel over a producer whose broker acknowledges what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.client import BlockingSchedulerClient, NotDelivered, Receipt, SchedulerClient, Unanswered
from light_scheduler.client.channel import Channel, ChannelTopics
from light_scheduler.client.commands import CommandToSend, schedule_command
from light_scheduler.client.errors import NotAcknowledged
from light_scheduler.errors import BrokerError, InvalidCommand
from light_scheduler.model import ReplyTo
from light_scheduler.wire import partition_for

TOPIC, PARTITIONS = "commands", 4


def command(id: str) -> CommandToSend:
    return schedule_command("default", {"id": id, "topic": "t", "after": "1h"})


def makers(ids: list[str]) -> Iterator[Callable[[ReplyTo | None], CommandToSend]]:
    return (lambda _, id=id: command(id) for id in ids)  # type: ignore[misc]


class Batch:
    """A record batch of at most `room` records."""

    def __init__(self, room: int) -> None:
        self.room = room

    def append(self, **_: Any) -> object | None:
        self.room -= 1
        return None if self.room < 0 else object()


class Producer:
    """Acknowledges, fails, or is silent about what goes to a partition; `room` is how many records a batch takes."""

    def __init__(self, *, silent: set[int] = frozenset(), failing: set[int] = frozenset(), room: int = 100) -> None:  # type: ignore[assignment]
        self.silent, self.failing, self.room = silent, failing, room
        self.sent: list[asyncio.Future[Any]] = []
        self.offsets = dict.fromkeys(range(PARTITIONS), 0)

    async def partitions_for(self, _: str) -> set[int]:
        return set(range(PARTITIONS))

    def create_batch(self) -> Batch:
        return Batch(self.room)

    async def send_batch(self, _: Batch, topic: str, *, partition: int) -> asyncio.Future[Any]:
        assert topic == TOPIC
        return self._outcome(partition)

    async def send(self, topic: str, value: Any, key: bytes, **_: Any) -> asyncio.Future[Any]:
        return self._outcome(partition_for(key, PARTITIONS))

    def _outcome(self, partition: int) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.sent.append(future)
        if partition in self.failing:
            future.set_exception(OSError("the disk is full"))
        elif partition not in self.silent:
            future.set_result(SimpleNamespace(partition=partition, offset=self.offsets[partition]))
        return future

    async def flush(self) -> None:
        """Everything has been given up or acknowledged."""

    async def stop(self) -> None:
        """There is nothing to disconnect from."""


class Silence:
    """Results of which none comes."""

    running, partition = True, 0

    def expect(self) -> Any:
        return Expected()

    async def close(self) -> None:
        """Nothing is read."""


class Expected:
    correlation_id = b"1"

    def __enter__(self) -> Any:
        self.result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        return self

    def __exit__(self, *_: object) -> None:
        self.result.cancel()


def channel_over(producer: Producer, *, close_timeout: float = 30.0) -> Channel:
    channel = Channel({}, ChannelTopics(TOPIC, "results"), close_timeout=close_timeout)
    channel._open_producer, channel._answers = producer, Silence()  # type: ignore[assignment]
    return channel


IDS = [f"id-{number}" for number in range(20)]
AT_0 = [id for id in IDS if partition_for(id.encode(), PARTITIONS) == 0]


@pytest.mark.parametrize("broker", [{"silent": {0}}, {"failing": {0}}])
async def test_one_batch_that_is_not_acknowledged_does_not_lose_the_answers_to_the_others(broker: Any) -> None:
    channel = channel_over(Producer(**broker), close_timeout=0)
    answers = await channel.ask_many(makers(IDS), 0.05)
    assert [answer.id for answer in answers] == IDS
    marked = {answer.id: answer.offset for answer in answers if isinstance(answer, Unanswered)}
    assert [id for id, offset in marked.items() if offset == -1] == AT_0
    assert set(marked) == set(IDS)


async def test_without_any_acknowledgement_asking_many_is_an_error() -> None:
    channel = channel_over(Producer(silent={0, 1, 2, 3}), close_timeout=0)
    with pytest.raises(BrokerError, match="cannot send commands to commands: the broker did not answer in time"):
        await channel.ask_many(makers(IDS), 0.05)


async def test_sending_many_raises_what_one_batch_failed_with() -> None:
    channel = channel_over(Producer(failing={0}))
    with pytest.raises(BrokerError, match="the disk is full"):
        await channel.send_many(map(command, IDS), 5)


async def test_receipts_are_in_the_order_of_the_commands() -> None:
    channel = channel_over(Producer(room=2))
    receipts = await channel.send_many(map(command, IDS), 5)
    assert [receipt.id for receipt in receipts] == IDS
    assert all(isinstance(receipt, Receipt) for receipt in receipts)


async def test_a_command_that_no_batch_can_hold_is_refused() -> None:
    with pytest.raises(InvalidCommand, match="too large"):
        await channel_over(Producer(room=0)).send_many(map(command, IDS), 5)


@pytest.mark.parametrize("many", [False, True])
async def test_closing_names_what_was_not_acknowledged(many: bool) -> None:
    channel = channel_over(Producer(silent={0, 1, 2, 3}), close_timeout=0.01)
    with pytest.raises(BrokerError, match="the broker did not answer in time"):
        await (channel.send_many([command("order-1")], 0.01) if many else channel.send(command("order-1"), 0.01))
    with pytest.raises(
        NotDelivered, match=r"1 commands were not acknowledged within 0.01 s .* default/order-1"
    ) as caught:
        await channel.close()
    assert caught.value.commands == [("default", "order-1")]
    await channel.close()


async def test_closing_waits_for_acknowledgements_that_come_after_their_time() -> None:
    producer = Producer(silent={0, 1, 2, 3})
    channel = channel_over(producer)
    with pytest.raises(BrokerError, match="did not answer in time"):
        await channel.send(command("order-1"), 0.01)
    asyncio.get_running_loop().call_soon(producer.sent[0].set_result, SimpleNamespace(partition=0, offset=0))
    await channel.close()


async def test_who_gives_up_waiting_can_learn_where_the_command_went() -> None:
    producer = Producer(silent={0, 1, 2, 3})
    channel = channel_over(producer, close_timeout=0.01)
    with pytest.raises(NotAcknowledged, match="default/order-1: the broker did not answer in time") as caught:
        await channel.send(command("order-1"), 0.01)
    producer.sent[0].set_result(SimpleNamespace(partition=3, offset=41))
    place = await caught.value.acknowledged
    assert (place.partition, place.offset) == (3, 41)
    await channel.close()


async def test_a_failure_in_the_block_is_not_hidden_by_what_was_not_acknowledged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    channel = channel_over(Producer(silent={0, 1, 2, 3}), close_timeout=0.01)
    with pytest.raises(BrokerError, match="did not answer in time"):
        async with channel:
            await channel.send(command("order-1"), 0.01)
    assert "1 commands were not acknowledged" in caplog.text


TOO_LARGE = r"payload: is too large: default/large makes a record of [12],\d{3} bytes, and max_request_bytes is 1,000"


@pytest.mark.parametrize("wait", [False, True])
async def test_of_many_requests_one_that_is_too_large_is_refused_by_its_number_before_it_is_sent(wait: bool) -> None:
    client: Any = SchedulerClient(max_request_bytes=1_000)
    client._channel._open_producer, client._channel._answers = Producer(), Silence()
    requests = [{"id": id, "payload": payload, "topic": "t"} for id, payload in (("a", b""), ("large", bytes(999)))]
    with pytest.raises(InvalidCommand, match=rf"{TOO_LARGE} \(request 2\)"):
        await client.schedule_many(requests, wait=wait)
    assert client._channel._open_producer.sent == []


async def test_a_request_that_is_too_large_is_refused_before_it_is_sent() -> None:
    with pytest.raises(InvalidCommand, match=f"{TOO_LARGE}$"):
        await SchedulerClient(max_request_bytes=1_000).schedule("large", bytes(999), topic="t", wait=False)


@pytest.mark.parametrize("make", [SchedulerClient, BlockingSchedulerClient])
@pytest.mark.parametrize("limit", [-1, 0, 999, 1_000_000_001, 1_000.0, "1000", True, None])
def test_a_limit_of_records_that_is_none_is_refused_by_its_name(make: Callable[..., Any], limit: object) -> None:
    with pytest.raises(InvalidCommand, match="must be a whole number from 1,000 to 1,000,000,000") as refused:
        make(max_request_bytes=limit)
    assert refused.value.field == "max_request_bytes"
    assert repr(limit) in refused.value.reason


@pytest.mark.parametrize(
    ("make", "option", "remedy"),
    [
        (SchedulerClient, "max_request_size", "argument max_request_bytes"),
        (SchedulerClient, "acks", "cannot be changed"),
        (BlockingSchedulerClient, "message.max.bytes", "argument max_request_bytes"),
        (BlockingSchedulerClient, "enable.idempotence", "cannot be changed"),
    ],
)
def test_an_option_that_the_client_sets_itself_is_refused(make: Callable[..., Any], option: str, remedy: str) -> None:
    with pytest.raises(InvalidCommand, match=f"kafka_options: {option} .*{remedy}"):
        make(kafka_options={option: 1})
