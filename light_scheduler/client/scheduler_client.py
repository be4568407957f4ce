"""SchedulerClient: the scheduler from asyncio code."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any, Literal, Self, Unpack, overload

from aiokafka import AIOKafkaProducer

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.errors import BrokerError, ClientError, CommandRefused, FormatError, ResultTimeout
from light_scheduler.model import DEFAULT_TENANT, EventType, HistoryEvent, Outcome, ReplyTo, Result, TopicNames
from light_scheduler.wire import decode_history, time_ordered_id
from light_scheduler.wire.ids import FREE_BITS

from .answers import Answers, Expected
from .bulk import BulkSender
from .commands import CommandToSend, ScheduleOptions, ScheduleRequest, cancel_command, schedule_command
from .connection import bootstrap_of, broker_errors, started_producer, stop_producer
from .reading import Reader
from .receipt import Receipt

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 30.0
"""Seconds that a call waits, for the broker's acknowledgement and the scheduler's answer together."""

_REFUSALS = (Outcome.REJECTED, Outcome.CONFLICT)


class SchedulerClient:
    """Schedules messages and cancels them, with or without waiting for the scheduler's answer.

        async with SchedulerClient("127.0.0.1:9092") as client:
            await client.schedule("order-1", b"pay!", topic="reminders", after="15m")
            await client.cancel("order-1")

    A command counts from the moment the broker has acknowledged it, worker or no worker; `wait=False` returns then.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] = "127.0.0.1:9092",
        *,
        app_id: str = "light-scheduler",
        tenant: str = DEFAULT_TENANT,
        commands_topic: str | None = None,
        connect_timeout: float = 10.0,
        kafka_options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare a client; nothing is connected before `start` or `async with`.

        `connect_timeout` is in seconds. `kafka_options` go to every aiokafka client: security and the like.
        """
        names = TopicNames(app_id)
        self.tenant = tenant
        self.commands_topic = commands_topic or names.commands
        self._results_topic = names.results
        self._history_topic = names.history
        self._options = {"bootstrap_servers": bootstrap_of(bootstrap_servers), **(kafka_options or {})}
        self._connect_timeout = connect_timeout
        self._clock = clock or SystemClock()
        self._open_producer: AIOKafkaProducer | None = None
        self._commands_topic_exists = False
        self._answers: Answers | None = None
        self._answers_lock = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect. Raises BrokerError if the broker cannot be reached."""
        if self._open_producer is not None:
            return
        with broker_errors(f"cannot reach Kafka at {self._options['bootstrap_servers']}"):
            async with asyncio.timeout(self._connect_timeout):
                self._open_producer = await started_producer(self._options)

    async def close(self) -> None:
        """Send what is pending and disconnect. Calls that still wait for an answer get a BrokerError."""
        answers, self._answers = self._answers, None
        producer, self._open_producer = self._open_producer, None
        if answers is not None:
            await answers.close()
        if producer is not None:
            await stop_producer(producer)

    @overload
    async def schedule(
        self,
        id: str | None = None,
        payload: bytes | None = b"",
        *,
        wait: Literal[True] = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
        **request: Unpack[ScheduleOptions],
    ) -> Result: ...

    @overload
    async def schedule(
        self,
        id: str | None = None,
        payload: bytes | None = b"",
        *,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
        **request: Unpack[ScheduleOptions],
    ) -> Receipt: ...

    async def schedule(
        self,
        id: str | None = None,
        payload: bytes | None = b"",
        *,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
        **request: Unpack[ScheduleOptions],
    ) -> Result | Receipt:
        """Schedule a message; see `ScheduleOptions` for what can be asked.

        `id` defaults to the key, and to a new time-ordered id if there is no key either. With `wait` returns the
        scheduler's result, without it a receipt. `timeout` is in seconds.

        Raises InvalidCommand before anything is sent, naming the header at fault; BrokerError if the broker does not
        acknowledge; ResultTimeout if no answer comes in time (the command stands); CommandRefused if the answer is
        `rejected` or `conflict`, unless `raise_on_refusal` is False.
        """
        whole: ScheduleRequest = {**request, "id": id, "payload": payload}
        generated_id = self._new_id()

        def make(reply_to: ReplyTo | None) -> CommandToSend:
            return schedule_command(self.tenant, whole, generated_id=generated_id, reply_to=reply_to)

        return await self._carry_out(make, wait, timeout, raise_on_refusal)

    @overload
    async def cancel(
        self,
        id: str,
        *,
        key: str | bytes | None = None,
        expected_version: int | None = None,
        wait: Literal[True] = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
    ) -> Result: ...

    @overload
    async def cancel(
        self,
        id: str,
        *,
        key: str | bytes | None = None,
        expected_version: int | None = None,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Receipt: ...

    async def cancel(
        self,
        id: str,
        *,
        key: str | bytes | None = None,
        expected_version: int | None = None,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
    ) -> Result | Receipt:
        """Cancel a schedule. `key` must be the one it was scheduled with; default: the id.

        The result's outcome is `cancelled` or `not_found`. Raises as `schedule` does.
        """

        def make(reply_to: ReplyTo | None) -> CommandToSend:
            return cancel_command(self.tenant, id, key=key, expected_version=expected_version, reply_to=reply_to)

        return await self._carry_out(make, wait, timeout, raise_on_refusal)

    async def send_later(
        self, key: str | bytes, value: bytes | None, topic: str, when: datetime | timedelta | int
    ) -> Receipt:
        """Deliver a record to a topic at an instant (aware datetime or UTC epoch ms), or a timedelta from now.

        Returns once the broker has the command. The receipt's id, with the same key, cancels it.
        """
        request: ScheduleRequest = {"id": self._new_id(), "payload": value, "topic": topic, "key": key}
        if isinstance(when, timedelta):
            request["after"] = when
        else:
            request["at"] = when
        return await self._send(schedule_command(self.tenant, request), self._deadline(DEFAULT_TIMEOUT))

    @overload
    async def schedule_many(
        self, requests: Iterable[ScheduleRequest], *, wait: Literal[False] = False, timeout: float = DEFAULT_TIMEOUT
    ) -> list[Receipt]: ...

    @overload
    async def schedule_many(
        self, requests: Iterable[ScheduleRequest], *, wait: Literal[True], timeout: float = DEFAULT_TIMEOUT
    ) -> list[Result]: ...

    async def schedule_many(
        self, requests: Iterable[ScheduleRequest], *, wait: bool = False, timeout: float = DEFAULT_TIMEOUT
    ) -> list[Receipt] | list[Result]:
        """Schedule many messages in whole batches; returns receipts or results in the order of the requests.

        `timeout`, in seconds, begins when the last request has been taken. Refusals are in the results and raise
        nothing. Raises InvalidCommand at the first request that is wrong, BrokerError and ResultTimeout; requests
        before the one at fault may have been sent by then, and sending those with an id again does no harm.
        """
        if not wait:
            return await self._send_many(
                (schedule_command(self.tenant, request, generated_id=self._new_id()) for request in requests), timeout
            )
        answers = await self._running_answers()
        with ExitStack() as waiting:
            expected: list[Expected] = []

            def commands() -> Iterator[CommandToSend]:
                for request in requests:
                    one = waiting.enter_context(answers.expect())
                    expected.append(one)
                    reply_to = ReplyTo(self._results_topic, one.correlation_id)
                    yield schedule_command(self.tenant, request, generated_id=self._new_id(), reply_to=reply_to)

            receipts = await self._send_many(commands(), timeout)
            deadline = self._deadline(timeout)
            return [
                await self._answer(one, f"{receipt.tenant}/{receipt.id}", deadline, timeout)
                for one, receipt in zip(expected, receipts, strict=True)
            ]

    async def watch(
        self,
        *,
        tenant: str | None = None,
        id_prefix: str = "",
        events: Collection[EventType] = (),
        from_beginning: bool = False,
    ) -> AsyncGenerator[HistoryEvent, None]:
        """Follow what happens to schedules, live and without end, or from the first event that the history still has.

        All tenants, ids and events by default; a record that is no event is logged and passed over. Raises BrokerError.
        """
        with broker_errors(f"cannot read {self._history_topic}"):
            reader = await self._reader(self._history_topic, from_beginning=from_beginning)
            try:
                async for record in reader:
                    try:
                        event = decode_history(record.value)
                    except FormatError as error:
                        log.warning("%s-%d at offset %d: %s", record.topic, record.partition, record.offset, error)
                        continue
                    if (
                        (tenant is None or event.tenant == tenant)
                        and (event.id or "").startswith(id_prefix)
                        and (not events or event.event in events)
                    ):
                        yield event
            finally:
                await reader.close()

    async def _carry_out(
        self, make: Callable[[ReplyTo | None], CommandToSend], wait: bool, timeout: float, raise_on_refusal: bool
    ) -> Result | Receipt:
        deadline = self._deadline(timeout)
        if not wait:
            return await self._send(make(None), deadline)
        answers = await self._running_answers()
        with answers.expect() as expected:
            command = make(ReplyTo(self._results_topic, expected.correlation_id))
            await self._send(command, deadline)
            result = await self._answer(expected, f"{command.tenant}/{command.id}", deadline, timeout)
        if raise_on_refusal and result.outcome in _REFUSALS:
            raise CommandRefused(result)
        return result

    async def _send(self, command: CommandToSend, deadline: float) -> Receipt:
        if not self._commands_topic_exists:
            # Asked once, for its clear error: the producer's own is a time-out long after.
            await self._partitions(self.commands_topic)
            self._commands_topic_exists = True
        with broker_errors(f"cannot send the command for {command.tenant}/{command.id}"):
            async with asyncio.timeout_at(deadline):
                acknowledged = await self._producer.send(
                    self.commands_topic, command.value, command.key, headers=command.headers
                )
                record = await acknowledged
        return Receipt(command.tenant, command.id, record.partition, record.offset)

    async def _send_many(self, commands: Iterable[CommandToSend], timeout: float) -> list[Receipt]:
        partitions = await self._partitions(self.commands_topic)
        sender = BulkSender(self._producer, self.commands_topic, len(partitions))
        try:
            for command in commands:
                await sender.add(command)
            with broker_errors(f"cannot send commands to {self.commands_topic}"):
                async with asyncio.timeout(timeout):
                    return await sender.finish()
        except BaseException:
            sender.abandon()
            raise

    async def _answer(self, expected: Expected, identity: str, deadline: float, timeout: float) -> Result:
        try:
            async with asyncio.timeout_at(deadline):
                return await expected.result
        except TimeoutError:
            raise ResultTimeout(
                f"no answer about {identity} within {timeout:g} s; the command is in {self.commands_topic} and will be "
                "carried out when a worker reads it"
            ) from None

    async def _running_answers(self) -> Answers:
        async with self._answers_lock:
            if self._answers is not None and not self._answers.running:
                await self._answers.close()
                self._answers = None
            if self._answers is None:
                reader = await self._reader(self._results_topic)
                if self._open_producer is None:
                    await reader.close()
                    raise BrokerError("the client was closed")
                self._answers = Answers(reader)
            return self._answers

    async def _reader(self, topic: str, *, from_beginning: bool = False) -> Reader:
        partitions = await self._partitions(topic)
        with broker_errors(f"cannot read {topic}"):
            async with asyncio.timeout(self._connect_timeout):
                return await Reader.open(self._options, topic, partitions, from_beginning=from_beginning)

    async def _partitions(self, topic: str) -> set[int]:
        try:
            with broker_errors(f"cannot look up topic {topic}"):
                async with asyncio.timeout(self._connect_timeout):
                    return set(await self._producer.partitions_for(topic))
        except BrokerError as error:
            if self._open_producer is None:
                raise BrokerError("the client was closed") from error
            if isinstance(error.__cause__, TimeoutError):
                raise BrokerError(
                    f"topic {topic} does not exist or cannot be looked up; `light-scheduler topics create` makes it"
                ) from error
            raise

    @property
    def _producer(self) -> AIOKafkaProducer:
        if self._open_producer is None:
            raise ClientError("the client is not open: use `async with SchedulerClient(...) as client`")
        return self._open_producer

    def _new_id(self) -> str:
        return time_ordered_id(self._clock.now(), secrets.randbits(FREE_BITS))

    def _deadline(self, timeout: float) -> float:
        return asyncio.get_running_loop().time() + timeout
