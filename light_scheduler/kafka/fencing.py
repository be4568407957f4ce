"""Taking a lane's transactional ids over.

A lane has one transactional id, and spares for when that is stuck: a transaction that touched a partition whose leader
is lost before its markers are written there does not end until there is a leader again, and until then the id begins
no other. Whether it counts is decided all the same, and everybody else's partitions get their markers at once.

So a new owner fences all ids of its lane, and works under the first that is not stuck. One that is stuck has no open
transaction; it is fenced as soon as it answers, before a former owner that comes back could use it for long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from light_scheduler.errors import LaneError

SPARES = 3
REFENCE_S = 0.1

log = logging.getLogger(__name__)


def ids_of(transactional_id: str) -> list[str]:
    """Return a lane's transactional ids, the one to prefer first."""
    return [transactional_id, *(f"{transactional_id}~{number}" for number in range(1, SPARES + 1))]


class Fencing:
    """The transactional ids of one lane. `fence` returns whether an id could be fenced."""

    def __init__(self, transactional_id: str, fence: Callable[[str], Awaitable[bool]]) -> None:
        self._ids = ids_of(transactional_id)
        self._fence = fence
        self._refencing: asyncio.Task[None] | None = None
        self.found_stuck = False
        """Whether some id was stuck when the lane was taken over: markers of its last transaction may be missing."""

    async def take_over(self) -> str:
        """Fence all ids; return the one to work under. Raises LaneError if all are stuck, or KafkaError."""
        await self.close()
        answers = await asyncio.gather(*(self._fence(each) for each in self._ids))
        stuck = [each for each, is_fenced in zip(self._ids, answers, strict=True) if not is_fenced]
        self.found_stuck = bool(stuck)
        if len(stuck) == len(self._ids):
            raise LaneError(f"all transactional ids of {self._ids[0]} are stuck")
        if stuck:
            log.warning("stuck until what they touched has leaders again: %s", ", ".join(stuck))
            self._refencing = asyncio.create_task(self._fence_later(stuck), name=f"fencing {', '.join(stuck)}")
        return next(each for each in self._ids if each not in stuck)

    async def close(self) -> None:
        """Fence no more."""
        task, self._refencing = self._refencing, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _fence_later(self, stuck: list[str]) -> None:
        for each in stuck:
            while True:
                try:
                    if await self._fence(each):
                        log.info("%s is not stuck any more, and fenced", each)
                        break
                except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                    log.debug("%s cannot be fenced: %r", each, error)
                await asyncio.sleep(REFENCE_S)
