from __future__ import annotations

import pytest

from light_scheduler.tables.recovery import Restoration


class Watch:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_restoration_tells_how_far_it_is_how_fast_and_how_long_it_will_take() -> None:
    watch = Watch()
    restoration = Restoration(1_000, 5_000_000, watch)
    assert str(restoration.status()) == "0 of 4,999,000 changelog offsets (0 %), 0/s"
    watch.now += 10
    restoration.reached(1_001_000, 900_000)
    status = restoration.status()
    assert (status.done, status.total, status.records, status.seconds) == (1_000_000, 4_999_000, 900_000, 10)
    assert status.per_s == 100_000
    assert status.seconds_left == pytest.approx(39.99)
    assert str(status) == "1,000,000 of 4,999,000 changelog offsets (20 %), 100,000/s, 40 s left"


def test_a_restoration_that_is_finished_has_come_to_the_end_and_stands_still() -> None:
    watch = Watch()
    restoration = Restoration(0, 100, watch)
    restoration.reached(90, 50)  # the rest are markers
    watch.now += 2
    restoration.finish()
    watch.now += 50
    assert (restoration.status().done, restoration.status().seconds) == (100, 2)
    assert str(Restoration(7, 7, watch).status()) == "0 of 0 changelog offsets (100 %), 0/s"


def test_a_restoration_that_goes_on_to_another_end_counts_all_of_it() -> None:
    watch = Watch()
    restoration = Restoration(0, 100, watch)
    restoration.reached(100, 90)
    watch.now += 2
    restoration.finish()
    restoration.extend(150)
    assert (restoration.status().done, restoration.status().total, restoration.records) == (100, 150, 90)
    watch.now += 3
    restoration.reached(150, 50)
    restoration.finish()
    assert (restoration.status().done, restoration.records, restoration.status().seconds) == (150, 140, 5)


def test_a_restoration_has_news_every_five_seconds() -> None:
    watch = Watch()
    restoration = Restoration(0, 100, watch)
    told = []
    for _ in range(20):
        watch.now += 1
        told.append(restoration.is_worth_a_line())
    assert [second for second, is_told in enumerate(told, 1) if is_told] == [5, 10, 15, 20]
