from __future__ import annotations

import itertools

import pytest

from light_scheduler.errors import IllegalTransition
from light_scheduler.model.lane_state import LaneState

LEGAL = {
    ("created", "fenced"),
    ("fenced", "restoring"),
    ("restoring", "running"),
    ("created", "failed"),
    ("fenced", "failed"),
    ("restoring", "failed"),
    ("running", "failed"),
    ("failed", "failed"),  # a lane whose next attempt fails before it is fenced
    ("failed", "fenced"),
    ("created", "closing"),
    ("fenced", "closing"),
    ("restoring", "closing"),
    ("running", "closing"),
    ("failed", "closing"),
    ("closing", "closed"),
}


@pytest.mark.parametrize(("start", "end"), list(itertools.product(LaneState, LaneState)))
def test_a_lane_makes_the_moves_of_its_life_and_no_others(start: LaneState, end: LaneState) -> None:
    if (start.value, end.value) in LEGAL:
        assert start.to(end) is end
    else:
        with pytest.raises(IllegalTransition, match=f"from {start} to {end}"):
            start.to(end)
