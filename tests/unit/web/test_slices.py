"""How long others have the loop after a slice."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from light_scheduler.web import slices
from light_scheduler.web.slices import LoopTime


class Machine:
    """The clocks of this thread, as a test sets them, and the rests (s) that followed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall_s = self.cpu_s = 0.0
        self.waits: int | None = 0
        self.rests: list[float] = []
        monkeypatch.setattr(slices, "perf_counter", lambda: self.wall_s)
        monkeypatch.setattr(slices, "thread_time", lambda: self.cpu_s)
        monkeypatch.setattr(slices, "waits", lambda: self.waits)
        monkeypatch.setattr(asyncio, "sleep", self._rest)

    def work(self, wall_s: float, cpu_s: float) -> None:
        self.wall_s += wall_s
        self.cpu_s += cpu_s

    async def _rest(self, seconds: float, *_: Any) -> None:
        self.rests.append(round(seconds, 6))
        self.wall_s += seconds


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


async def test_others_have_the_loop_for_a_multiple_of_the_processor_time(machine: Machine) -> None:
    async with LoopTime(rest=9.0) as time:
        machine.work(wall_s=0.05, cpu_s=0.002)  # other processes had the processor meanwhile
        assert time.slice_is_over()
        await time.rest()
        machine.work(wall_s=0.001, cpu_s=0.001)
    assert machine.rests == [0.018, 0.009]


@pytest.mark.parametrize("waits", [1, None], ids=["waited", "not known"])
async def test_or_of_all_the_time_if_the_slice_waited_itself(machine: Machine, waits: int | None) -> None:
    machine.waits = None if waits is None else 0
    async with LoopTime(rest=9.0):
        machine.work(wall_s=0.01, cpu_s=0.001)
        machine.waits = waits
    assert machine.rests == [0.09]


async def test_a_request_is_over_by_its_processor_time_whatever_the_clock_says(machine: Machine) -> None:
    async with LoopTime(0.01, 9.0) as time:
        machine.work(wall_s=1.0, cpu_s=0.006)
        assert not time.is_used_up()
        await time.rest()
        machine.work(wall_s=0.004, cpu_s=0.004)
        assert time.is_used_up()


def test_a_wait_of_this_thread_is_counted() -> None:
    before = slices.waits()
    assert before is not None
    Event().wait(0.001)
    after = slices.waits()
    assert after is not None
    assert after > before
