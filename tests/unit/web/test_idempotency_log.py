"""Reading the idempotency topic beside lanes that have to fire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from light_scheduler.web.commands.idempotency.log import SLICE, ClaimLog
from light_scheduler.wire import CommandRecord, UnsentRecord
from light_scheduler.wire.idempotency import ClaimMade, claim_record

COUNT = 50 * SLICE


class Backlog:
    """Records that have all been fetched."""

    async def __aiter__(self) -> AsyncIterator[CommandRecord]:
        for offset in range(COUNT):
            yield UnsentRecord(*claim_record(f"{offset:032x}:1", ClaimMade("f", "a")), 5, 0, offset)
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


async def test_a_long_log_leaves_the_loop_to_others_while_it_is_read() -> None:
    async def follow(timeout_s: float) -> Backlog:
        return Backlog()

    log = ClaimLog(follow)
    await log.open(1)
    turns = 0
    while log.reached < COUNT - 1:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= COUNT // SLICE
    assert len(log.claims) == COUNT
    await log.close()
