"""When a lane leaves time between its transactions."""

from __future__ import annotations

import pytest

from light_scheduler.lanes.gathering import FEW, MOST_MS, Gathering, spacing_ms


@pytest.mark.parametrize(
    ("waits", "spacing"), [(0.0, 0), (0.5, 0), (0.625, MOST_MS // 2), (0.75, MOST_MS), (1.0, MOST_MS)]
)
def test_the_longer_the_thread_waits_for_a_processor_the_more_time_is_left(waits: float, spacing: int) -> None:
    assert spacing_ms(waits) == spacing


class Lane:
    """A lane's gathering on a machine that is short of processors, at a time that is set."""

    def __init__(self) -> None:
        self.at, self.waits = 100.0, 1.0
        self.gathering = Gathering(lambda: self.waits, lambda: self.at)

    def commit(self, events: int) -> None:
        self.gathering.begin()
        self.at += 0.05
        self.gathering.ended(events)


def test_the_time_is_counted_from_the_beginning_of_the_transaction_before() -> None:
    lane = Lane()
    lane.commit(1)
    assert lane.gathering.left_ms() == pytest.approx(MOST_MS - 50, abs=1)
    assert lane.gathering.left_ms() == 0, "once for each"
    lane.commit(1)
    lane.at += MOST_MS / 1_000
    assert lane.gathering.left_ms() == 0


@pytest.mark.parametrize(("firings", "waits"), [(0, 1.0), (FEW, 1.0), (1, 0.4)])
def test_nothing_is_left_after_a_large_transaction_or_with_processors_to_spare(firings: int, waits: float) -> None:
    lane = Lane()
    assert lane.gathering.left_ms() == 0, "there was none before"
    lane.commit(firings)
    lane.waits = waits
    assert lane.gathering.left_ms() == 0


def test_nothing_is_left_after_a_transaction_that_failed_or_left_something_over() -> None:
    lane = Lane()
    lane.commit(1)
    lane.gathering.begin()
    assert lane.gathering.left_ms() == 0
