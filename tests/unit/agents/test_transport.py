"""How the loop that fetches ends."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.agents.transport import LaneConsumer


class Consumer(LaneConsumer):
    """Lanes' consumer without Faust, which is cancelled in one of the things that it waits for."""

    should_stop = False

    def __init__(self, waits_in: str, *, ends: bool) -> None:
        self.app: Any = SimpleNamespace(should_stop=ends)
        self.lanes: Any = []
        self.waits = asyncio.Event()
        self.ended_waits = 0
        self._feeds = {}
        self._is_wanted = asyncio.Event()
        self._waits_in = waits_in
        self._thread: Any = SimpleNamespace(check_coordination=lambda: None, assigned=None, end_wait=self._end_wait)

    def _end_wait(self) -> None:
        self.ended_waits += 1

    def _to_fetch(self, epochs: Any) -> Any:
        return {("commands", 0)} if self._waits_in == "_getmany" else set()

    async def _seek_lanes(self, assignment: Any) -> None:
        await self._step("_seek_lanes")

    async def wait_first(self, *coros: Any, **_: Any) -> Any:
        for coro in coros:
            coro.close()
        await self._step("wait_first")

    async def _getmany(self, *_: Any) -> Any:
        await self._step("_getmany")

    async def _step(self, name: str) -> None:
        if name == self._waits_in:
            self.waits.set()
            await asyncio.Event().wait()


@pytest.mark.parametrize("waits_in", ["_seek_lanes", "wait_first", "_getmany"])
@pytest.mark.parametrize("ends", [True, False])
async def test_whatever_it_waits_for_it_ends_in_order_with_the_worker_and_starts_again_otherwise(
    waits_in: str, ends: bool
) -> None:
    consumer = Consumer(waits_in, ends=ends)
    fetching = asyncio.create_task(consumer._drain_messages(SimpleNamespace(should_stop=False)))
    await consumer.waits.wait()
    fetching.cancel()
    await asyncio.wait([fetching])
    assert fetching.cancelled() is not ends
    assert consumer.ended_waits == (waits_in == "_getmany"), "else it would take what comes next, for nobody"
