"""A blocking client's channel to a scheduler in memory, for any number of threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Condition
from typing import Any, Self, TypeVar

import msgspec

from light_scheduler.client.blocking_channel import BlockingChannel
from light_scheduler.client.blocking_reading import BlockingReader
from light_scheduler.client.channel import CLOSE_TIMEOUT_S, ChannelTopics, MakeCommand
from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.questions import Question
from light_scheduler.client.receipt import Receipt, Unanswered
from light_scheduler.connection import Connection
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.model import Result

from .exchange import Exchange

T = TypeVar("T", bound=msgspec.Struct)


class BlockingMemoryChannel(BlockingChannel):
    """Needs neither `start` nor `close`. Threads that use the scheduler hold `turn`, one at a time."""

    def __init__(self, scheduler: MemoryScheduler, connection: Connection) -> None:
        super().__init__(connection, {}, ChannelTopics(scheduler.commands_topic, scheduler.names.results))
        self._exchange = Exchange(scheduler)
        self.turn = Condition()

    def __enter__(self) -> Self:
        return self

    def start(self) -> None:
        """Does nothing: there is no connection."""

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Does nothing: there is no connection."""

    def check(self, command: CommandToSend) -> None:
        """No client's limit holds: that of the scheduler's settings does."""

    def send(self, command: CommandToSend, timeout: float) -> Receipt:
        return self.send_many([command], timeout)[0]

    def ask(self, make: MakeCommand, timeout: float) -> Result:
        with self.turn:
            self.turn.notify_all()
            return self._exchange.ask(make, timeout)

    def send_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt]:  # noqa: ARG002
        with self.turn:
            self.turn.notify_all()
            return self._exchange.send_many(commands)

    def ask_many(self, makers: Iterable[MakeCommand], timeout: float) -> list[Result | Unanswered]:  # noqa: ARG002
        with self.turn:
            self.turn.notify_all()
            return self._exchange.ask_many(makers)

    def asked(self, question: Question[T]) -> T | None:
        with self.turn:
            self.turn.notify_all()
            return self._exchange.asked(question)

    def reader(self, topic: str, *, from_beginning: bool = False) -> BlockingReader:
        with self.turn:
            start = 0 if from_beginning else len(self._exchange.scheduler.broker.records)
        return BlockingMemoryReader(self._exchange, self.turn, topic, start)


class BlockingMemoryReader(BlockingReader):
    """Reads a topic of a broker in memory, in the order of writing."""

    def __init__(self, exchange: Exchange, turn: Condition, topic: str, start: int) -> None:
        self._exchange = exchange
        self._turn = turn
        self._topic = topic
        self._position = start
        self._is_stopped = False

    def __iter__(self) -> Iterator[Any]:
        while True:
            with self._turn:
                if self._is_stopped:
                    return
                records, self._position = self._exchange.unread(self._topic, self._position)
                if not records:
                    self._turn.wait()
            yield from records

    def stop(self) -> None:
        """Ask the iteration to end soon."""
        with self._turn:
            self._is_stopped = True
            self._turn.notify_all()

    def close(self) -> None:
        """Does nothing: there is no connection."""
