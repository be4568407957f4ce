"""Retries requests that failed because a broker or another server is unavailable."""

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
        """Whether the service should stop."""
        ...

    async def sleep(self, n: float) -> None:
        """Wait for `n` seconds, or until the service should stop."""
        ...


class Backoff:
    """Pauses between tries, in seconds. Each is twice as long as the previous one, from `first_s` up to `last_s`."""

    def __init__(self, first_s: float, last_s: float) -> None:
        self._first_s = self._next_s = first_s
        self._last_s = last_s

    def next_s(self, most_s: float | None = None) -> float:
        """Return the pause after a failure. The pause after the next failure is at most `most_s`, if given."""
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, self._last_s if most_s is None else most_s)
        return pause_s

    def reset(self) -> None:
        """Start again with the first pause, after a success."""
        self._next_s = self._first_s


async def repeat(step: Callable[[], Awaitable[None]], what: str, service: Stoppable, log: logging.Logger) -> None:
    """Repeat a step while a service runs, with a pause of a second after a failure. `what` describes it in the log."""
    while not service.should_stop:
        try:
            await step()
        except (SchedulerError, KafkaError, OSError) as error:
            log.warning("%s: %r; trying again", what, error)
            await service.sleep(RETRY_S)
