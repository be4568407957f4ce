"""One client's connection to the scheduler, for any number of threads: the blocking counterpart of `Channel`."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from functools import cached_property
from threading import Lock
from typing import Any, Self, TypeVar

import msgspec
from confluent_kafka import KafkaException

from light_scheduler.connection import Connection
from light_scheduler.connection.renewed_files import Renewed
from light_scheduler.errors import BrokerError, ClientError
from light_scheduler.kafka.connection import MAX_REQUEST_BYTES
from light_scheduler.model import Result

from .blocking_answers import BlockingAnswers
from .blocking_producer import BlockingProducer
from .blocking_reading import BlockingReader
from .bulk import Failed
from .channel import CLOSE_TIMEOUT_S, CONNECT_TIMEOUT_S, ChannelTopics, MakeCommand, no_answer, unanswered
from .commands import CommandToSend
from .deadline import Deadline
from .errors import NotDelivered
from .librdkafka_errors import MISSING, NO_ANSWER, failure, option_errors, unreachable
from .questions import Question
from .receipt import Receipt, Unanswered
from .request_size import check_size
from .worker_api import WorkerApi, required

log = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)


class BlockingChannel:
    """Sends commands and waits for their results. It connects in `start`.

    `kafka_options` are librdkafka's, in addition to those of the connection. `connect_timeout` is in seconds.
    """

    def __init__(
        self,
        connection: Connection,
        kafka_options: Mapping[str, Any],
        topics: ChannelTopics,
        *,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        api: WorkerApi | None = None,
    ) -> None:
        self.commands_topic, self._results_topic = topics
        self._connection = connection
        self._kafka_options = kafka_options
        self._connect_timeout = connect_timeout
        self._max_request_bytes = max_request_bytes
        self._api = api
        self._open_producer: BlockingProducer | None = None
        self._opened_by: int | None = None
        """The id of the process that opened the channel."""
        self._known_topics: dict[str, int] = {}
        self._answers: BlockingAnswers | None = None
        self._lock = Lock()
        self._answers_lock = Lock()

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Connect. Raises BrokerError if the broker cannot be reached, InvalidCommand for an option that is bad."""
        self._refuse_copy()
        with self._lock:
            if self._open_producer is not None:
                return
            with option_errors(self._kafka_options):
                producer = BlockingProducer(self._options, self._max_request_bytes)
            try:
                producer.client.list_topics(self.commands_topic, timeout=self._connect_timeout)
            except BaseException as error:
                producer.close(0)
                if isinstance(error, KafkaException) and error.args[0].code() in NO_ANSWER:
                    raise unreachable(self._connection, self._connect_timeout) from error
                if isinstance(error, KafkaException):
                    raise failure(f"cannot connect to Kafka at {self._connection}", error.args[0]) from error
                raise
            self._open_producer, self._opened_by = producer, os.getpid()

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        """Send pending commands and disconnect. Calls that still wait for an answer get a BrokerError.

        Does nothing in a forked process, where the client's threads do not run. Raises NotDelivered if the broker has
        not acknowledged all commands within `timeout` seconds.
        """
        if self._is_copy:
            return
        with self._lock:
            producer, self._open_producer = self._open_producer, None
        if producer is None:
            return
        left = producer.close(timeout)
        with self._answers_lock:
            answers, self._answers = self._answers, None
        if answers is not None:
            answers.close()
        if left:
            raise NotDelivered([(command.tenant, command.id) for command in left], timeout)

    def __exit__(self, *failure: object) -> None:
        try:
            self.close()
        except NotDelivered as error:
            if failure[0] is None:
                raise
            log.warning("%s", error)  # the exception that ended the block matters more

    def check(self, command: CommandToSend) -> None:
        """Raise InvalidCommand for a command that is too large: to be called for each of many before they are sent."""
        check_size(command, self._max_request_bytes)

    def send(self, command: CommandToSend, timeout: float) -> Receipt:
        """Send a command; return once the broker has it. Raises BrokerError, InvalidCommand if it is too large."""
        self.check(command)
        deadline = Deadline(timeout)
        return _receipt(command, self._sent(command, deadline), deadline)

    def ask(self, make: MakeCommand, timeout: float) -> Result:
        """Send a command and wait for its result. Raises as `send` does, or ResultTimeout; the command will still be
        carried out."""
        deadline = Deadline(timeout)
        with self._running_answers(deadline).expected() as (reply_to, result):
            command = make(reply_to)
            self.check(command)
            receipt = _receipt(command, self._sent(command, deadline), deadline)
            answer = _result(result, deadline)
        if answer is None:
            raise no_answer(receipt, timeout)
        return answer

    def send_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt]:
        """Send commands in whole batches. `timeout` starts when the last one has been queued."""
        sent = [(command, self._sent(command, Deadline(timeout))) for command in commands]
        deadline = Deadline(timeout)
        return [_receipt(command, receipt, deadline) for command, receipt in sent]

    def ask_many(self, makers: Iterable[MakeCommand], timeout: float) -> list[Result | Unanswered]:
        """Send commands in whole batches and wait for their results. Results that are late are `Unanswered`.

        Raises BrokerError if no command is acknowledged in time.
        """
        answers = self._running_answers()
        with ExitStack() as waiting:
            results: list[Future[Result]] = []

            def commands() -> Iterator[CommandToSend]:
                for make in makers:
                    reply_to, result = waiting.enter_context(answers.expected())
                    results.append(result)
                    yield make(reply_to)

            queued = [(command, self._sent(command, Deadline(timeout))) for command in commands()]
            deadline = Deadline(timeout)
            sent = [_receipt_or_failure(command, receipt, deadline) for command, receipt in queued]
            if sent and all(isinstance(outcome, Failed) for outcome in sent):
                raise sent[0].error  # type: ignore[union-attr]
            deadline = Deadline(timeout)
            return [
                _result(result, deadline if isinstance(outcome, Receipt) else Deadline(0)) or unanswered(outcome)
                for result, outcome in zip(results, sent, strict=True)
            ]

    def asked(self, question: Question[T]) -> T | None:
        """Query a worker over HTTP. Raises ClientError, also if the client has no worker's address."""
        return required(self._api).asked(question)

    def reader(self, topic: str, *, from_beginning: bool = False) -> BlockingReader:
        """Return a reader of a topic; its caller closes it. Raises BrokerError."""
        return self._reader(topic, range(self._partitions(topic)), from_beginning=from_beginning)

    def _reader(
        self,
        topic: str,
        partitions: Iterable[int],
        deadline: Deadline | None = None,
        *,
        from_beginning: bool = False,
    ) -> BlockingReader:
        with option_errors(self._kafka_options):
            return BlockingReader.open(
                self._options, topic, partitions, self._connecting(deadline), from_beginning=from_beginning
            )

    def _sent(self, command: CommandToSend, deadline: Deadline) -> Future[Receipt]:
        topic = command.topic or self.commands_topic
        if topic not in self._known_topics:
            # Checked once, for a clear error: the producer itself would only time out, long after.
            self._known_topics[topic] = self._partitions(topic, deadline)
        if command.partition is not None and command.partition >= self._known_topics[topic]:
            self._known_topics[topic] = partitions = self._partitions(topic, deadline)
            if command.partition >= partitions:
                if not command.or_by_key:
                    raise BrokerError(f"topic {topic} has no partition {command.partition}")
                command = command._replace(partition=None)
        return self._producer.send(topic, command, deadline)

    def _running_answers(self, deadline: Deadline | None = None) -> BlockingAnswers:
        self._refuse_copy()
        with self._answers_lock:
            if self._answers is None or not self._answers.running:
                # A random one: this spreads clients evenly, so that each reads only a part of all answers.
                partition = secrets.randbelow(self._partitions(self._results_topic, deadline))
                reader = self._reader(self._results_topic, [partition], deadline)
                self._answers = BlockingAnswers(reader, self._results_topic, partition)
            return self._answers

    def _partitions(self, topic: str, deadline: Deadline | None = None) -> int:
        """Return the number of partitions of a topic. Raises BrokerError if it does not exist."""
        doing = f"cannot look up topic {topic}"
        try:
            found = self._producer.client.list_topics(topic, timeout=self._connecting(deadline)).topics[topic]
        except KafkaException as error:
            raise failure(doing, error.args[0]) from error
        if found.error is not None and found.error.code() not in MISSING:
            raise failure(doing, found.error)
        if not found.partitions:
            raise BrokerError(
                f"topic {topic} does not exist or cannot be looked up; `light-scheduler topics create` makes it"
            )
        return len(found.partitions)

    def _connecting(self, deadline: Deadline | None) -> float:
        """Return how long a look-up or a new connection may take, seconds: the call's time limits it, too."""
        return self._connect_timeout if deadline is None else min(deadline.left, self._connect_timeout)

    @cached_property
    def _options(self) -> Renewed[Mapping[str, Any]]:
        """The configuration of the clients. Raises ConfigurationError naming the invalid setting."""
        return self._connection.renewed_librdkafka(self._kafka_options)

    @property
    def _is_copy(self) -> bool:
        """Whether this process was forked from the one that opened the client."""
        return self._opened_by not in (None, os.getpid())

    def _refuse_copy(self) -> None:
        """Raise ClientError in a forked process. Call it before taking a lock, which may have been held during the
        fork."""
        if self._is_copy:
            raise ClientError(
                "the client was opened before this process was forked: create another one in this process"
            )

    @property
    def _producer(self) -> BlockingProducer:
        self._refuse_copy()
        producer = self._open_producer
        if producer is None and self._opened_by is not None:
            raise ClientError("the client was closed")
        if producer is None:
            raise ClientError("the client is not open: use `with BlockingSchedulerClient(...) as client`")
        return producer


def _receipt(command: CommandToSend, sent: Future[Receipt], deadline: Deadline) -> Receipt:
    try:
        return sent.result(deadline.left)
    except TimeoutError:
        raise BrokerError(
            f"cannot send the command for {command.tenant}/{command.id}: the broker did not answer in time"
        ) from None


def _receipt_or_failure(command: CommandToSend, sent: Future[Receipt], deadline: Deadline) -> Receipt | Failed:
    try:
        return _receipt(command, sent, deadline)
    except BrokerError as error:
        return Failed(command, error)


def _result(awaited: Future[Result], deadline: Deadline) -> Result | None:
    try:
        return awaited.result(deadline.left)
    except TimeoutError:
        return None
