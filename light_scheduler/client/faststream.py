"""Firings in FastStream. Needs the extra `faststream`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any
from weakref import WeakSet

from faststream import AckPolicy, BaseMiddleware, ContextRepo, Depends
from faststream.exceptions import AckMessage, HandlerException, IgnoredException, RejectMessage
from faststream.kafka import KafkaBroker, KafkaMessage, KafkaRouter
from faststream.message import StreamMessage

from light_scheduler.errors import FormatError, InvalidCommand

from . import firings
from .handling import GiveUp, HandlingRules, handle
from .options import Span
from .scheduler_client import SchedulerClient

log = logging.getLogger(__name__)


async def firing_of(message: KafkaMessage) -> firings.Firing:
    """Return the firing of a message, for `Annotated[Firing, Depends(firing_of)]`.

    Raises FormatError if the message does not come from the scheduler.
    """
    return firings.parse_firing(message.raw_message)


Firing = Annotated[firings.Firing, Depends(firing_of)]
"""Annotation of an argument that receives the firing of the message."""


class FiringSubscribers:
    """Subscribes functions to topics, one for each, and calls them for the messages that the scheduler delivers.

        subscribers = FiringSubscribers(broker, scheduler, group_id="billing")

        @subscribers.on_firing("reminders", attempts=10)
        async def remind(body: Order, firing: Firing) -> None:
            ...

    The function's arguments are FastStream's: the body as any type, `Depends`, `Context`, and `Firing` of this module.
    A message counts as consumed when its function has returned, or its next delivery is scheduled. A message is
    processed again if its consumer is killed before that: deduplicate by `firing.delivery_id`.
    """

    def __init__(self, broker: KafkaBroker | KafkaRouter, client: SchedulerClient, *, group_id: str) -> None:
        """`client` must be open while the broker runs."""
        self._broker: Any = broker
        self._client = client
        self._group_id = group_id
        self._rules: dict[Any, HandlingRules] = {}
        broker.add_middleware(self._middleware)

    def on_firing(
        self,
        topic: str,
        *,
        completes: bool = False,
        initial: Span = "5s",
        factor: float = 2.0,
        longest: Span = "1h",
        attempts: int = 50,
        give_up: GiveUp | None = None,
        heartbeat: Span | None = None,
        **options: Any,
    ) -> Callable[[Callable[..., Any]], Any]:
        """Subscribe a function to a topic; see `HandlingRules` for the arguments. `options` are FastStream's.

        It reads committed messages only, from the earliest on, and acknowledges each after its function. Without
        `give_up`, a message whose last attempt failed is processed again at once. Raises InvalidCommand for a heartbeat
        without `completes`, or for options that `on_firing` sets itself.
        """
        for name in _OWN_OPTIONS.keys() & options.keys():
            raise InvalidCommand(name, "is set by on_firing: leave it out")
        rules = HandlingRules(completes, initial, factor, longest, attempts, give_up, heartbeat)
        given = {"auto_offset_reset": "earliest", "group_id": self._group_id, **options, **_OWN_OPTIONS}
        subscriber: Callable[[Callable[..., Any]], Any] = self._broker.subscriber(topic, **given)
        self._rules[subscriber] = rules
        _OF_ON_FIRING.add(subscriber)
        return subscriber

    def _middleware(self, message: Any, /, *, context: ContextRepo) -> BaseMiddleware:
        rules = self._rules.get(context.get_local("handler_"))
        if rules is None:
            return BaseMiddleware(message, context=context)
        return _OfOneMessage(message, context, self._client, rules, takes_others=False)


_OF_ON_FIRING: WeakSet[Any] = WeakSet()
"""The subscribers that `on_firing` made, of all brokers. A middleware leaves them alone, since they report their
firings themselves."""

_OWN_OPTIONS: Mapping[str, Any] = {
    "batch": False,
    "isolation_level": "read_committed",
    "ack_policy": AckPolicy.NACK_ON_ERROR,
}
"""FastStream's defaults would read uncommitted messages, and commit a message before its function gets it."""


class FiringMiddleware:
    """Reports firings processed by any subscriber as completed, or schedules their next delivery after an error.

        broker = KafkaBroker("127.0.0.1:9092", middlewares=[FiringMiddleware(scheduler, HandlingRules(attempts=10))])

    It passes on unchanged: messages that are not from the scheduler, batches, and messages of `FiringSubscribers`.
    """

    def __init__(self, client: SchedulerClient, rules: HandlingRules | None = None) -> None:
        """`client` must be open while the broker runs."""
        self._client = client
        self._rules = rules or HandlingRules()

    def __call__(self, message: Any, /, *, context: ContextRepo) -> BaseMiddleware:
        if context.get_local("handler_") in _OF_ON_FIRING:
            return BaseMiddleware(message, context=context)
        return _OfOneMessage(message, context, self._client, self._rules, takes_others=True)


class _OfOneMessage(BaseMiddleware):
    def __init__(
        self, message: Any, context: ContextRepo, client: SchedulerClient, rules: HandlingRules, *, takes_others: bool
    ) -> None:
        super().__init__(message, context=context)
        self._client = client
        self._rules = rules
        self._takes_others = takes_others

    async def consume_scope(self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]) -> Any:
        record = msg.raw_message
        if isinstance(record, tuple):
            return await call_next(msg)
        try:
            firing = firings.parse_firing(record)
        except FormatError as error:
            if self._takes_others:
                return await call_next(msg)
            log.warning("%s-%d at offset %d is skipped: %s", record.topic, record.partition, record.offset, error)
            return None
        return await self._processed(call_next, msg, firing)

    async def _processed(
        self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any], firing: firings.Firing
    ) -> Any:
        """Process a firing. Exceptions that control FastStream do not count as failures."""
        results: list[Any] = []
        dismissals: list[HandlerException] = []

        async def process(_: firings.Firing) -> None:
            try:
                results.append(await call_next(msg))
            except (AckMessage, RejectMessage) as dismissal:
                dismissals.append(dismissal)

        await handle(self._client, firing, msg.raw_message.topic, self._rules, process, passing=(IgnoredException,))
        if dismissals:
            raise dismissals[0]
        return results[0] if results else None
