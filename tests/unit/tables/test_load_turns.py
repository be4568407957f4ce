"""Who may fill a table from nothing, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from light_scheduler.tables.load_turns import Loads


class Copies:
    """Copies that want turns; `loading` are those that have one, in the order in which they got it."""

    def __init__(self, turns: int) -> None:
        self.loads = Loads(turns)
        self.loading: list[str] = []
        self._done: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def want(self, *names: str, is_lane: bool = False) -> None:
        for name in names:
            if is_lane:
                self.loads.announce(name)
            self._done[name] = asyncio.Event()
            self._tasks[name] = asyncio.create_task(self._load(name, is_lane=is_lane))
        await self._settle()

    async def finish(self, name: str) -> None:
        self._done[name].set()
        await self._tasks.pop(name)
        await self._settle()

    async def stop(self) -> None:
        for done in self._done.values():
            done.set()
        self.loads.look_again()
        await asyncio.gather(*self._tasks.values())

    async def _load(self, name: str, *, is_lane: bool) -> None:
        async with self.loads.turn(is_lane=is_lane, stopping=self._done[name].is_set):
            self.loading.append(name)
            await self._done[name].wait()
            self.loading.remove(name)
        self.loads.withdraw(name)

    @staticmethod
    async def _settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@asynccontextmanager
async def copies_with(turns: int) -> AsyncIterator[Copies]:
    copies = Copies(turns)
    yield copies
    await copies.stop()


async def test_no_more_are_filled_at_a_time_than_there_are_turns() -> None:
    async with copies_with(2) as copies:
        await copies.want("a", "b", "c", is_lane=True)
        assert copies.loading == ["a", "b"]
        await copies.finish("a")
        assert copies.loading == ["b", "c"]


async def test_a_standby_that_came_first_waits_for_every_lane_that_is_announced() -> None:
    async with copies_with(2) as copies:
        copies.loads.announce("fencing")
        await copies.want("standby")
        assert copies.loading == []
        await copies.want("lane", is_lane=True)
        assert copies.loading == ["lane"]
        await copies.finish("lane")
        assert copies.loading == []
        copies.loads.withdraw("fencing")
        await copies.finish("standby")


async def test_standbys_leave_a_turn_to_a_lane_that_comes_later() -> None:
    async with copies_with(2) as copies:
        await copies.want("s1", "s2")
        assert copies.loading == ["s1"]
        await copies.want("lane", is_lane=True)
        assert copies.loading == ["s1", "lane"]


async def test_a_single_turn_is_for_standbys_too_while_no_lane_wants_it() -> None:
    async with copies_with(1) as copies:
        await copies.want("s1", "s2")
        assert copies.loading == ["s1"]
        await copies.want("lane", is_lane=True)
        await copies.finish("s1")
        assert copies.loading == ["lane"]
        await copies.finish("lane")
        assert copies.loading == ["s2"]


async def test_one_that_is_to_stop_waits_no_longer() -> None:
    async with copies_with(1) as copies:
        await copies.want("lane", is_lane=True)
        await copies.want("standby")
    assert copies.loading == []
