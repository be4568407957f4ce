"""What one partition hands to another when a commands topic has grown."""

from __future__ import annotations

from typing import NamedTuple


class Adoption(NamedTuple):
    """A schedule is moved, from `partition`; the record that says so has it as its value."""

    partition: int


class Emptied(NamedTuple):
    """A partition that holds nothing any more that belongs elsewhere, among so many `partitions`."""

    partition: int
    partitions: int
