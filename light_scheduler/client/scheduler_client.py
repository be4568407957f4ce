"""SchedulerClient: the scheduler from asyncio code."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Literal, Self, Unpack, overload

from light_scheduler.clock import Clock, SystemClock
from light_scheduler.connection import Connection, HttpSecurity, KafkaSecurity, Secret
from light_scheduler.connection.http_security import NO_TLS
from light_scheduler.connection.security import PLAINTEXT
from light_scheduler.errors import ClientError, FormatError, FormatTooNew, InvalidCommand
from light_scheduler.kafka.connection import MAX_REQUEST_BYTES, broker_errors, connection_of
from light_scheduler.model import (
    DEFAULT_TENANT,
    ControlName,
    DeadLetterCause,
    EventType,
    Firing,
    HistoryEvent,
    Outcome,
    ReplyTo,
    Result,
    TopicNames,
)
from light_scheduler.wire import decode_history

from .channel import CONNECT_TIMEOUT_S, Channel, ChannelTopics, MakeCommand
from .chunks import Prepare, async_chunks, of_request
from .commands import (
    CommandToSend,
    complete_command,
    control_command,
    control_many_command,
    extend_command,
    new_id,
    refuse_unknown,
    reschedule_command,
    reschedule_many_command,
    schedule_command,
    span_ms,
)
from .errors import CommandRefused
from .firings import again, check_backoff
from .kafka_options import check_aiokafka_options
from .later import later_request
from .options import (
    CommandOptions,
    Id,
    Instant,
    Key,
    ManyOptions,
    Payload,
    Requests,
    RescheduleManyOptions,
    ScheduleOptions,
    ScheduleRequest,
    Span,
    TimeRule,
    UserHeaders,
    When,
)
from .periodic import GROUP_LABEL, SYNC_TRIES, F, JobChange, Jobs, SyncPlan
from .questions import (
    ListOptions,
    dead_letter_question,
    dead_letters_question,
    get_question,
    history_question,
    list_question,
    preview_question,
    redrive_question,
    why_question,
)
from .receipt import Receipt, Unanswered
from .request_size import request_limit
from .serializers import Serializer, payload_of, serialized
from .views import DeadLetterDetail, DeadLetterSummary, PendingSchedule, PendingScheduleDetail, Redriven, Why
from .worker_api import api_of

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 30.0
"""Seconds that a call waits, for the broker's acknowledgement and the scheduler's answer together."""

Receipts = list[Receipt]
Results = list[Result | Unanswered]
DueTimes = list[int]

_REFUSALS = (Outcome.REJECTED, Outcome.CONFLICT)


class SchedulerClient:
    """Schedules messages and controls schedules. Waits for the answer of the scheduler unless `wait` is False.

        async with SchedulerClient("127.0.0.1:9092") as client:
            await client.schedule("order-1", b"pay!", topic="reminders", after="15m")
            await client.cancel("order-1")

    Once the broker has acknowledged a command, it will be carried out, even if no worker runs at the moment. With
    `wait=False`, a call returns then.

    Calls that send a command raise InvalidCommand if an argument is wrong (nothing was sent), BrokerError if the broker
    does not acknowledge, ResultTimeout if no answer comes in time (the command will be carried out), and CommandRefused
    if the answer is `rejected` or `conflict`, unless `raise_on_refusal` is False.
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
        max_request_bytes: int = MAX_REQUEST_BYTES,
        url: str | None = None,
        token: str | Secret | None = None,
        http_security: HttpSecurity = NO_TLS,
        serializer: Serializer | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create a client. It connects in `start` or `async with`.

        `connect_timeout` is in seconds. `security` has TLS and login. In place of the address you can give
        `load_settings().connection`, which includes them. `kafka_options` are passed to every aiokafka client
        that has them; InvalidCommand is raised for one that the client sets itself. Records of up to
        `max_request_bytes` are sent: raise it along with the workers' `max_payload_bytes`.

        With a `serializer`, payloads can be values that it takes, besides bytes and None.

        `url` is the address of any worker, such as `http://127.0.0.1:6066`, for `get`, `list`, `history_of`, `why`,
        dead letters and `preview`, and `token` a token of its HTTP API. With `https://`, `http_security` says which
        authority to trust (`HttpSecurity(web_ssl_ca="ca.pem")`; default: those of the system), and has the certificate
        for mutual TLS.
        """
        check_aiokafka_options(kafka_options or {})
        names = TopicNames(app_id)
        self.tenant = tenant
        self.commands_topic = commands_topic or names.commands
        self._history_topic = names.history
        self._jobs = Jobs()
        self._serializer = serializer
        self._clock = clock or SystemClock()
        self._channel = Channel(
            {**connection_of(bootstrap_servers, security).aiokafka(), **(kafka_options or {})},
            ChannelTopics(self.commands_topic, names.results),
            connect_timeout=connect_timeout,
            max_request_bytes=request_limit(max_request_bytes),
            api=api_of(url, token, http_security),
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self._channel.__aexit__(*failure)

    async def start(self) -> None:
        """Connect. Raises BrokerError if the broker cannot be reached, InvalidCommand for an option that is bad."""
        await self._channel.start()

    async def close(self) -> None:
        """Send pending commands and disconnect. Calls that still wait for an answer raise BrokerError.

        Raises NotDelivered with the commands that the broker has not acknowledged within 30 s.
        """
        await self._channel.close()

    @overload
    async def schedule(
        self,
        id: Id = None,
        payload: Payload = b"",
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
        payload: Payload = b"",
        *,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
        **request: Unpack[ScheduleOptions],
    ) -> Receipt: ...

    async def schedule(
        self,
        id: Id = None,
        payload: Payload = b"",
        *,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
        **request: Unpack[ScheduleOptions],
    ) -> Result | Receipt:
        """Schedule a message, once or as a series. `ScheduleOptions` has all arguments.

        `id` defaults to the key; without a key, to a new time-ordered id. Returns the result of the scheduler, or a
        receipt if `wait` is False. `timeout` is in seconds.
        """
        make = self._maker(self._serialized({**request, "id": id, "payload": payload}))
        return await self._carry_out(make, wait, {"timeout": timeout, "raise_on_refusal": raise_on_refusal})

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
        """Pause a schedule: it does not fire until it is resumed. The outcome is `paused` or `not_found`."""
        return await self._control("pause", id, wait, options)

    @overload
    async def resume(self, id: str, *, wait: Literal[True] = True, **options: Unpack[CommandOptions]) -> Result: ...

    @overload
    async def resume(self, id: str, *, wait: Literal[False], **options: Unpack[CommandOptions]) -> Receipt: ...

    async def resume(self, id: str, *, wait: bool = True, **options: Unpack[CommandOptions]) -> Result | Receipt:
        """Resume a paused schedule. Missed firings follow its misfire policy.

        The outcome is `resumed` or `not_found`.
        """
        return await self._control("resume", id, wait, options)

    @overload
    async def trigger(self, id: str, *, wait: Literal[True] = True, **options: Unpack[CommandOptions]) -> Result: ...

    @overload
    async def trigger(self, id: str, *, wait: Literal[False], **options: Unpack[CommandOptions]) -> Receipt: ...

    async def trigger(self, id: str, *, wait: bool = True, **options: Unpack[CommandOptions]) -> Result | Receipt:
        """Fire a schedule now, even if it is paused. A one-shot then does not fire at its own time; a series does.

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
        """Change when a schedule fires, with the arguments of `TimeRule`. Nothing else changes.

        They are the whole new rule: bounds, jitter, window and misfire policy that you leave out go back to their
        defaults. The outcome is `rescheduled` or `not_found`.
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
        """Report a firing as completed or failed. `parse_firing` returns the firing of a message.

        The report goes to the partition of the schedule's command; with `key`, to the partition of this key. The
        outcome is `completed`, `not_found`, or `conflict` if a later attempt has been delivered in the meantime.
        """
        command = partial(complete_command, succeeded=succeeded)
        return await self._report(
            command, firing, key, wait, {"timeout": timeout, "raise_on_refusal": raise_on_refusal}
        )

    @overload
    async def extend(
        self,
        firing: Firing,
        ack_timeout: Span | None = None,
        *,
        key: Key | None = None,
        wait: Literal[True] = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
    ) -> Result: ...

    @overload
    async def extend(
        self,
        firing: Firing,
        ack_timeout: Span | None = None,
        *,
        key: Key | None = None,
        wait: Literal[False],
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Receipt: ...

    async def extend(
        self,
        firing: Firing,
        ack_timeout: Span | None = None,
        *,
        key: Key | None = None,
        wait: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        raise_on_refusal: bool = True,
    ) -> Result | Receipt:
        """Report that a firing is still being processed: it is delivered again `ack_timeout` from now, not earlier.

        Default: the schedule's own `ack_timeout`. The outcome is `updated`; `not_found`; or `conflict` if the time-out
        was over, or a later attempt has been delivered in the meantime. On a conflict, nothing changes.
        """
        command = partial(extend_command, ack_timeout=ack_timeout)
        return await self._report(
            command, firing, key, wait, {"timeout": timeout, "raise_on_refusal": raise_on_refusal}
        )

    async def retry(
        self,
        firing: Firing,
        topic: str,
        *,
        initial: Span = "5s",
        factor: float = 2.0,
        longest: Span = "1h",
        attempts: int = 50,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Receipt:
        """Deliver a failed message once more: after `initial`, then each time `factor` times later.

        The message goes to `topic` with its key, payload and headers, and with headers that tell the attempt and when
        the first was due (`attempt_of`, `original_due`). It goes to the partition of its key, whichever its schedule
        chose. Reporting the same failure twice makes one schedule. Raises RetriesExhausted after it has been delivered
        again `attempts` times, InvalidCommand and BrokerError.
        """
        check_backoff(factor, attempts)
        next_try = again(firing, span_ms("initial", initial), factor, span_ms("longest", longest), attempts)
        request = later_request(firing.key, firing.payload, topic, f"{next_try.delay}ms", next_try.headers, next_try.id)
        request["on_conflict"] = "keep"
        return await self._channel.send(schedule_command(firing.tenant, request), timeout)

    def cron(
        self,
        expression: str,
        *,
        name: str | None = None,
        payload: Payload = b"",
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[F], F]:
        """Declare a periodic job with a cron expression, as a decorator of its function. `sync` schedules it.

        `name` is the schedule's id, and defaults to the function's name. `options` are those of `schedule`.
        """
        return self._jobs.declare(name, {"cron": expression}, payload_of(self._serializer, payload), options)

    def every(
        self,
        interval: Span,
        *,
        name: str | None = None,
        payload: Payload = b"",
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[F], F]:
        """Declare a periodic job with a fixed interval, as `cron` does."""
        return self._jobs.declare(name, {"every": interval}, payload_of(self._serializer, payload), options)

    def job_of(self, firing: Firing) -> Callable[..., Any]:
        """Return the function of the periodic job of a firing or its retry.

        Raises ClientError if the job is not declared.
        """
        return self._jobs.function_of(firing)

    async def sync(
        self, group: str, *, remove: bool = False, dry_run: bool = False, timeout: float = DEFAULT_TIMEOUT
    ) -> SyncPlan:
        """Schedule the declared periodic jobs. Any number of replicas can do so at the same time.

        A job whose definition has not changed keeps its version. `group` names the application: with `remove`, pending
        jobs of the group that are not declared are cancelled. Returns the differences; with `dry_run`, changes nothing.
        Queries the worker at `url`, as `list` does. Raises ClientError if a job's name belongs to a schedule outside
        the group.
        """
        planned: SyncPlan | None = None
        for _ in range(SYNC_TRIES):
            pending = [schedule async for schedule in self.list(labels={GROUP_LABEL: group})]
            plan = self._jobs.plan(self.tenant, group, pending, remove=remove)
            planned = planned or plan
            if dry_run or not plan.changes:
                return planned
            for change in plan.changes:
                await self._synced(change, timeout)
        raise ClientError(
            f"group {group} still differs from its declaration after {SYNC_TRIES} tries: others change it, or a "
            f"schedule of another group has one of these names: {', '.join(change.name for change in plan.changes)}"
        )

    async def _synced(self, change: JobChange, timeout: float) -> None:
        """Make a change, unless the schedule has been changed by others meanwhile."""
        options: CommandOptions = {"timeout": timeout, "raise_on_refusal": False}
        if change.request is None:
            await self._control("cancel", change.name, True, {**options, "expected_version": change.version})
            return
        request: ScheduleRequest = {**change.request, "expected_version": change.version}
        if change.version is None:
            request["on_conflict"] = "keep"
        result = await self._answered(self._maker(request), options)
        if result.outcome is Outcome.REJECTED:
            raise CommandRefused(result)

    async def cancel_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Cancel all schedules that `ManyOptions` selects. After the result, none of them fires.

        This and the other bulk commands return when every partition has carried them out. The result's `count` is the
        number of changed schedules; it can be 0. After a ResultTimeout, the command is still carried out.
        """
        return await self._control_many("cancel", options)

    async def pause_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Pause all schedules that `ManyOptions` selects."""
        return await self._control_many("pause", options)

    async def resume_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Resume all paused schedules that `ManyOptions` selects."""
        return await self._control_many("resume", options)

    async def trigger_many(self, **options: Unpack[ManyOptions]) -> Result:
        """Fire all schedules that `ManyOptions` selects now, including paused ones."""
        return await self._control_many("trigger", options)

    async def reschedule_many(self, **options: Unpack[RescheduleManyOptions]) -> Result:
        """Reschedule all schedules that `ManyOptions` selects. Nothing else about them changes.

        As with `reschedule`, the arguments of `TimeRule` are the whole new rule.
        """
        refuse_unknown(options, RescheduleManyOptions)
        rule: Any = {name: given for name, given in options.items() if name in TimeRule.__annotations__}
        return await self._answered(
            lambda reply_to: reschedule_many_command(self.tenant, options, rule, reply_to=reply_to), options
        )

    async def send_later(
        self,
        key: Key | None,
        value: Payload,
        topic: str,
        when: When,
        *,
        headers: UserHeaders | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Receipt:
        """Deliver a record to a topic at an instant, or after a delay: see `When`.

        Returns as soon as the broker has the command. To cancel it, use the id of the receipt and the same key.
        """
        request = later_request(key, payload_of(self._serializer, value), topic, when, headers, new_id(self._clock))
        return await self._channel.send(schedule_command(self.tenant, request), timeout)

    @overload
    async def schedule_many(
        self, requests: Requests, *, wait: Literal[False] = False, timeout: float = DEFAULT_TIMEOUT
    ) -> Receipts: ...

    @overload
    async def schedule_many(
        self, requests: Requests, *, wait: Literal[True], timeout: float = DEFAULT_TIMEOUT
    ) -> Results: ...

    async def schedule_many(
        self, requests: Requests, *, wait: bool = False, timeout: float = DEFAULT_TIMEOUT
    ) -> Receipts | Results:
        """Schedule many messages in batches. Returns receipts or results, in the order of the requests.

        Holds all of them in memory; `schedule_each` does not.
        """
        if wait:
            return [result async for result in self.schedule_each(requests, wait=True, timeout=timeout)]
        return [receipt async for receipt in self.schedule_each(requests, timeout=timeout)]

    @overload
    def schedule_each(
        self, requests: Requests, *, wait: Literal[False] = False, timeout: float = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Receipt, None]: ...

    @overload
    def schedule_each(
        self, requests: Requests, *, wait: Literal[True], timeout: float = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Result | Unanswered, None]: ...

    async def schedule_each(
        self, requests: Requests, *, wait: bool = False, timeout: float = DEFAULT_TIMEOUT
    ) -> AsyncGenerator[Receipt | Result | Unanswered, None]:
        """Schedule a stream of messages, and yield a receipt or result for each, in the order of the requests.

        Takes up to 5,000 requests or 16 MiB of payload at a time, and the next ones when the answers to these have been
        yielded. `timeout` is in seconds, for each such chunk after its last request; requests without a result by then
        yield `Unanswered`. Refusals are yielded as results, not raised. Raises InvalidCommand, with its number, at the
        first invalid request, and BrokerError. Earlier requests may have been sent by then; you can safely send the
        ones with an id again.
        """
        numbers = count(1)
        async for chunk in async_chunks(requests, self._numbered_serialized()):
            makers = map(self._numbered_maker, chunk, numbers)
            if wait:
                for result in await self._channel.ask_many(makers, timeout):
                    yield result
            else:
                for receipt in await self._channel.send_many((make(None) for make in makers), timeout):
                    yield receipt

    async def get(self, id: str) -> PendingScheduleDetail | None:
        """Return a pending schedule with its payload; None if there is none, or if it has been delivered or cancelled.

        This and the calls below, down to `preview`, query the worker at `url`. They raise WorkerUnreachable,
        InvalidCommand for an invalid argument, and ClientError if the worker refuses, or cannot reach all other
        workers.
        """
        return await self._channel.asked(get_question(self.tenant, id))

    async def list(self, **options: Unpack[ListOptions]) -> AsyncGenerator[PendingSchedule, None]:
        """Yield the pending schedules of the whole cluster, page by page, as `ListOptions` selects and orders them.

        Schedules that are created or removed meanwhile may be included or not; all others are yielded exactly once.
        Raises as `get`.
        """
        cursor: str | None = None
        while True:
            page = await self._channel.asked(list_question(self.tenant, options, cursor))
            if page is None:
                raise ClientError("`url` is not the address of a worker")
            for schedule in page.schedules:
                yield schedule
            if (cursor := page.next_cursor) is None:
                return

    async def history_of(
        self, id: str, *, since: Instant | None = None, events: Collection[EventType] = ()
    ) -> AsyncGenerator[HistoryEvent, None]:
        """Yield the events of a schedule, pending or not, newest first, since an instant; default: a day ago.

        `events` are the types to yield; default: all. The history has no index, so workers read all of it back to
        `since`: stop when you have what you need. Raises as `get`.
        """
        cursor: str | None = None
        while True:
            page = await self._channel.asked(history_question(self.tenant, id, since, events, cursor))
            if page is None:
                raise ClientError("`url` is not the address of a worker")
            for event in page.events:
                yield event
            if (cursor := page.next_cursor) is None:
                return

    async def why(self, id: str, *, since: Instant | None = None) -> Why:
        """Explain in sentences what happened to a schedule, when it fires next, or why it does not.

        `since` is how far to look back in the history; default: a day. For an unknown id, the state is "unknown".
        Raises as `get`.
        """
        document = await self._channel.asked(why_question(self.tenant, id, since))
        if document is None:
            raise ClientError("`url` is not the address of a worker")
        return document

    async def list_dead_letters(
        self, *, id: str | None = None, cause: DeadLetterCause | str | None = None, since: Instant | None = None
    ) -> AsyncGenerator[DeadLetterSummary, None]:
        """Yield the tenant's dead letters, newest first: rejected commands, and undeliverable firings.

        Raises as `get`.
        """
        cursor: str | None = None
        while True:
            page = await self._channel.asked(dead_letters_question(self.tenant, id, cause, since, cursor))
            if page is None:
                raise ClientError("`url` is not the address of a worker")
            for letter in page.dead_letters:
                yield letter
            if (cursor := page.next_cursor) is None:
                return

    async def get_dead_letter(self, letter: str) -> DeadLetterDetail | None:
        """Return a dead letter with its bytes, by its name (`letter`), such as "2-15". Raises as `get`."""
        return await self._channel.asked(dead_letter_question(self.tenant, letter))

    async def redrive(self, letter: str) -> Redriven:
        """Send a dead letter again: a command to its commands topic, a firing to its target.

        Each call sends it once more. Raises as `get`, and ClientError if there is no such letter.
        """
        sent = await self._channel.asked(redrive_question(self.tenant, letter))
        if sent is None:
            raise ClientError(f"there is no dead letter {letter}")
        return sent

    async def preview(
        self, *, count: int = 10, accepted: Instant | None = None, id: str | None = None, **rule: Unpack[TimeRule]
    ) -> DueTimes:
        """Return when a schedule with this rule would fire: up to `count` due times, UTC epoch ms.

        `accepted` is when it would be accepted; default: now. Jitter depends on `id` and the tenant; without an id, it
        is that of a schedule with the id "preview". Raises as `get`.
        """
        answer = await self._channel.asked(preview_question(self.tenant, id, count, accepted, rule))
        if answer is None:
            raise ClientError("`url` is not the address of a worker")
        return answer.next

    async def watch(
        self,
        *,
        tenant: str | None = None,
        id_prefix: str = "",
        events: Collection[EventType] = (),
        from_beginning: bool = False,
    ) -> AsyncGenerator[HistoryEvent, None]:
        """Follow the events of schedules, live and without end, or from the oldest event in the history.

        By default all tenants, ids and events. Changes of tenants, tokens and delay rules are included as
        EventType.CHANGED. Records that are not events are logged and skipped. Events of types that only newer versions
        know are skipped silently. Raises BrokerError.
        """
        with broker_errors(f"cannot read {self._history_topic}"):
            reader = await self._channel.reader(self._history_topic, from_beginning=from_beginning)
            try:
                async for record in reader:
                    try:
                        event = decode_history(record.value)
                    except FormatTooNew:
                        continue
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

    def _serialized(self, request: ScheduleRequest) -> ScheduleRequest:
        return serialized(self._serializer, request)

    def _numbered_serialized(self) -> Prepare:
        """Return a function that serialises the payloads of many requests, one after the other. Its errors contain the
        request's number."""
        numbers = count(1)

        def prepared(request: ScheduleRequest) -> ScheduleRequest:
            number = next(numbers)
            try:
                return self._serialized(request)
            except InvalidCommand as error:
                raise of_request(number, error) from error.__cause__

        return prepared

    def _maker(self, request: ScheduleRequest) -> MakeCommand:
        generated_id = new_id(self._clock)
        return lambda reply_to: schedule_command(self.tenant, request, generated_id=generated_id, reply_to=reply_to)

    def _numbered_maker(self, request: ScheduleRequest, number: int) -> MakeCommand:
        """Return a function that makes a command. Its errors contain the request's number, from 1."""
        make = self._maker(request)

        def numbered(reply_to: ReplyTo | None) -> CommandToSend:
            try:
                made = make(reply_to)
                self._channel.check(made)
            except InvalidCommand as error:
                raise of_request(number, error) from None
            return made

        return numbered

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

    async def _report(
        self,
        command: Callable[..., CommandToSend],
        firing: Firing,
        key: Key | None,
        wait: bool,
        options: CommandOptions,
    ) -> Result | Receipt:
        """Send a command about a firing to the partition of the schedule's own command, unless a key is given.

        If the schedule has moved since, it is forwarded from there by the schedule's key.
        """
        whose = firing.schedule_key if key is None else key
        partition = firing.source_partition if key is None else None

        def make(reply_to: ReplyTo | None) -> CommandToSend:
            made = command(firing.tenant, firing.firing_id, firing.attempt, key=whose, reply_to=reply_to)
            return made._replace(topic=firing.source_topic, partition=partition, or_by_key=True)

        return await self._carry_out(make, wait, options)

    async def _carry_out(self, make: MakeCommand, wait: bool, options: CommandOptions) -> Result | Receipt:
        if not wait:
            return await self._channel.send(make(None), options.get("timeout", DEFAULT_TIMEOUT))
        return await self._answered(make, options)

    async def _answered(self, make: MakeCommand, options: CommandOptions | ManyOptions) -> Result:
        result = await self._channel.ask(make, options.get("timeout", DEFAULT_TIMEOUT))
        if options.get("raise_on_refusal", True) and result.outcome in _REFUSALS:
            raise CommandRefused(result)
        return result
