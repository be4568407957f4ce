"""How long others have the loop after a slice."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest

from light_scheduler.web.limits import slices
from light_scheduler.web.limits.slices import REST, Credit, LoopTime


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
    async with LoopTime(rest=9.0, credit=Credit(0.0)) as time:
        machine.work(wall_s=0.05, cpu_s=0.002)  # other processes had the processor meanwhile
        assert time.slice_is_over()
        await time.rest()
        machine.work(wall_s=0.001, cpu_s=0.001)
    assert machine.rests == [0.018, 0.009]


@pytest.mark.parametrize("waits", [1, None], ids=["waited", "not known"])
async def test_or_of_all_the_time_if_the_slice_waited_itself(machine: Machine, waits: int | None) -> None:
    machine.waits = None if waits is None else 0
    async with LoopTime(rest=9.0, credit=Credit(0.0)):
        machine.work(wall_s=0.01, cpu_s=0.001)
        machine.waits = waits
    assert machine.rests == [0.09]


@pytest.mark.parametrize(("cpu_s", "rests"), [(0.0019, []), (0.002, [0.006])])
async def test_a_short_last_slice_may_be_spared_the_rest(machine: Machine, cpu_s: float, rests: list[float]) -> None:
    async with LoopTime(rest=3.0, credit=Credit(0.0), spared_s=0.002) as time:
        machine.work(wall_s=0.05, cpu_s=cpu_s)
        assert time.held_s() == cpu_s
    assert machine.rests == rests


async def test_a_request_is_over_by_its_processor_time_whatever_the_clock_says(machine: Machine) -> None:
    async with LoopTime(0.01, 9.0, Credit(0.0)) as time:
        machine.work(wall_s=1.0, cpu_s=0.006)
        assert not time.is_used_up()
        await time.rest()
        machine.work(wall_s=0.004, cpu_s=0.004)
        assert time.is_used_up()


async def test_a_worker_that_was_asked_nothing_for_a_while_answers_with_short_rests(machine: Machine) -> None:
    credit = Credit(0.004)

    async def work(seconds: float) -> float:
        async with LoopTime(credit=credit):
            machine.work(seconds, seconds)
        return machine.rests[-1] / seconds

    assert [round(await work(0.002)) for _ in range(4)] == [2, 2, REST, REST]
    machine.wall_s += 0.04
    assert [round(await work(0.002)) for _ in range(4)] == [2, 2, REST, REST]


async def test_on_average_others_have_the_loop_as_long_as_without_credit(machine: Machine) -> None:
    credit, used_s = Credit(), 0.0
    while machine.wall_s < 60:
        async with LoopTime(credit=credit):
            machine.work(0.002, 0.002)
            used_s += 0.002
    assert used_s <= 60 / (1 + REST) + slices.CREDIT_S + 0.002


async def test_a_count_rests_no_longer_for_having_credit(machine: Machine) -> None:
    async with LoopTime(rest=1.0, credit=Credit(1.0)):
        machine.work(0.002, 0.002)
    assert machine.rests == [0.002]


async def test_an_answer_that_is_awaited_leaves_the_loop_to_others(machine: Machine) -> None:
    async with LoopTime(0.004, 9.0, Credit(0.0)) as time:
        machine.work(0.001, 0.001)
        with time.waiting():
            machine.work(wall_s=0.005, cpu_s=0.005)  # others were at work
        machine.work(0.0005, 0.0005)
        assert not time.slice_is_over()
        machine.work(0.0005, 0.0005)
        assert time.slice_is_over()
        assert not time.is_used_up()
        await time.rest()
        machine.work(0.002, 0.002)
        assert time.is_used_up()
    assert machine.rests == [0.013, 0.018], "less what they had already; and only for what came after"


def test_a_wait_of_this_thread_is_counted() -> None:
    before = slices.waits()
    assert before is not None
    Event().wait(0.001)
    after = slices.waits()
    assert after is not None
    assert after > before
