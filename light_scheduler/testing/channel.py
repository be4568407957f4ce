"""A client's channel whose other end is a scheduler in memory: a command is carried out when the call returns."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterable
from typing import Any, Self, TypeVar

import msgspec

from light_scheduler.client.channel import Channel, MakeCommand, no_answer, unanswered
from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.questions import Question
from light_scheduler.client.reading import Reader
from light_scheduler.client.receipt import Receipt, Unanswered
from light_scheduler.errors import BrokerError
from light_scheduler.in_memory import MemoryBroker, MemoryScheduler
from light_scheduler.model import ReplyTo, Result
from light_scheduler.wire import correlation_id_of, decode_result

from .worker import answer_to

T = TypeVar("T", bound=msgspec.Struct)


class MemoryChannel(Channel):
    """Needs neither `start` nor `close`, and never waits."""

    def __init__(self, scheduler: MemoryScheduler) -> None:
        super().__init__({}, commands_topic=scheduler.commands_topic, results_topic=scheduler.names.results)
        self._scheduler = scheduler
        self._numbers = itertools.count(1)
        self._results_read: dict[int, int] = {}

    async def start(self) -> None:
        """There is nothing to connect to."""

    async def close(self) -> None:
        """There is nothing to disconnect from."""

    async def rest(self) -> None:
        """No results are read but those that are waited for."""

    async def send(self, command: CommandToSend, timeout: float) -> Receipt:  # noqa: ARG002 - nothing is waited for
        receipt = self._written(command)
        self._scheduler.settle()
        return receipt

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        answer = (await self.ask_many([make], timeout))[0]
        if isinstance(answer, Unanswered):
            raise no_answer(Receipt(answer.tenant, answer.id, answer.partition, answer.offset), timeout)
        return answer

    async def send_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt]:  # noqa: ARG002
        try:
            return [self._written(command) for command in commands]
        finally:
            self._scheduler.settle()

    async def ask_many(self, makers: Iterable[MakeCommand], timeout: float) -> list[Result | Unanswered]:
        asked: list[bytes] = []

        def commands() -> Iterable[CommandToSend]:
            for make in makers:
                asked.append(b"%d" % next(self._numbers))
                yield make(ReplyTo(self._results_topic, asked[-1]))

        receipts = await self.send_many(commands(), timeout)
        results = self._new_results()
        return [results.get(number) or unanswered(receipt) for number, receipt in zip(asked, receipts, strict=True)]

    async def asked(self, question: Question[T]) -> T | None:
        self._scheduler.settle()
        answer = answer_to(question, self._scheduler)
        return None if answer is None else question.read(answer)

    async def reader(self, topic: str, *, from_beginning: bool = False) -> Reader:
        return MemoryReader.over(self._scheduler.broker, topic, from_beginning=from_beginning)

    def _written(self, command: CommandToSend) -> Receipt:
        if command.topic not in (None, self.commands_topic):
            raise BrokerError(f"topic {command.topic} does not exist: {self.commands_topic} is the commands topic")
        key, value, headers = command.key, command.value, command.headers
        partition, offset = self._scheduler.send(key, value, headers, command.partition)
        return Receipt(command.tenant, command.id, partition, offset)

    def _new_results(self) -> dict[bytes, Result]:
        """Return the results that have been written since the last call, by correlation id."""
        found: dict[bytes, Result] = {}
        broker, topic = self._scheduler.broker, self._results_topic
        for partition in range(broker[topic].partitions):
            log = broker.log((topic, partition))
            for record in log[self._results_read.get(partition, 0) :]:
                if (correlation_id := correlation_id_of(record.headers)) is not None:  # else it may be a firing
                    found[correlation_id] = decode_result(record.value)
            self._results_read[partition] = len(log)
        return found


class MemoryReader(Reader):
    """Reads a topic of a broker in memory, in the order in which it was written."""

    def __init__(self, broker: MemoryBroker, topic: str, start: int) -> None:
        self._broker = broker
        self._topic = topic
        self._position = start

    @classmethod
    def over(cls, broker: MemoryBroker, topic: str, *, from_beginning: bool) -> Self:
        """Return a reader that has its position already."""
        return cls(broker, topic, 0 if from_beginning else len(broker.records))

    async def __aiter__(self) -> AsyncIterator[Any]:
        while True:
            records = self._broker.records
            while self._position < len(records):
                record = records[self._position]
                self._position += 1
                if record.topic == self._topic:
                    yield record
            await self._broker.written()

    async def close(self) -> None:
        """There is nothing to disconnect from."""
