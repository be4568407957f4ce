"""What follows from how a firing was processed: it is completed, delivered again later, or given up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from light_scheduler.errors import InvalidCommand, SchedulerError

from .commands import span_ms
from .firings import Firing, RetriesExhausted
from .options import Span
from .scheduler_client import SchedulerClient

Handler = Callable[[Firing], Awaitable[object]]
GiveUp = Callable[[Firing, Exception], Awaitable[object]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HandlingRules:
    """What happens after a firing was processed.

    - `completes`: report it to the scheduler as completed or failed, for schedules with `ack_timeout`, fixed delays and
      backoff series. The scheduler then decides when it comes again.
    - `heartbeat`: with `completes`, the firing is extended this often while it is processed, so that it does not come
      again meanwhile. A third of `ack_timeout` leaves room for a heartbeat that is late.
    - `initial`, `factor`, `longest`, `attempts`: otherwise, when a message that failed is delivered again; see
      `SchedulerClient.retry`.
    - `give_up`: is awaited with a message and its error after the last attempt. None: the error is raised.
    """

    completes: bool = False
    initial: Span = "5s"
    factor: float = 2.0
    longest: Span = "1h"
    attempts: int = 50
    give_up: GiveUp | None = None
    heartbeat: Span | None = None

    def __post_init__(self) -> None:
        """Raises InvalidCommand for a heartbeat that is no duration, or that nothing waits for."""
        if self.heartbeat is None:
            return
        if not self.completes:
            raise InvalidCommand("heartbeat", "needs completes=True: only such a firing has a time-out to extend")
        if span_ms("heartbeat", self.heartbeat) == 0:
            raise InvalidCommand("heartbeat", "must be at least 1 ms")


async def handle(client: SchedulerClient, firing: Firing, topic: str, rules: HandlingRules, process: Handler) -> None:
    """Process a firing that came from `topic`, and have Kafka acknowledge what follows from the outcome.

    An error of `process` is logged. Raises BrokerError, and the error after the last attempt unless `give_up` is given.
    """
    try:
        async with _extended(client, firing, rules):
            await process(firing)
    except Exception as error:  # noqa: BLE001 - the handler is the user's; every failure of it is tried again
        log.warning("%s/%s failed: %r", firing.tenant, firing.firing_id, error)
        await _failed(client, firing, topic, rules, error)
    else:
        if rules.completes:
            await client.complete(firing, wait=False)


@asynccontextmanager
async def _extended(client: SchedulerClient, firing: Firing, rules: HandlingRules) -> AsyncIterator[None]:
    """Extend a firing at each heartbeat. None is under way any more when its outcome is reported."""
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
        except SchedulerError as error:  # the next one may be in time
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
    except RetriesExhausted:
        if rules.give_up is None:
            raise error from None
        await rules.give_up(firing, error)
