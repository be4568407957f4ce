"""Sends commands to a scheduler in memory and reads their results. Shared by both kinds of channels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from light_scheduler.client.channel import MakeCommand, no_answer, unanswered
from light_scheduler.client.commands import CommandToSend
from light_scheduler.client.questions import Question
from light_scheduler.client.receipt import Receipt, Unanswered
from light_scheduler.errors import BrokerError
from light_scheduler.in_memory import MemoryScheduler
from light_scheduler.model import ReplyTo, Result
from light_scheduler.wire import correlation_id_of, decode_result

from .worker import answer_to

T = TypeVar("T", bound=msgspec.Struct)


class Exchange:
    """Carries out commands at once."""

    def __init__(self, scheduler: MemoryScheduler) -> None:
        self.scheduler = scheduler
        self._results_topic = scheduler.names.results
        self._numbers = itertools.count(1)
        self._results_read: dict[int, int] = {}

    def send_many(self, commands: Iterable[CommandToSend]) -> list[Receipt]:
        """Carry out commands. Raises BrokerError for a command of another commands topic."""
        try:
            return [self._written(command) for command in commands]
        finally:
            self.scheduler.settle()

    def ask(self, make: MakeCommand, timeout: float) -> Result:
        """Carry out a command and return its result. Raises ResultTimeout if there is none."""
        (answer,) = self.ask_many([make])
        if isinstance(answer, Unanswered):
            raise no_answer(Receipt(answer.tenant, answer.id, answer.partition, answer.offset), timeout)
        return answer

    def ask_many(self, makers: Iterable[MakeCommand]) -> list[Result | Unanswered]:
        """Carry out commands and return their results."""
        asked: list[bytes] = []

        def commands() -> Iterable[CommandToSend]:
            for make in makers:
                asked.append(b"%d" % next(self._numbers))
                yield make(ReplyTo(self._results_topic, asked[-1]))

        receipts = self.send_many(commands())
        results = self._new_results()
        return [results.get(number) or unanswered(receipt) for number, receipt in zip(asked, receipts, strict=True)]

    def asked(self, question: Question[T]) -> T | None:
        """Return a worker's answer to a query over HTTP. Raises InvalidCommand."""
        self.scheduler.settle()
        answer = answer_to(question, self.scheduler)
        return None if answer is None else question.read(answer)

    def unread(self, topic: str, position: int) -> tuple[list[Any], int]:
        """Return a topic's records from a position on, and the next position. Positions count the records of all
        topics."""
        records = self.scheduler.broker.records
        return [record for record in records[position:] if record.topic == topic], len(records)

    def _written(self, command: CommandToSend) -> Receipt:
        own = self.scheduler.commands_topic
        if command.topic not in (None, own):
            raise BrokerError(f"topic {command.topic} does not exist: {own} is the commands topic")
        is_there = command.partition is None or command.partition < len(self.scheduler.tables)
        place = command.partition if is_there or not command.or_by_key else None
        partition, offset = self.scheduler.send(command.key, command.value, command.headers, place)
        return Receipt(command.tenant, command.id, partition, offset)

    def _new_results(self) -> dict[bytes, Result]:
        """Return the results written since the last call, by correlation id."""
        found: dict[bytes, Result] = {}
        broker, topic = self.scheduler.broker, self._results_topic
        for partition in range(broker[topic].partitions):
            log = broker.log((topic, partition))
            for record in log[self._results_read.get(partition, 0) :]:
                if (correlation_id := correlation_id_of(record.headers)) is not None:  # otherwise it may be a firing
                    found[correlation_id] = decode_result(record.value)
            self._results_read[partition] = len(log)
        return found
