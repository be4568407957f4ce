"""Takes over the transactional ids of a lane.

A lane has one transactional id, and spares in case it is stuck. If a partition loses its leader before a transaction's
marker is written there, the transaction does not end until there is a leader again, and the id cannot begin another
one. The outcome of that transaction is already decided, and all other partitions get their markers immediately.

So a new owner fences all ids of its lane, and uses the first that is not stuck. A stuck id has no open transaction, and
is fenced soon after it is free. If a former owner is faster, `continuity` detects it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from light_scheduler.errors import LaneError

from .retrying import Backoff

SPARES = 3
OTHERS_S = 3.0
"""How long to wait for answers about other ids once one can be used."""
FIRST_REFENCE_S, LAST_REFENCE_S = 0.1, 5.0

log = logging.getLogger(__name__)


def ids_of(transactional_id: str) -> list[str]:
    """Return a lane's transactional ids, the preferred one first."""
    return [transactional_id, *(f"{transactional_id}~{number}" for number in range(1, SPARES + 1))]


class Fencing:
    """The transactional ids of one lane. `fence` returns whether an id could be fenced."""

    def __init__(self, transactional_id: str, fence: Callable[[str], Awaitable[bool]]) -> None:
        self._ids = ids_of(transactional_id)
        self._fence = fence
        self._refencing: list[asyncio.Task[None]] = []
        self.found_stuck = False
        """Whether an id was stuck during the takeover. Markers of its last transaction may then be missing."""

    async def take_over(self) -> str:
        """Fence all ids and return the one to use. Raises LaneError if all are stuck, or KafkaError.

        An id whose coordinator does not answer is treated as stuck.
        """
        await self.close()
        asked = {each: asyncio.ensure_future(self._fence(each)) for each in self._ids}
        try:
            fenced = await _answered(asked)
        finally:
            for answer in asked.values():
                answer.cancel()
            await asyncio.wait(asked.values())
        stuck = [each for each in self._ids if each not in fenced]
        self.found_stuck = bool(stuck)
        if not fenced:
            raise LaneError(f"all transactional ids of {self._ids[0]} are stuck")
        if stuck:
            log.warning(
                "transactional ids are stuck, usually until partitions of their transactions have leaders again: %s",
                ", ".join(each + _reason(asked[each]) for each in stuck),
            )
            self._refencing = [asyncio.create_task(self._fence_later(each), name=f"fencing {each}") for each in stuck]
        return next(each for each in self._ids if each in fenced)

    async def close(self) -> None:
        """Stop fencing."""
        tasks, self._refencing = self._refencing, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _fence_later(self, stuck: str) -> None:
        backoff = Backoff(FIRST_REFENCE_S, LAST_REFENCE_S)
        while True:
            await asyncio.sleep(backoff.next_s())
            try:
                if await self._fence(stuck):
                    log.info("transactional id %s is no longer stuck; it is fenced", stuck)
                    return
            except Exception as error:  # noqa: BLE001 - retried after any error
                log.debug("%s cannot be fenced: %r", stuck, error)


async def _answered(asked: Mapping[str, asyncio.Future[bool]]) -> set[str]:
    """Return the fenced ids. Once one is fenced, the others have `OTHERS_S`. Raises an error if none is fenced."""
    waiting: set[asyncio.Future[bool]] = set(asked.values())
    timeout_s: float | None = None
    while waiting:
        done, waiting = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            break
        if any(answer.exception() is None and answer.result() for answer in done):
            timeout_s = OTHERS_S
    answers = {each: answer for each, answer in asked.items() if answer.done()}
    errors = [error for answer in answers.values() if (error := answer.exception()) is not None]
    fenced = {each for each, answer in answers.items() if answer.exception() is None and answer.result()}
    if errors and not fenced:
        raise errors[0]
    return fenced


def _reason(answer: asyncio.Future[bool]) -> str:
    """Return the error with which fencing an id failed, as text; empty if it was only stuck."""
    error = None if answer.cancelled() else answer.exception()
    return "" if error is None else f" ({error!r})"
