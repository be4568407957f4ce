"""One client's connection to the scheduler: sends commands to their topic, and reads results from theirs."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from math import inf
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from light_scheduler.connection.diagnosis import fault_of
from light_scheduler.errors import BrokerError, BrokerUnreachable, ClientError
from light_scheduler.kafka.connection import MAX_REQUEST_BYTES, broker_errors, started_producer, stop_producer
from light_scheduler.model import ReplyTo, Result

from .awaited_results import Answers, Expected
from .bulk import BulkSender, Failed
from .commands import CommandToSend
from .errors import NotAcknowledged, NotDelivered, ResultTimeout
from .kafka_options import of_producer
from .questions import Question
from .reading import Reader
from .receipt import Receipt, Unanswered
from .request_size import check_size
from .unacknowledged import Unacknowledged
from .worker_api import WorkerApi, required
from .worker_threads import WorkerThreads

T = TypeVar("T", bound=msgspec.Struct)

CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 30.0

MakeCommand = Callable[[ReplyTo | None], CommandToSend]
"""Makes a command that asks for its result at a reply address, or for none."""

log = logging.getLogger(__name__)


class ChannelTopics(NamedTuple):
    """The topics of commands and of their results."""

    commands: str
    results: str


class Channel:
    """Sends commands and waits for their results. It connects in `start`.

    `options` are those of the connection, as aiokafka's clients take them. `connect_timeout` is in seconds, and so is
    `close_timeout`, how long `close` waits for acknowledgements.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        topics: ChannelTopics,
        *,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        close_timeout: float = CLOSE_TIMEOUT_S,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        api: WorkerApi | None = None,
    ) -> None:
        self.commands_topic, self._results_topic = topics
        self._options = options
        self._connect_timeout = connect_timeout
        self._close_timeout = close_timeout
        self._max_request_bytes = max_request_bytes
        self._api = None if api is None else WorkerThreads(api)
        self._open_producer: AIOKafkaProducer | None = None
        self._known_topics: set[str] = set()
        self._unacknowledged = Unacknowledged()
        self._answers: Answers | None = None
        self._answers_lock = asyncio.Lock()
        self._asking = 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        try:
            await self.close()
        except NotDelivered as error:
            if failure[0] is None:
                raise
            log.warning("%s", error)  # the exception that ended the block matters more

    async def start(self) -> None:
        """Connect. Raises BrokerError if the broker cannot be reached, InvalidCommand for an option that is bad."""
        if self._open_producer is not None:
            return
        servers = self._options["bootstrap_servers"]
        log.debug("connect to Kafka at %s", servers)
        try:
            with broker_errors(f"cannot connect to Kafka at {servers}"):
                async with asyncio.timeout(self._connect_timeout):
                    self._open_producer = await started_producer(of_producer(self._options), self._max_request_bytes)
        except BrokerError as error:
            if isinstance(error.__cause__, (KafkaConnectionError, OSError)):
                raise await fault_of(self._options) or BrokerUnreachable(servers) from error
            raise

    async def close(self) -> None:
        """Send pending commands and disconnect. Calls that still wait for an answer get a BrokerError.

        Raises NotDelivered if the broker has not acknowledged all commands in time.
        """
        answers, self._answers = self._answers, None
        producer, self._open_producer = self._open_producer, None
        if self._api is not None:
            self._api.close()
        if answers is not None:
            await answers.close()
        if producer is None:
            return
        unacknowledged, self._unacknowledged = self._unacknowledged, Unacknowledged()
        left = await unacknowledged.left_after(self._close_timeout)
        await stop_producer(producer)
        if left:
            raise NotDelivered([(command.tenant, command.id) for command in left], self._close_timeout)

    def check(self, command: CommandToSend) -> None:
        """Raise InvalidCommand for a command that is too large: to be called for each of many before they are sent."""
        check_size(command, self._max_request_bytes)

    async def send(self, command: CommandToSend, timeout: float) -> Receipt:
        """Send a command. Return once the broker has it.

        Raises BrokerError (NotAcknowledged if it may still be sent), InvalidCommand if it is too large.
        """
        return await self._send(command, self._deadline(timeout))

    async def ask(self, make: MakeCommand, timeout: float) -> Result:
        """Send a command and wait for its result. Raises as `send` does, or ResultTimeout; the command will still be
        carried out."""
        deadline = self._deadline(timeout)
        async with self._results(deadline) as answers:
            with answers.expect() as expected:
                receipt = await self._send(make(self._reply_to(answers, expected)), deadline)
                return await self._answer(expected, receipt, deadline, timeout)

    async def send_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt]:
        """Send commands in whole batches. `timeout` starts when the last one has been queued. Raises BrokerError."""
        sent = await self._sent_many(commands, timeout)
        for outcome in sent:
            if isinstance(outcome, Failed):
                raise outcome.error
        return [outcome for outcome in sent if isinstance(outcome, Receipt)]

    async def ask_many(self, makers: Iterable[MakeCommand], timeout: float) -> list[Result | Unanswered]:
        """Send commands in whole batches and wait for their results. Results that are late are `Unanswered`.

        Raises BrokerError if no command is acknowledged in time.
        """
        async with self._results() as answers:
            with ExitStack() as waiting:
                expected: list[Expected] = []

                def commands() -> Iterator[CommandToSend]:
                    for make in makers:
                        one = waiting.enter_context(answers.expect())
                        expected.append(one)
                        yield make(self._reply_to(answers, one))

                sent = await self._sent_many(commands(), timeout)
                if sent and all(isinstance(outcome, Failed) for outcome in sent):
                    raise sent[0].error  # type: ignore[union-attr]
                deadline = self._deadline(timeout)
                return [
                    await self._answer_or_none(one, deadline if isinstance(outcome, Receipt) else 0.0)
                    or unanswered(outcome)
                    for one, outcome in zip(expected, sent, strict=True)
                ]

    async def asked(self, question: Question[T]) -> T | None:
        """Query a worker over HTTP. Raises ClientError, also if the client has no worker's address."""
        return await required(self._api).asked(question)

    async def rest(self) -> None:
        """Stop reading results until one is awaited again, since a partition has results of many clients.

        Does nothing while a result is awaited.
        """
        async with self._answers_lock:
            if self._asking == 0 and self._answers is not None:
                await self._answers.close()
                self._answers = None

    async def reader(self, topic: str, *, from_beginning: bool = False) -> Reader:
        """Return a reader of a topic; its caller closes it. Raises BrokerError."""
        return await self._reader(topic, await self._partitions(topic), from_beginning=from_beginning)

    async def _reader(
        self, topic: str, partitions: set[int], deadline: float = inf, *, from_beginning: bool = False
    ) -> Reader:
        log.debug("read %s, partitions %s", topic, ",".join(map(str, sorted(partitions))))
        with broker_errors(f"cannot read {topic}"):
            async with self._connecting(deadline):
                return await Reader.open(self._options, topic, partitions, from_beginning=from_beginning)

    async def _sent_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt | Failed]:
        partitions = await self._partitions(self.commands_topic)
        sender = BulkSender(self._producer, self.commands_topic, len(partitions), self._unacknowledged)
        for command in commands:
            await sender.add(command)
        return await sender.finish(timeout)

    def _reply_to(self, answers: Answers, expected: Expected) -> ReplyTo:
        return ReplyTo(self._results_topic, expected.correlation_id, answers.partition)

    async def _send(self, command: CommandToSend, deadline: float) -> Receipt:
        self.check(command)
        topic = command.topic or self.commands_topic
        if topic not in self._known_topics:
            # Checked once, for a clear error: the producer itself would only time out, long after.
            await self._partitions(topic, deadline)
            self._known_topics.add(topic)
        if command.partition is not None and not await self._knows_partition(topic, command.partition, deadline):
            if not command.or_by_key:
                raise BrokerError(f"topic {topic} has no partition {command.partition}")
            command = command._replace(partition=None)
        doing = f"cannot send the command for {command.tenant}/{command.id}"
        acknowledged: asyncio.Future[Any] | None = None
        with broker_errors(doing):
            try:
                async with asyncio.timeout_at(deadline):
                    acknowledged = await self._producer.send(
                        topic, command.value, command.key, partition=command.partition, headers=command.headers
                    )
                    self._unacknowledged.add(acknowledged, [command])
                    record = await asyncio.shield(acknowledged)
            except TimeoutError as error:
                if acknowledged is None:
                    raise
                raise NotAcknowledged(f"{doing}: the broker did not answer in time", acknowledged) from error
        log.debug(
            "command for %s/%s sent to %s, partition %d, offset %d",
            *(command.tenant, command.id, topic, record.partition, record.offset),
        )
        return Receipt(command.tenant, command.id, record.partition, record.offset)

    async def _answer(self, expected: Expected, receipt: Receipt, deadline: float, timeout: float) -> Result:
        result = await self._answer_or_none(expected, deadline)
        if result is None:
            raise no_answer(receipt, timeout)
        return result

    async def _answer_or_none(self, expected: Expected, deadline: float) -> Result | None:
        if expected.result.done():
            return expected.result.result()  # also if the time is up
        try:
            async with asyncio.timeout_at(deadline):
                return await expected.result
        except TimeoutError:
            return None

    @asynccontextmanager
    async def _results(self, deadline: float = inf) -> AsyncIterator[Answers]:
        self._asking += 1  # before the lock, so that tasks that wait for it keep their reader
        try:
            yield await self._running_answers(deadline)
        finally:
            self._asking -= 1

    async def _running_answers(self, deadline: float) -> Answers:
        async with self._answers_lock:
            if self._answers is not None and not self._answers.running:
                await self._answers.close()
                self._answers = None
            if self._answers is None:
                # A random one: this spreads clients evenly, so that each reads only a part of all answers.
                partition = secrets.choice(sorted(await self._partitions(self._results_topic, deadline)))
                reader = await self._reader(self._results_topic, {partition}, deadline)
                if self._open_producer is None:
                    await reader.close()
                    raise BrokerError("the client was closed")
                self._answers = Answers(reader, partition)
            return self._answers

    async def _partitions(self, topic: str, deadline: float = inf) -> set[int]:
        try:
            with broker_errors(f"cannot look up topic {topic}"):
                async with self._connecting(deadline):
                    return set(await self._producer.partitions_for(topic))
        except BrokerError as error:
            if self._open_producer is None:
                raise BrokerError("the client was closed") from error
            if isinstance(error.__cause__, TimeoutError):
                raise BrokerError(
                    f"topic {topic} does not exist or cannot be looked up; `light-scheduler topics create` makes it"
                ) from error
            raise

    async def _knows_partition(self, topic: str, partition: int, deadline: float) -> bool:
        """Return whether the producer knows a partition. The topic may have got it after the producer looked it up."""
        if partition in await self._partitions(topic, deadline):
            return True
        with broker_errors(f"cannot look up topic {topic}"):
            async with self._connecting(deadline):
                await self._producer.client.force_metadata_update()
        return partition in await self._partitions(topic, deadline)

    def _connecting(self, deadline: float) -> asyncio.Timeout:
        """Limit a look-up or a new connection by the call's deadline, too."""
        return asyncio.timeout_at(min(deadline, self._deadline(self._connect_timeout)))

    @property
    def _producer(self) -> AIOKafkaProducer:
        if self._open_producer is None:
            raise ClientError("the client is not open: use `async with SchedulerClient(...) as client`")
        return self._open_producer

    def _deadline(self, timeout: float) -> float:
        return asyncio.get_running_loop().time() + timeout


def no_answer(receipt: Receipt, timeout: float) -> ResultTimeout:
    """Return the error for a command without an answer within `timeout` seconds."""
    return ResultTimeout(
        f"no answer about {receipt.tenant}/{receipt.id} within {timeout:g} s; the command is in the commands topic "
        f"(partition {receipt.partition}, offset {receipt.offset}) and will be carried out when a worker reads it",
        receipt,
    )


def unanswered(sent: Receipt | Failed) -> Unanswered:
    """Return the marker for a command without an answer in time."""
    if isinstance(sent, Failed):
        return Unanswered(sent.command.tenant, sent.command.id, partition=-1, offset=-1)
    return Unanswered(sent.tenant, sent.id, sent.partition, sent.offset)
