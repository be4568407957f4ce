"""After a firing was processed: complete it, deliver it again later, or give it up."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from light_scheduler.errors import InvalidCommand, SchedulerError
from light_scheduler.model import Outcome

from .commands import span_ms
from .firings import Firing, RetriesExhausted, check_backoff
from .options import Span
from .scheduler_client import SchedulerClient

Handler = Callable[[Firing], object]
GiveUp = Callable[[Firing, Exception], object]
"""Functions of the user. Ones that are not `async def` run in a thread."""

ASK_TIMEOUT_S = 10.0
"""How long a firing waits for permission to be processed. Without an answer, it is processed."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HandlingRules:
    """Rules for what happens after a firing was processed.

    - `completes`: report it to the scheduler as completed or failed, for schedules with `ack_timeout`, fixed delays and
      backoff series. The scheduler then decides when it is delivered again.
    - `heartbeat`: with `completes`, extend the firing before processing and then at this interval, so that it is not
      delivered again meanwhile. If its time-out ended before processing begins, the firing is skipped: it is delivered
      again. A third of `ack_timeout` leaves room for a late heartbeat.
    - `initial`, `factor`, `longest`, `attempts`: without `completes`, when and how often a failed message is delivered
      again; see `SchedulerClient.retry`.
    - `give_up`: called with a message and its error if no attempt is left, or if the message cannot be sent again, for
      example because it has grown too large. None: the error is raised.
    """

    completes: bool = False
    initial: Span = "5s"
    factor: float = 2.0
    longest: Span = "1h"
    attempts: int = 50
    give_up: GiveUp | None = None
    heartbeat: Span | None = None

    def __post_init__(self) -> None:
        """Raises InvalidCommand for an invalid backoff, and for a heartbeat that is not a duration or has no effect."""
        check_backoff(self.factor, self.attempts)
        span_ms("initial", self.initial)
        span_ms("longest", self.longest)
        if self.heartbeat is None:
            return
        if not self.completes:
            raise InvalidCommand("heartbeat", "needs completes=True: only such a firing has a time-out to extend")
        if span_ms("heartbeat", self.heartbeat) == 0:
            raise InvalidCommand("heartbeat", "must be at least 1 ms")


async def handle(
    client: SchedulerClient,
    firing: Firing,
    topic: str,
    rules: HandlingRules,
    process: Handler,
    passing: tuple[type[Exception], ...] = (),
) -> None:
    """Process a firing that came from `topic`, and make sure that Kafka acknowledges the follow-up.

    A `process` that is not `async def` runs in a thread. Its error is logged. Raises BrokerError, the error of the last
    attempt unless `give_up` is set, and errors of the types in `passing`, after which nothing is reported.
    """
    if rules.heartbeat is not None and not await _is_awaited(client, firing):
        return
    try:
        async with _extended(client, firing, rules):
            await _called(process, firing)
    except passing:
        raise
    except Exception as error:  # noqa: BLE001 - the handler is the user's; every failure of it is tried again
        log.warning("%s/%s failed: %r", firing.tenant, firing.firing_id, error)
        await _failed(client, firing, topic, rules, error)
    else:
        if rules.completes:
            await client.complete(firing, wait=False)


async def _called(function: Callable[..., object], *arguments: Any) -> None:
    if _is_async(function):
        result = function(*arguments)
    else:
        result = await asyncio.to_thread(function, *arguments)
    if inspect.isawaitable(result):
        await result


def _is_async(function: Callable[..., object]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _is_awaited(client: SchedulerClient, firing: Firing) -> bool:
    """Extend a firing that is about to be processed. Return whether the scheduler still waits for its completion.

    Attempts of a backoff series, which have an original due time, cannot be extended.
    """
    if firing.original_due is not None:
        return True
    try:
        result = await client.extend(firing, timeout=ASK_TIMEOUT_S, raise_on_refusal=False)
    except SchedulerError as error:
        log.warning("%s/%s could not be extended: %s", firing.tenant, firing.firing_id, error)
        return True
    if result.outcome is not Outcome.CONFLICT:
        return True
    log.warning("%s/%s is skipped: %s", firing.tenant, firing.firing_id, result.reason)
    return False


@asynccontextmanager
async def _extended(client: SchedulerClient, firing: Firing, rules: HandlingRules) -> AsyncIterator[None]:
    """Extend a firing at each heartbeat. On exit, no extension is in progress any more, so the outcome can be
    reported."""
    if rules.heartbeat is None:
        yield
        return
    beating = asyncio.create_task(_beat(client, firing, span_ms("heartbeat", rules.heartbeat) / 1_000))
    try:
        yield
    finally:
        beating.cancel()
        await asyncio.wait([beating])


async def _beat(client: SchedulerClient, firing: Firing, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        try:
            await client.extend(firing, wait=False)
        except SchedulerError as error:  # the next heartbeat may be in time
            log.warning("%s/%s could not be extended: %s", firing.tenant, firing.firing_id, error)


async def _failed(client: SchedulerClient, firing: Firing, topic: str, rules: HandlingRules, error: Exception) -> None:
    if rules.completes:
        await client.complete(firing, succeeded=False, wait=False)
        return
    try:
        await client.retry(
            firing,
            topic,
            initial=rules.initial,
            factor=rules.factor,
            longest=rules.longest,
            attempts=rules.attempts,
        )
    except (RetriesExhausted, InvalidCommand) as reason:
        log.warning("%s/%s is given up: %s", firing.tenant, firing.firing_id, reason)
        if rules.give_up is None:
            raise error from None
        await _called(rules.give_up, firing, error)
