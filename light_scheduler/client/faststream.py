"""Firings in FastStream. Needs the extra `faststream`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from faststream import BaseMiddleware, ContextRepo
from faststream.kafka import KafkaMessage
from faststream.message import StreamMessage

from light_scheduler.errors import FormatError

from .firings import Firing, parse_firing
from .handling import HandlingRules, handle
from .scheduler_client import SchedulerClient


async def firing_of(message: KafkaMessage) -> Firing:
    """Return the firing of a message, for `Annotated[Firing, Depends(firing_of)]`.

    Raises FormatError if the message does not come from the scheduler.
    """
    return parse_firing(message.raw_message)


class FiringMiddleware:
    """Completes the firings that subscribers have processed, or has them delivered again after an error.

        broker = KafkaBroker("127.0.0.1:9092", middlewares=[FiringMiddleware(scheduler, HandlingRules(attempts=10))])

    Messages that do not come from the scheduler, and batches, are passed on as they are.
    """

    def __init__(self, client: SchedulerClient, rules: HandlingRules | None = None) -> None:
        """`client` has to be open while the broker runs."""
        self._client = client
        self._rules = rules or HandlingRules()

    def __call__(self, message: Any, /, *, context: ContextRepo) -> BaseMiddleware:
        return _OfOneMessage(message, context, self._client, self._rules)


class _OfOneMessage(BaseMiddleware):
    def __init__(self, message: Any, context: ContextRepo, client: SchedulerClient, rules: HandlingRules) -> None:
        super().__init__(message, context=context)
        self._client = client
        self._rules = rules

    async def consume_scope(self, call_next: Callable[[Any], Awaitable[Any]], msg: StreamMessage[Any]) -> Any:
        record = msg.raw_message
        try:
            firing = None if isinstance(record, tuple) else parse_firing(record)
        except FormatError:
            firing = None
        if firing is None:
            return await call_next(msg)
        results: list[Any] = []

        async def process(_: Firing) -> None:
            results.append(await call_next(msg))

        await handle(self._client, firing, record.topic, self._rules, process)
        return results[0] if results else None
