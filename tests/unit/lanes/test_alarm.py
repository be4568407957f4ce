"""The sleep of a lane."""

from __future__ import annotations

import asyncio

import pytest

from light_scheduler.lanes.alarm import Alarm


class NoTimer:
    def arm(self, due: int | None) -> None:
        """Never tick."""

    def cancel(self) -> None:
        """Never tick."""


@pytest.fixture
def alarm() -> Alarm:
    return Alarm(lambda _: NoTimer())


async def test_a_pause_ends_by_itself(alarm: Alarm) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await alarm.pause(0.05)
    assert loop.time() - begun >= 0.05


@pytest.mark.parametrize("end", [Alarm.ring, Alarm.close])
async def test_a_pause_ends_when_somebody_rings_or_the_lane_closes(alarm: Alarm, end: object) -> None:
    assert callable(end)
    pause = asyncio.create_task(alarm.pause(3_600))
    await asyncio.sleep(0)
    end(alarm)
    await asyncio.wait_for(pause, 10)


async def test_who_has_rung_before_lets_nobody_pause(alarm: Alarm) -> None:
    alarm.ring()
    await asyncio.wait_for(alarm.pause(3_600), 10)
    alarm.reset()
    pause = asyncio.create_task(alarm.pause(3_600))
    await asyncio.sleep(0)
    assert not pause.done()
    pause.cancel()
