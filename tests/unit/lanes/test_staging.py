from __future__ import annotations

import pytest

from light_scheduler.lanes.context.staging import NO_STAGING, Staging

SECOND = 1_767_225_600_000
STAGING = Staging(ahead_ms=40)


@pytest.mark.parametrize(("ahead", "prepared"), [(41, False), (40, True), (1, True), (0, False), (-5, False)])
def test_a_full_second_is_prepared_for_shortly_before_it(ahead: int, prepared: bool) -> None:
    assert STAGING.instant(SECOND, SECOND - ahead) == (SECOND if prepared else None)


@pytest.mark.parametrize("due", [SECOND + 1, SECOND + 500, None])
def test_nothing_else_is_prepared_for(due: int | None) -> None:
    assert STAGING.instant(due, SECOND - 10) is None
    assert STAGING.waking_time(due) == due


def test_a_lane_wakes_early_for_a_full_second() -> None:
    assert STAGING.waking_time(SECOND) == SECOND - 40


def test_a_clock_that_was_set_back_makes_the_instant_too_far_away() -> None:
    assert STAGING.is_near(SECOND, SECOND - 40)
    assert not STAGING.is_near(SECOND, SECOND - 3_600_000)


def test_it_can_be_turned_off() -> None:
    assert NO_STAGING.instant(SECOND, SECOND - 1) is None
    assert NO_STAGING.waking_time(SECOND) == SECOND


@pytest.mark.parametrize(
    ("now", "ahead_ms", "longest"), [(5_000, 70, 930), (5_900, 70, 30), (5_929, 70, 1), (5_930, 70, 0), (5_999, 70, 0)]
)
def test_a_pause_may_last_until_a_full_second_has_to_be_prepared(now: int, ahead_ms: int, longest: int) -> None:
    staging = Staging(ahead_ms)
    assert staging.allows_pause(1, now) is (longest > 0)
    assert staging.allows_pause(max(1, longest), now) is (longest > 0)
    assert not staging.allows_pause(longest + 1, now)


def test_a_pause_may_last_as_long_as_it_likes_where_nothing_is_prepared() -> None:
    assert Staging(0).allows_pause(60_000, 5_999)
