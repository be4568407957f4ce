from __future__ import annotations

import pytest
from support.foreign import karafka_headers, record
from support.partition import AT, HOUR, Partition
from support.producing import FakeProducer

from light_scheduler.tables import days

DAY = 24 * HOUR
TODAY = AT // DAY


async def test_schedules_are_counted_by_the_day_they_wake_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "AT_ONCE", 2)
    partition = Partition(FakeProducer(), dialect="karafka")
    due = [AT, AT + HOUR, AT + DAY - 1_000, AT + DAY, AT + 40 * DAY]
    await partition.run(
        *(record(b"%d" % n, b"x", karafka_headers(at), offset=n) for n, at in enumerate(due)), now=AT - 1
    )
    assert await days.days_of(partition.table, lambda: True) == {TODAY: 3, TODAY + 1: 1, TODAY + 40: 1}


async def test_a_table_that_is_closed_is_looked_at_no_further() -> None:
    partition = Partition(FakeProducer(), dialect="karafka")
    assert await days.days_of(partition.table, lambda: False) is None
