"""What follows from how a firing was processed: it is completed, delivered again later, or given up."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

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


async def handle(client: SchedulerClient, firing: Firing, topic: str, rules: HandlingRules, process: Handler) -> None:
    """Process a firing that came from `topic`, and have Kafka acknowledge what follows from the outcome.

    An error of `process` is logged. Raises BrokerError, and the error after the last attempt unless `give_up` is given.
    """
    try:
        await process(firing)
    except Exception as error:  # noqa: BLE001 - the handler is the user's; every failure of it is tried again
        log.warning("%s/%s failed: %r", firing.tenant, firing.firing_id, error)
        await _failed(client, firing, topic, rules, error)
    else:
        if rules.completes:
            await client.complete(firing, wait=False)


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
