from __future__ import annotations

import pytest

from light_scheduler.lanes.cycle.pace import CYCLE_MS, LEAST, MOST, Pace


def after(*cycles: tuple[int, int]) -> int:
    pace = Pace()
    for events, took_ms in cycles:
        pace.observe(events, took_ms)
    return pace.limit


@pytest.mark.parametrize(
    ("cycles", "limit"),
    [
        pytest.param([], MOST, id="at first"),
        pytest.param([(5_000, 800)], 1_250, id="a full cycle that took four times as long as it should"),
        pytest.param([(5_000, 20)], MOST, id="never more than the most"),
        pytest.param([(5_000, 60_000)], LEAST, id="never less than the least"),
        pytest.param([(250, 3_000)], MOST, id="a cycle that was nearly empty tells nothing"),
        pytest.param([(5_000, 800), (1_250, 100)], 2_500, id="it grows again"),
        pytest.param([(5_000, 60_000), (250, 1)], 2 * LEAST, id="but to twice as much at a time"),
        pytest.param([(5_000, 0)], MOST, id="in no time"),
    ],
)
def test_what_fits_into_a_cycle_is_learnt_from_those_before(cycles: list[tuple[int, int]], limit: int) -> None:
    assert after(*cycles) == limit


def test_it_settles_where_cycles_take_as_long_as_they_should() -> None:
    def took(events: int) -> int:
        return 30 + events * 4 * 26 // 1_000  # four lanes share the thread

    pace = Pace()
    for _ in range(10):
        pace.observe(pace.limit, took(pace.limit))
    assert took(pace.limit) == pytest.approx(CYCLE_MS, rel=0.05)
