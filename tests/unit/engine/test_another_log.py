"""Schedules that come to a log from another one, and where their commands were."""

from __future__ import annotations

import msgspec
import pytest
from support.tables import entry

from light_scheduler.engine.another_log import in_another_log, out_of_log
from light_scheduler.model import Entry
from light_scheduler.model.arrival import arrival_in, offset_of

LOGS = [(0, 0), (0, 3), (3, 0), (3, 3), (-1, 0), (-2, 5)]


def arrived(log: int, offset: int) -> Entry:
    stored = entry("a")
    return Entry(stored.schedule, msgspec.structs.replace(stored.progress, arrival=arrival_in(log, offset)))


@pytest.mark.parametrize(("of", "to"), LOGS)
def test_a_schedule_from_elsewhere_is_older_than_all_commands_of_the_log(of: int, to: int) -> None:
    moved = in_another_log(arrived(of, 70), to, bulk_offset=arrival_in(to, 5))
    assert moved.progress.arrival < arrival_in(to, 0) <= moved.progress.bulk_offset
    assert moved.schedule == arrived(of, 70).schedule


@pytest.mark.parametrize(("of", "to"), LOGS)
def test_schedules_of_one_log_keep_their_order(of: int, to: int) -> None:
    first, second = (in_another_log(arrived(of, offset), to).progress.arrival for offset in (70, 71))
    assert first < second


@pytest.mark.parametrize("to", [0, 1, 7])
def test_schedules_that_leave_one_log_keep_the_order_in_which_they_arrived_in_it_and_those_before_it(to: int) -> None:
    stored = [arrived(log, offset) for log, offset in ((-2, 9), (0, 70), (1, 80), (2, 5), (2, 6))]
    arrivals = [in_another_log(out_of_log(each, 2), to).progress.arrival for each in stored]
    assert arrivals == sorted(set(arrivals))


@pytest.mark.parametrize("log", [-3, 0, 1, 4_000])
def test_an_arrival_has_its_offset(log: int) -> None:
    assert offset_of(arrival_in(log, 4_711)) == 4_711
