"""The last instant of the year 9999: ranges that end there, and what is due then."""

from __future__ import annotations

from typing import Any

LAST = 253_402_300_799_999
"""UTC epoch ms."""

RANGES = [
    {"by": "day", "due_from": "253402300799999"},
    {"by": "hour", "due_from": "253402300000000", "due_to": "253402300799999"},
    {"by": "minute", "due_from": "253402300799000"},
]
"""Query strings."""

DUE = 4


def put_at_the_last_instant(cluster: Any) -> None:
    """Store what is due then, in each of as many partitions, and a paused schedule, which is due never."""
    for number in range(DUE):
        cluster.put(f"last-{number}", partition=number, due=LAST)
    cluster.put("paused", due=LAST, progress={"paused": True})
