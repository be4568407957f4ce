"""A client's channel to a scheduler in memory. A command has been carried out when the call returns."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Self, TypeVar

import msgspec

from light_scheduler.client.channel import Channel, ChannelTopics, MakeCommand
from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.questions import Question
from light_scheduler.client.reading import Reader
from light_scheduler.client.receipt import Receipt, Unanswered
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.model import Result

from .exchange import Exchange

T = TypeVar("T", bound=msgspec.Struct)


class MemoryChannel(Channel):
    """Needs neither `start` nor `close`, and never waits."""

    def __init__(self, scheduler: MemoryScheduler) -> None:
        super().__init__({}, ChannelTopics(scheduler.commands_topic, scheduler.names.results))
        self._exchange = Exchange(scheduler)

    async def start(self) -> None:
        """Does nothing: there is no connection."""

    async def close(self) -> None:
        """Does nothing: there is no connection."""

    async def rest(self) -> None:
        """Does nothing: only awaited results are read."""

    def check(self, command: CommandToSend) -> None:
        """No client's limit holds: that of the scheduler's settings does."""

    async def send(self, command: CommandToSend, timeout: float) -> Receipt:  # noqa: ARG002 - nothing is waited for
        return self._exchange.send_many([command])[0]

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        return self._exchange.ask(make, timeout)

    async def send_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt]:  # noqa: ARG002
        return self._exchange.send_many(commands)

    async def ask_many(self, makers: Iterable[MakeCommand], timeout: float) -> list[Result | Unanswered]:  # noqa: ARG002
        return self._exchange.ask_many(makers)

    async def asked(self, question: Question[T]) -> T | None:
        return self._exchange.asked(question)

    async def reader(self, topic: str, *, from_beginning: bool = False) -> Reader:
        return MemoryReader.over(self._exchange, topic, from_beginning=from_beginning)


class MemoryReader(Reader):
    """Reads a topic of a broker in memory, in the order of writing."""

    def __init__(self, exchange: Exchange, topic: str, start: int) -> None:
        self._exchange = exchange
        self._topic = topic
        self._position = start

    @classmethod
    def over(cls, exchange: Exchange, topic: str, *, from_beginning: bool) -> Self:
        """Return a reader that already has its position."""
        return cls(exchange, topic, 0 if from_beginning else len(exchange.scheduler.broker.records))

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            records, self._position = self._exchange.unread(self._topic, self._position)
            for record in records:
                yield record
            if not records:
                await self._exchange.scheduler.broker.written()

    async def close(self) -> None:
        """Does nothing: there is no connection."""
