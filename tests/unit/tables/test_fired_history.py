"""What was fired and forgotten does not slow the next scan, however much it was: `--fired 10000000` takes a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tables import by_id

from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.tables import Overlay, ScheduleTable
from light_scheduler.tables.rocks import RocksStore
from light_scheduler.wire.state import encode_entry, identity_of

AT = 1_767_225_600_000
CYCLE = 5_000
PENDING = 1_000
FAR = AT + 10**11


def entry(number: int, due: int) -> Entry:
    schedule = Schedule("acme", f"{number:09}", 1, Once(due), Target("t"), b"x" * 100, [], 0, number, AT)
    return Entry(schedule, Progress(due, number))


def fill(table: ScheduleTable, numbers: range, due: int) -> None:
    overlay = Overlay(table)
    for number in numbers:
        each = entry(number, due)
        overlay.put(identity_of(each), each, encode_entry(each))
    overlay.apply(changelog_offset=1, complete_at=AT)


def fire(table: ScheduleTable, now: int) -> int:
    overlay = Overlay(table)
    entries = overlay.due(now, CYCLE, 1 << 30).entries
    for each in entries:
        overlay.remove(identity_of(each))
    overlay.apply(changelog_offset=1, complete_at=AT)
    return len(entries)


def fastest_ms(action: Callable[[], object]) -> float:
    """Return how long it takes when nothing else is in the way."""
    took = []
    for _ in range(20):
        begun = time.perf_counter()
        action()
        took.append(time.perf_counter() - begun)
    return min(took) * 1_000


@pytest.mark.timeout(3_600)
def test_a_history_of_fired_schedules_does_not_slow_the_next_scan(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    table = ScheduleTable(RocksStore(tmp_path))
    fill(table, range(10**8, 10**8 + PENDING), FAR)
    fired = 0
    while fired < pytestconfig.getoption("--fired"):
        now = AT + fired
        fill(table, range(fired, fired + CYCLE), now)
        assert fire(table, now) == CYCLE
        fired += CYCLE

    def scan() -> None:
        assert Overlay(table).due(AT + fired, CYCLE, 1 << 30).next_due == FAR

    scan()
    assert fastest_ms(scan) < 2, "past the tombstones of each, it would be some 30 ms for 100,000"
    table.close()
    begun = time.thread_time()
    table = ScheduleTable(RocksStore(tmp_path))
    scan()
    assert time.thread_time() - begun < 2, "a start goes through what compaction has left once"
    assert fastest_ms(scan) < 2
    assert fastest_ms(lambda: next(by_id(table, "acme"))) < 500
    assert table.pending == PENDING
    table.close()
