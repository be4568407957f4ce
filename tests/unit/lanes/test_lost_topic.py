"""How many partitions a commands topic had that was lost."""

from __future__ import annotations

import pytest

from light_scheduler.lanes.growing.lost_topic import Doubt, Remains, partitions_of_lost
from light_scheduler.model.partitioning import Partitioning

MOVING = Partitioning(12, 4, frozenset(range(12)), frozenset(range(11)))
MOVED = Partitioning(12, 4, frozenset(range(12)), frozenset(range(12)))


@pytest.mark.parametrize(
    ("remains", "partitions"),
    [
        (Remains(12, 12, Partitioning(12), moves=True), 12),
        (Remains(12, 4, Partitioning(4), moves=True), 4),  # `topics grow` was interrupted after the changelog
        (Remains(12, 2, Partitioning(4), moves=True), 4),
        (Remains(12, 7, MOVED, moves=True), 12),
        (Remains(24, 12, MOVED, moves=True), 12),
        (Remains(12, 12, MOVING, moves=False), 12),  # of another scheduler, whose producers choose partitions
        (Remains(12, 12, None, moves=True), 12),
        (Remains(12, 0, None, moves=True), 12),
        (Remains(12, 0, Partitioning(4), moves=True), 12),  # nothing is stored
        (Remains(12, 0, MOVING, moves=True), 12),
    ],
)
def test_the_last_number_of_which_every_schedule_is_known_to_follow_is_right(remains: Remains, partitions: int) -> None:
    assert partitions_of_lost(remains) == partitions


@pytest.mark.parametrize(
    ("remains", "numbers", "reason"),
    [
        (Remains(12, 12, MOVING, moves=True), (4, 12), "schedules were moving from 4 to 12 partitions"),
        (Remains(12, 4, MOVING, moves=True), (4, 12), "schedules were moving"),
        (Remains(12, 4, None, moves=True), (4, 12), "no worker recorded it, and partition 4 to 11 of the changelog"),
        (Remains(12, 4, None, moves=True), (4, 12), "never had a record, as after an interrupted `topics grow`"),
        (Remains(5, 4, None, moves=True), (4, 5), "and partition 4 of the changelog never had a record"),
        (Remains(12, 4, None, moves=False), (4, 12), "workers record it only for the dialects `native` and `json`"),
        (Remains(12, 4, None, moves=False), (4, 12), "never had a record, as if it was added for a growth, or"),
        (Remains(12, 9, Partitioning(4), moves=True), (4, 12), "recorded 4, and 9 of 12 changelog partitions have"),
        (Remains(4, 4, Partitioning(12), moves=True), (4, 12), "recorded 12, and 4 of 4 changelog partitions have"),
    ],
)
def test_if_schedules_may_be_where_two_numbers_say_none_is_chosen(
    remains: Remains, numbers: tuple[int, ...], reason: str
) -> None:
    doubt = partitions_of_lost(remains)
    assert isinstance(doubt, Doubt)
    assert doubt.numbers == numbers
    assert reason in doubt.reason
