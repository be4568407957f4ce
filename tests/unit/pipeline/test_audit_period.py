"""Periods that an audit refuses: nobody may take them for audits without faults."""

from __future__ import annotations

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.audit.bounds import Bounds
from light_scheduler.pipeline.audit.period import require_past, require_period

NOW = 1_767_225_600_000


@pytest.mark.parametrize("is_archive", [False, True])
@pytest.mark.parametrize(("start", "end"), [(0, NOW), (NOW - 1, NOW - 1), (NOW - 10, NOW - 5)])
def test_a_period_that_is_over_is_judged(start: int, end: int, is_archive: bool) -> None:
    require_period(Bounds(start, end, 0), is_archive=is_archive)


def test_a_period_that_ends_before_it_begins_is_an_error() -> None:
    with pytest.raises(JobError, match=r"begin at 2026-01-01T00:00:00.000Z .* earlier --from"):
        require_period(Bounds(NOW, NOW - 1, 0), is_archive=False)


@pytest.mark.parametrize("end", [NOW - 86_400_000, -10_000], ids=["stale", "empty"])
def test_an_archive_that_ends_before_the_period_begins_is_an_error(end: int) -> None:
    with pytest.raises(JobError, match="run the job archive first"):
        require_period(Bounds(NOW, end, 0), is_archive=True)


def test_a_period_that_the_next_one_follows_has_to_be_over() -> None:
    require_past(Bounds(0, NOW, 0), NOW)
    with pytest.raises(JobError, match=r"end at 2026-01-01T00:00:00.001Z, which is in the future"):
        require_past(Bounds(0, NOW + 1, 0), NOW)
