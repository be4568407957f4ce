"""A compacted log that goes on while it is read: what was read is the log as it was at one instant."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from light_scheduler.errors import JobError
from light_scheduler.pipeline.catching_up import Ends, caught_up

PART = ("changelog", 0)
LAG_S = 30.0
Table = dict[str, int]


class Log:
    """A log, its clock, and what was ever written to it. A record is its offset; a step is a second."""

    def __init__(self, chance: random.Random, *, busy_s: int) -> None:
        self.now = 0.0
        self._chance = chance
        self._busy_s = busy_s
        self._written: list[tuple[int, str, float]] = []
        self._there: dict[int, str] = {}
        for _ in range(50):
            self._write()

    def ends(self) -> Ends:
        return {PART: len(self._written)}

    def read(self, start: Ends | None, end: Ends) -> Table:
        """Read record by record, while others write and compaction goes on."""
        found: Table = {}
        for offset in range(0 if start is None else start[PART], end[PART]):
            self._passes()
            if (key := self._there.get(offset)) is not None:
                found[key] = offset
        return found

    def table_at(self, end: int) -> Table:
        return {key: offset for offset, key, _ in self._written[:end]}

    def _passes(self) -> None:
        self.now += 1
        if self.now < self._busy_s and self._chance.random() < 0.5:
            self._write()
        if self._chance.random() < 0.3:
            self._compact()

    def _write(self) -> None:
        key = self._chance.choice("abcdefghijklmnop")
        self._there[len(self._written)] = key
        self._written.append((len(self._written), key, self.now))

    def _compact(self) -> None:
        old = [record for record in self._written if record[2] + LAG_S <= self.now]
        last = {key: offset for offset, key, _ in old}
        self._there = {offset: key for offset, key in self._there.items() if offset >= last.get(key, 0)}


def merged(ranges: list[Table]) -> Table:
    found: Table = {}
    for table in ranges:
        found |= table
    return found


@pytest.mark.parametrize("busy_s", [60, 100, 400, 100_000])
def test_what_is_read_beside_writers_and_compaction_is_the_log_at_its_last_end(busy_s: int) -> None:
    lacking = 0
    for seed in range(300):
        log, ends = Log(random.Random(seed), busy_s=busy_s), list[int]()

        def read(start: Ends | None, end: Ends, log: Log = log, ends: list[int] = ends) -> Table:
            ends.append(end[PART])
            return log.read(start, end)

        ranges = caught_up(log.ends, read, LAG_S, lambda log=log: log.now)  # type: ignore[misc]
        assert merged(ranges) == log.table_at(ends[-1]), seed
        lacking += ranges[0].keys() < log.table_at(ends[0]).keys()
    assert lacking, "compaction has taken keys from the first range"


def test_a_log_that_is_read_before_compaction_can_act_is_read_once() -> None:
    times = iter([0.0, 29.9])
    assert caught_up(lambda: {PART: 7}, lambda *_: "read", LAG_S, lambda: next(times)) == ["read"]


def test_a_log_that_nobody_writes_is_read_once_however_long_that_takes() -> None:
    times = iter([0.0, 1_000.0, 1_000.0])
    assert caught_up(lambda: {PART: 7}, lambda *_: "read", LAG_S, lambda: next(times)) == ["read"]


def test_a_log_that_grows_faster_than_it_is_read_is_an_error() -> None:
    log = Growing()
    with pytest.raises(JobError, match="grows as fast as it is read: 30 times"):
        caught_up(log.ends, log.read, LAG_S, log.now)


class Growing:
    """A log that has grown by as much as was read whenever somebody looks."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> float:
        return self._looks * 2 * LAG_S

    def ends(self) -> Mapping[tuple[str, int], int]:
        self._looks += 1
        return {PART: self._looks}

    def read(self, *_: object) -> None:
        self._looks += 1
