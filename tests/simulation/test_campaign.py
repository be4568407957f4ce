"""Thousands of histories with crashes between any two steps: each delivers what the model says, exactly once."""

from __future__ import annotations

import os

import pytest

from simulation.campaign import POINTS, campaign

PART = 10_000
"""How many histories one test plays at least, if there are so many."""
REACHES_EVERY_POINT = 5_000
"""How many histories it takes for a fault to strike at every point."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    histories = metafunc.config.getoption("--histories")
    metafunc.parametrize("seeds", [pytest.param(part, id=f"{part.start}-{part.stop - 1}") for part in parts(histories)])


def parts(histories: int) -> list[range]:
    """Divide so many histories evenly: the processes of a run share the tests."""
    count = max(1, histories // PART)
    return [range(histories * number // count, histories * (number + 1) // count) for number in range(count)]


@pytest.mark.timeout(3_600)
def test_whatever_strikes_the_commits_are_those_of_a_scheduler_that_nothing_happens_to(
    seeds: range, pytestconfig: pytest.Config
) -> None:
    sharing = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    processes = max(1, len(os.sched_getaffinity(0)) // sharing)

    result = campaign(seeds, processes, standing_back=pytestconfig.getoption("--soak"))  # others may measure times

    assert result.failures == {}, (
        "python -m simulation --shrink --seed N, with `tests` on the path, shows what happened"
    )
    assert result.fired > result.histories == len(seeds)
    if len(seeds) >= REACHES_EVERY_POINT:
        assert {point for _, point in result.struck} == POINTS
