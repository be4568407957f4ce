"""The headers of many firings of one instant are those that are made one by one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.model import Entry, Once, Progress, Schedule, Target
from light_scheduler.wire import firing_headers
from light_scheduler.wire.fired_headers import fired_headers

AT = 1_767_225_600_000

numbers = st.one_of(st.integers(0, 300), st.integers(0, 1 << 60))
ids = st.one_of(st.sampled_from(["a", "é", "x" * 63, "x" * 64, "x" * 10_000]), st.text(min_size=1, max_size=9))
user_headers = st.lists(st.tuples(st.text(max_size=9), st.one_of(st.none(), st.binary(max_size=9))), max_size=3)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Draw a schedule; several of them share much."""
    schedule = Schedule(
        draw(st.sampled_from(["default", "acme", "t" * 64])),
        draw(ids),
        draw(st.one_of(st.just(1), numbers)),
        Once(AT),
        Target("t"),
        None,
        draw(st.one_of(st.just([]), user_headers)),
        draw(st.one_of(st.just(0), numbers)),
        draw(numbers),
        AT,
    )
    first_due = draw(st.one_of(st.none(), st.none(), numbers))
    progress = Progress(draw(st.one_of(st.just(AT), numbers)), 0, draw(numbers), draw(numbers), first_due=first_due)
    return Entry(schedule, progress)


@given(st.lists(entries(), min_size=1, max_size=5), numbers, st.sampled_from([b"commands", b"c" * 249]))
@settings(max_examples=tries(300))
def test_headers_that_share_much_are_those_that_are_made_one_by_one(
    entries: list[Entry], fired_at: int, source_topic: bytes
) -> None:
    headers = fired_headers(fired_at, source_topic)
    for entry in entries:
        assert headers(entry, entry.schedule.id.encode()) == firing_headers(entry, fired_at, source_topic)
