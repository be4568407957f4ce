"""SchedulerClient: the scheduler from asyncio code."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, Self, Unpack, overload

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.connection import Connection, KafkaSecurity
from light_scheduler.connection.security import PLAINTEXT
from light_scheduler.errors import FormatError
from light_scheduler.kafka.connection import broker_errors, connection_of
from light_scheduler.model import (
    DEFAULT_TENANT,
    ControlName,
    EventType,
    Firing,
    HistoryEvent,
    Outcome,
    ReplyTo,
    Result,
    TopicNames,
)
from light_scheduler.wire import decode_history

from .channel import CONNECT_TIMEOUT_S, Channel, MakeCommand
from .commands import (
    CommandToSend,
    complete_command,
    control_command,
    control_many_command,
    new_id,
    refuse_unknown,
    reschedule_command,
    reschedule_many_command,
    schedule_command,
)
from .errors import CommandRefused
from .options import (
    CommandOptions,
    Id,
    Key,
    ManyOptions,
    RescheduleManyOptions,
    ScheduleOptions,
    ScheduleRequest,
    TimeRule,
)
from .receipt import Receipt

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 30.0
"""Seconds that a call waits, for the broker's acknowledgement and the scheduler's answer together."""

_REFUSALS = (Outcome.REJECTED, Outcome.CONFLICT)


class SchedulerClient:
    """Schedules messages and controls their schedules, with or without waiting for the scheduler's answer.

        async with SchedulerClient("127.0.0.1:9092") as client:
            await client.schedule("order-1", b"pay!", topic="reminders", after="15m")
            await client.cancel("order-1")

    A command counts from the moment the broker has acknowledged it, worker or no worker; `wait=False` returns then.

    Every call that sends a command raises InvalidCommand before anything is sent, naming the header at fault;
    BrokerError if the broker does not acknowledge; ResultTimeout if no answer comes in time (the command stands);
    CommandRefused if the answer is `rejected` or `conflict`, unless `raise_on_refusal` is False.
    """

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str] | Connection = "127.0.0.1:9092",
        *,
        app_id: str = "light-scheduler",
        tenant: str = DEFAULT_TENANT,
        commands_topic: str | None = None,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        security: KafkaSecurity = PLAINTEXT,
        kafka_options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Prepare a client; nothing is connected before `start` or `async with`.

        `connect_timeout` is in seconds. `security` says how to log in; `load_settings().connection` in place of an
        address brings that with it. `kafka_options` go to every aiokafka client.
        """
        names = TopicNames(app_id)
        self.tenant = tenant
        self.commands_topic = commands_topic or names.commands
        self._history_topic = names.history
        self._clock = clock or SystemClock()
        self._channel = Channel(
            {**connection_of(bootstrap_servers, security).aiokafka(), **(kafka_options or {})},
            commands_topic=self.commands_topic,
            results_topic=names.results,
            connect_timeout=connect_timeout,
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect. Raises BrokerError if the broker cannot be reached."""
        await self._channel.start()

    async def close(self) -> None:
        """Send what is pending and disconnect. Calls that still wait for an answer get a BrokerError."""
        await self._channel.close()

    @overload
    async def schedule(
        self,
        id: Id = None,
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
        id: Id = None,
        payload: bytes | None = b"",
        *,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
        **request: Unpack[ScheduleOptions],
    ) -> Receipt: ...

    async def schedule(
        self,
        id: Id = None,
        payload: bytes | None = b"",
        *,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
        **request: Unpack[ScheduleOptions],
    ) -> Result | Receipt:
        """Schedule a message, once or as a series; see `ScheduleOptions` for what can be asked.

        `id` defaults to the key, and to a new time-ordered id if there is no key either. With `wait` returns the
        scheduler's result, without it a receipt. `timeout` is in seconds.
        """
        whole: ScheduleRequest = {**request, "id": id, "payload": payload}
        generated_id = new_id(self._clock)
        return await self._carry_out(
            lambda reply_to: schedule_command(self.tenant, whole, generated_id=generated_id, reply_to=reply_to),
            wait,
            {"timeout": timeout, "raise_on_refusal": raise_on_refusal},
        )

    @overload
    async def cancel(self, id: str, *, wait: Literal[True] = True, **options: Unpack[CommandOptions]) -> Result: ...

    @overload
    async def cancel(self, id: str, *, wait: Literal[False], **options: Unpack[CommandOptions]) -> Receipt: ...

    async def cancel(self, id: str, *, wait: bool = True, **options: Unpack[CommandOptions]) -> Result | Receipt:
        """Cancel a schedule; see `CommandOptions`. The result's outcome is `cancelled` or `not_found`."""
        return await self._control("cancel", id, wait, options)

    @overload
    async def pause(self, id: str, *, wait: Literal[True] = True, **options: Unpack[CommandOptions]) -> Result: ...

    @overload
    async def pause(self, id: str, *, wait: Literal[False], **options: Unpack[CommandOptions]) -> Receipt: ...

    async def pause(self, id: str, *, wait: bool = True, **options: Unpack[CommandOptions]) -> Result | Receipt:
        """Let a schedule not fire until it is resumed. The outcome is `paused` or `not_found`."""
        return await self._control("pause", id, wait, options)

    @overload
    async def resume(self, id: str, *, wait: Literal[True] = True, **options: Unpack[CommandOptions]) -> Result: ...

    @overload
    async def resume(self, id: str, *, wait: Literal[False], **options: Unpack[CommandOptions]) -> Receipt: ...

    async def resume(self, id: str, *, wait: bool = True, **options: Unpack[CommandOptions]) -> Result | Receipt:
        """Let a paused schedule go on; its misfire policy says what becomes of what it has missed.

        The outcome is `resumed` or `not_found`.
        """
        return await self._control("resume", id, wait, options)

    @overload
    async def trigger(self, id: str, *, wait: Literal[True] = True, **options: Unpack[CommandOptions]) -> Result: ...

    @overload
    async def trigger(self, id: str, *, wait: Literal[False], **options: Unpack[CommandOptions]) -> Receipt: ...

    async def trigger(self, id: str, *, wait: bool = True, **options: Unpack[CommandOptions]) -> Result | Receipt:
        """Fire at once, even a paused schedule: a one-shot in place of its time, a series besides its times.

        The outcome is `triggered` or `not_found`.
        """
        return await self._control("trigger", id, wait, options)

    @overload
    async def reschedule(
        self,
        id: str,
        *,
        key: Key | None = None,
        expected_version: int | None = None,
        wait: Literal[True] = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
        **rule: Unpack[TimeRule],
    ) -> Result: ...

    @overload
    async def reschedule(
        self,
        id: str,
        *,
        key: Key | None = None,
        expected_version: int | None = None,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
        **rule: Unpack[TimeRule],
    ) -> Receipt: ...

    async def reschedule(
        self,
        id: str,
        *,
        key: Key | None = None,
        expected_version: int | None = None,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
        **rule: Unpack[TimeRule],
    ) -> Result | Receipt:
        """Give a schedule another time rule, as `TimeRule` has it; everything else of it stays.

        The outcome is `rescheduled` or `not_found`.
        """
        return await self._carry_out(
            lambda reply_to: reschedule_command(
                self.tenant, id, rule, key=key, expected_version=expected_version, reply_to=reply_to
            ),
            wait,
            {"timeout": timeout, "raise_on_refusal": raise_on_refusal},
        )

    @overload
    async def complete(
        self,
        firing: Firing,
        *,
        succeeded: bool = True,
        key: Key | None = None,
        wait: Literal[True] = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
    ) -> Result: ...

    @overload
    async def complete(
        self,
        firing: Firing,
        *,
        succeeded: bool = True,
        key: Key | None = None,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Receipt: ...

    async def complete(
        self,
        firing: Firing,
        *,
        succeeded: bool = True,
        key: Key | None = None,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
    ) -> Result | Receipt:
        """Say how the consumer of a firing fared, which `parse_firing` makes of the message.

        It goes to the partition that the schedule's own command came from; with `key`, to the partition of that key.
        The outcome is `completed`, `not_found`, or `conflict` if a later attempt has been delivered meanwhile.
        """

        def make(reply_to: ReplyTo | None) -> CommandToSend:
            command = complete_command(
                firing.tenant, firing.firing_id, firing.attempt, succeeded=succeeded, key=key, reply_to=reply_to
            )
            partition = firing.source_partition if key is None else None
            return command._replace(topic=firing.source_topic, partition=partition)

        return await self._carry_out(make, wait, {"timeout": timeout, "raise_on_refusal": raise_on_refusal})

    async def cancel_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Cancel all schedules that `ManyOptions` selects. None of them fires once the result is here.

        This and the other bulk commands return when every partition has carried them out; `count` of the result is
        the number of schedules that have changed, which may be 0. After a ResultTimeout they go on all the same.
        """
        return await self._control_many("cancel", options)

    async def pause_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Let all schedules that `ManyOptions` selects not fire until they are resumed."""
        return await self._control_many("pause", options)

    async def resume_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Let all paused schedules that `ManyOptions` selects go on."""
        return await self._control_many("resume", options)

    async def trigger_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Let all schedules that `ManyOptions` selects fire at once, even paused ones."""
        return await self._control_many("trigger", options)

    async def reschedule_many(self, **options: Unpack[RescheduleManyOptions]) -> Result:
        """Give all schedules that `ManyOptions` selects another time rule; everything else of them stays."""
        refuse_unknown(options, RescheduleManyOptions)
        rule: Any = {name: given for name, given in options.items() if name in TimeRule.__annotations__}
        return await self._answered(
            lambda reply_to: reschedule_many_command(self.tenant, options, rule, reply_to=reply_to), options
        )

    async def send_later(self, key: Key, value: bytes | None, topic: str, when: datetime | timedelta | int) -> Receipt:
        """Deliver a record to a topic at an instant (aware datetime or UTC epoch ms), or a timedelta from now.

        Returns once the broker has the command. The receipt's id, with the same key, cancels it.
        """
        request: ScheduleRequest = {"id": new_id(self._clock), "payload": value, "topic": topic, "key": key}
        if isinstance(when, timedelta):
            request["after"] = when
        else:
            request["at"] = when
        return await self._channel.send(schedule_command(self.tenant, request), DEFAULT_TIMEOUT)

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

        def maker(request: ScheduleRequest) -> MakeCommand:
            generated_id = new_id(self._clock)
            return lambda reply_to: schedule_command(self.tenant, request, generated_id=generated_id, reply_to=reply_to)

        if wait:
            return await self._channel.ask_many(map(maker, requests), timeout)
        return await self._channel.send_many((maker(request)(None) for request in requests), timeout)

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
            reader = await self._channel.reader(self._history_topic, from_beginning=from_beginning)
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

    async def _control(self, name: ControlName, id: str, wait: bool, options: CommandOptions) -> Result | Receipt:
        refuse_unknown(options, CommandOptions)
        return await self._carry_out(
            lambda reply_to: control_command(
                name,
                self.tenant,
                id,
                key=options.get("key"),
                expected_version=options.get("expected_version"),
                reply_to=reply_to,
            ),
            wait,
            options,
        )

    async def _control_many(self, name: ControlName, options: ManyOptions) -> Result:
        refuse_unknown(options, ManyOptions)
        return await self._answered(
            lambda reply_to: control_many_command(name, self.tenant, options, reply_to=reply_to), options
        )

    async def _carry_out(self, make: MakeCommand, wait: bool, options: CommandOptions) -> Result | Receipt:
        if not wait:
            return await self._channel.send(make(None), options.get("timeout", DEFAULT_TIMEOUT))
        return await self._answered(make, options)

    async def _answered(self, make: MakeCommand, options: CommandOptions | ManyOptions) -> Result:
        result = await self._channel.ask(make, options.get("timeout", DEFAULT_TIMEOUT))
        if options.get("raise_on_refusal", True) and result.outcome in _REFUSALS:
            raise CommandRefused(result)
        return result
