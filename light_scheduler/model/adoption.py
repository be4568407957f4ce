"""Messages by which one partition hands schedules to another after a commands topic has grown."""

from __future__ import annotations

from typing import NamedTuple


class Adoption(NamedTuple):
    """A schedule has moved here from `partition`; it is the value of the record."""

    partition: int


class Emptied(NamedTuple):
    """A partition that has handed over all that belongs elsewhere, in a topic of `partitions`."""

    partition: int
    partitions: int
