"""The order in which commands have arrived in a partition, which goes on when its topic is created again.

Offsets begin anew in a topic that was deleted and created again, or are given out twice if a log was cut short. So the
logs that a partition has had are numbered, and an arrival is the number of a log and an offset in it. In the first log,
arrivals are offsets.
"""

from __future__ import annotations

LOG = 1 << 50
"""Arrivals of a log. It is more than the records of any log, and allows 4,000 logs, and 8,000 moves between them."""


def arrival_in(log: int, offset: int) -> int:
    """Return the arrival of the command at an offset in log number `log`."""
    return log * LOG + offset


def offset_of(arrival: int) -> int:
    """Return the offset of the command with an arrival in its log."""
    return arrival % LOG
