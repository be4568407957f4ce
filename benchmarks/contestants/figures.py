"""Computes figures from arrivals."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

from light_scheduler.bench.deliveries import Lateness
from light_scheduler.bench.workload import Workload

from .arrivals import Arrival

UNITS = {
    "accepted_per_s": "1/s",
    "burst_per_s": "1/s",
    "lateness_p50_ms": "ms",
    "lateness_p99_ms": "ms",
    "lateness_max_ms": "ms",
    "scheduler_bytes_per_pending": "B",
    "store_bytes_per_pending": "B",
    "missing": "count",
    "duplicate": "count",
    "early": "count",
    "wrong": "count",
    "killed_after": "count",
    "killed_missing": "count",
    "killed_duplicate": "count",
    "killed_early": "count",
    "killed_wrong": "count",
    "killed_left": "count",
    "killed_to_last_s": "s",
}
"""All possible figures of a round, in display order."""


class Count:
    """The deliveries of a workload.

    `came` counts different schedules, `duplicate` deliveries after a schedule's first, `early` those before due;
    `wrong` those with another payload, which count as nothing else. `last_at` is the time of the last delivery; 0 if
    there was none.
    """

    def __init__(self, work: Workload) -> None:
        self._work = work
        self._came = bytearray(work.messages)
        self._late = Lateness()
        self._early = 0
        self.came = self.duplicate = self.wrong = self.last_at = 0

    @property
    def missing(self) -> int:
        return self._work.messages - self.came

    def add(self, arrivals: Iterable[Arrival]) -> None:
        """Count further deliveries, ignoring those of other workloads."""
        for key, at, checksum in arrivals:
            number = self._work.number_of(key)
            if number is None:
                continue
            if checksum != zlib.crc32(self._work.payload(number)):
                self.wrong += 1
                continue
            self.duplicate += self._came[number]
            self.came += not self._came[number]
            self._came[number] = 1
            late_ms = at - self._work.due_of(number)
            self._late.add(late_ms)
            self._early += late_ms < 0
            self.last_at = max(self.last_at, at)

    def faults(self) -> dict[str, float]:
        """Return the numbers of faults."""
        return {
            "missing": self.missing,
            "duplicate": self.duplicate,
            "early": self._early,
            "wrong": self.wrong,
        }

    def lateness(self) -> dict[str, float]:
        """Return percentiles; empty if there were no deliveries."""
        return self._late.figures()

    @property
    def seconds(self) -> float:
        """Time from the first due time to the last delivery, at least 1 ms."""
        return max(1, self.last_at - self._work.due) / 1_000


def summed(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Add up the faults of several steps."""
    return {name: sum(step[name] for step in steps) for name in steps[0]}
