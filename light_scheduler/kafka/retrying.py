"""Retrying requests that failed because a broker or another server is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from aiokafka.errors import KafkaError

from light_scheduler.errors import SchedulerError

RETRY_S = 1.0


class Stoppable(Protocol):
    """A service of a worker."""

    @property
    def should_stop(self) -> bool:
        """Whether it is to end."""
        ...

    async def sleep(self, n: float) -> None:
        """Wait for `n` seconds, or until it is to end."""
        ...


class Backoff:
    """Pauses between tries (s): from the first to the last, each is twice as long as the one before."""

    def __init__(self, first_s: float, last_s: float) -> None:
        self._first_s = self._next_s = first_s
        self._last_s = last_s

    def next_s(self, most_s: float | None = None) -> float:
        """Return how long to pause after a failure; after the next one, at most `most_s`."""
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, self._last_s if most_s is None else most_s)
        return pause_s

    def reset(self) -> None:
        """Begin with the first pause again: a try went well."""
        self._next_s = self._first_s


async def repeat(step: Callable[[], Awaitable[None]], what: str, service: Stoppable, log: logging.Logger) -> None:
    """Take a step again and again for as long as a service runs, a second after it failed; `what` is for the log."""
    while not service.should_stop:
        try:
            await step()
        except (SchedulerError, KafkaError, OSError) as error:
            log.warning("%s: %r; trying again", what, error)
            await service.sleep(RETRY_S)
