from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from light_scheduler.agents import DueTimer
from light_scheduler.clock import SettableClock

AT = 1_767_225_600_000
TICK_MS = 1_000


class SettableLoop:
    """A loop's timers, and no more: its time moves by `advance` only."""

    def __init__(self) -> None:
        self.now_ms = 0.0
        self._waiting: list[tuple[float, Callable[[], None], Handle]] = []

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle:
        handle = Handle()
        self._waiting.append((self.now_ms + delay * 1_000, callback, handle))
        return handle

    def advance(self, ms: float) -> None:
        self.now_ms += ms
        due = [each for each in self._waiting if each[0] <= self.now_ms]
        self._waiting = [each for each in self._waiting if each[0] > self.now_ms]
        for _, callback, handle in due:
            if not handle.is_cancelled:
                callback()


class Handle:
    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Ticks:
    """A timer with its clock and loop, which move together, and its ticks."""

    def __init__(self, loop: SettableLoop) -> None:
        self.clock = SettableClock(AT)
        self.loop = loop
        self.count = 0
        self.timer = DueTimer(self.clock, TICK_MS, self._tick)

    def _tick(self) -> None:
        self.count += 1

    def after(self, ms: int) -> int:
        """Let time pass; return how many ticks there have been."""
        self.clock.advance(ms)
        self.loop.advance(ms)
        return self.count


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Ticks:
    loop = SettableLoop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return Ticks(loop)


def test_it_ticks_when_the_next_schedule_is_due_and_not_before(ticks: Ticks) -> None:
    ticks.timer.arm(AT + 250)
    assert ticks.after(249) == 0
    assert ticks.after(1) == 1


@pytest.mark.parametrize("due", [AT, AT - 1, AT - 10**9, 0])
def test_what_is_due_already_makes_it_tick_at_once(ticks: Ticks, due: int) -> None:
    ticks.timer.arm(due)
    assert ticks.after(0) == 1


@pytest.mark.parametrize("due", [None, AT + TICK_MS, AT + TICK_MS + 1, AT + 10**12])
def test_it_ticks_after_the_regular_interval_at_the_latest(ticks: Ticks, due: int | None) -> None:
    ticks.timer.arm(due)
    assert ticks.after(TICK_MS - 1) == 0
    assert ticks.after(1) == 1


def test_it_ticks_once_until_it_is_armed_again(ticks: Ticks) -> None:
    ticks.timer.arm(AT + 10)
    assert ticks.after(10) == 1
    assert ticks.after(10 * TICK_MS) == 1
    ticks.timer.arm(None)
    assert ticks.after(TICK_MS) == 2


@pytest.mark.parametrize(("first", "second"), [(AT + 10, AT + 500), (AT + 500, AT + 10), (None, AT + 10)])
def test_arming_again_takes_the_place_of_what_was_armed_before(ticks: Ticks, first: int | None, second: int) -> None:
    ticks.timer.arm(first)
    ticks.timer.arm(second)
    assert ticks.after(second - AT - 1) == 0
    assert ticks.after(1) == 1
    assert ticks.after(10 * TICK_MS) == 1


def test_a_cancelled_timer_does_not_tick_until_it_is_armed_again(ticks: Ticks) -> None:
    ticks.timer.cancel()
    ticks.timer.arm(AT + 10)
    ticks.timer.cancel()
    ticks.timer.cancel()
    assert ticks.after(10 * TICK_MS) == 0
    ticks.timer.arm(None)
    assert ticks.after(TICK_MS) == 1


def test_a_clock_that_is_set_forth_is_noticed_at_the_regular_tick(ticks: Ticks) -> None:
    ticks.timer.arm(AT + 3_600_000)
    ticks.clock.set(AT + 3_600_000)
    ticks.loop.advance(TICK_MS)
    assert ticks.count == 1


async def test_on_a_real_loop_a_due_schedule_wakes_who_waits_for_the_tick() -> None:
    ticked = asyncio.Event()
    timer = DueTimer(SettableClock(AT), 60_000, ticked.set)
    timer.arm(AT + 5)
    assert not ticked.is_set()
    async with asyncio.timeout(30):
        await ticked.wait()
