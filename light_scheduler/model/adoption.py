"""Messages with which a partition hands over schedules to another after a commands topic has grown."""

from __future__ import annotations

from typing import NamedTuple


class Adoption(NamedTuple):
    """A schedule has moved here from `partition`. The record's value is the schedule."""

    partition: int


class Emptied(NamedTuple):
    """In a topic of `partitions`, `partition` has handed over all schedules that belong elsewhere."""

    partition: int
    partitions: int
