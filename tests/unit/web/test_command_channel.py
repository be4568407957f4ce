"""What a worker's own way to the commands topic refuses before it connects."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from light_scheduler.client.channel import ChannelTopics
from light_scheduler.errors import BrokerError
from light_scheduler.settings import Settings, load_settings
from light_scheduler.web.commands import channel as command_channel
from light_scheduler.web.commands.channel import CommandChannel, largest_body
from light_scheduler.web.commands.errors import TooManyWaitingError


def make(reply_to: Any) -> Any:
    raise AssertionError("nothing is sent")


async def test_no_more_wait_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_channel, "MOST_WAITING", 0)
    with pytest.raises(TooManyWaitingError):
        await CommandChannel(Settings()).ask(make, 1)
    with pytest.raises(TooManyWaitingError):
        await CommandChannel(Settings()).send(make, 1)


def anything(reply_to: Any) -> Any:
    return reply_to


async def test_sends_that_the_broker_has_not_taken_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_channel, "MOST_WAITING", 4)
    taken = asyncio.Event()

    class SlowChannel(QuietChannel):
        async def send(self, command: Any, timeout: float) -> Any:
            await taken.wait()
            return self

    monkeypatch.setattr(command_channel, "Channel", SlowChannel)
    channel = CommandChannel(Settings())
    sends = [asyncio.create_task(channel.send(anything, 1)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(TooManyWaitingError):
        await channel.send(make, 1)
    taken.set()
    await asyncio.gather(*sends)
    await channel.send(anything, 1)
    await channel.close()


async def test_a_place_has_room_for_all_that_is_sent_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_channel, "MOST_WAITING", 2)

    sent = list[Any]()

    class CollectingChannel(QuietChannel):
        async def send(self, command: Any, timeout: float) -> Any:
            sent.append(command)

    monkeypatch.setattr(command_channel, "Channel", CollectingChannel)
    channel = CommandChannel(Settings())
    with channel.place() as sender:
        for _ in range(2):
            await sender.send(anything, 1)
        with pytest.raises(TooManyWaitingError):
            await channel.send(anything, 1)
        with pytest.raises(TooManyWaitingError), channel.place():
            pass
    await channel.send(anything, 1)
    assert len(sent) == 3
    await channel.close()


@pytest.mark.parametrize(
    ("given", "topic"),
    [
        ("a:etf1,b:json,c", "c"),
        ("a:etf1,b:json", "b"),
        ("a:etf1,b", "b"),
        ("a:karafka,b:etf1", "a"),
        ("", "light-scheduler-commands"),
    ],
)
async def test_new_commands_go_to_a_topic_of_the_scheduler_s_own_dialects_if_there_is_one(
    given: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class NamedChannel(QuietChannel):
        def __init__(self, options: Any, topics: ChannelTopics, **others: Any) -> None:
            super().__init__()
            opened.append(topics.commands)

        async def send(self, *asked: Any) -> None:
            return None

    monkeypatch.setattr(command_channel, "Channel", NamedChannel)
    channel = CommandChannel(load_settings({"commands_topics": given}, environment={}))
    await channel.send(lambda _: cast(Any, None), 1)
    await channel.close()
    assert opened == [topic]


async def test_a_broker_that_is_not_there_is_an_error_in_time(unused_tcp_port: int) -> None:
    settings = load_settings({"broker": f"kafka://127.0.0.1:{unused_tcp_port}"}, environment={})
    channel = CommandChannel(settings)
    with pytest.raises(BrokerError, match=r"no connection to Kafka within 0\.2 s|cannot reach Kafka"):
        await channel.send(make, 0.2)
    await channel.close()


def test_the_largest_payload_fits_as_base64() -> None:
    assert largest_body(Settings(max_payload_bytes=3_000_000)) > 4_000_000


class QuietChannel:
    """A channel that answers at once; `rests` is set when it is told to rest."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.rests = asyncio.Event()

    async def __aenter__(self) -> QuietChannel:
        return self

    async def __aexit__(self, *failure: object) -> None:
        pass

    async def ask(self, make: Any, timeout: float) -> Any:
        return self

    async def rest(self) -> None:
        self.rests.set()


async def test_results_are_read_no_longer_when_nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_channel, "Channel", QuietChannel)
    monkeypatch.setattr(command_channel, "REST_AFTER_S", 0.01)
    commands = CommandChannel(Settings())
    for _ in range(2):
        channel: Any = await commands.ask(make, 1)
        async with asyncio.timeout(60):
            await channel.rests.wait()
        channel.rests.clear()
        await asyncio.sleep(0)
    await commands.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
