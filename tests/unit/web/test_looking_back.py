"""Searches back in time: what pages have, whichever partitions have the newest records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import nullcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tries import tries
from support.web_cluster.topics import MemoryTopics

from light_scheduler.kafka.log_reader import Span
from light_scheduler.web import looking_back
from light_scheduler.web.looking_back import Found, Log, SearchPosition, Waiting, look_back
from light_scheduler.web.piece_sizes import Reached, piece_sizes
from light_scheduler.wire import CommandRecord, UnsentRecord

NOW = 1_800_000_000_000
SECOND, HOUR = 1_000, 3_600_000

Place = tuple[int, int]
"""Partition and offset."""

PARTITIONS = st.lists(
    st.tuples(
        st.sampled_from([0, 5, 10 * SECOND, 150 * HOUR]),
        st.lists(st.tuples(st.sampled_from([0, 1, 5, SECOND, HOUR]), st.booleans()), max_size=12),
    ),
    min_size=1,
    max_size=4,
)
"""Of each partition: the age of its newest record, and by how much each one before that is older and if it matches."""


def topic_of(partitions: Sequence[Sequence[tuple[int, bool]]]) -> tuple[MemoryTopics, Log]:
    """Return a topic with records of (timestamp, whether it matches)."""
    topics = MemoryTopics()
    logs = [
        [
            UnsentRecord(b"match" if matches else None, b"", [], at, partition, offset)
            for offset, (at, matches) in enumerate(records)
        ]
        for partition, records in enumerate(partitions)
    ]
    return topics, MemoryTopics.Log(topics, logs)


async def page_of(log: Log, place: SearchPosition, limit: int) -> Found[Place]:
    def select(record: CommandRecord) -> Place | None:
        return (record.partition, record.offset) if record.key is not None else None

    return await look_back(log, place, now=NOW, limit=limit, select=select)


async def pages_of(log: Log, limit: int) -> list[Found[Place]]:
    found = [await page_of(log, SearchPosition(0), limit)]
    while (place := found[-1].next) is not None:
        found.append(await page_of(log, place, limit))
    return found


@settings(max_examples=tries(60), deadline=None)
@given(PARTITIONS, st.integers(1, 9), st.sampled_from([1, 7, 1_000]))
def test_pages_have_each_match_once_the_newest_first_wherever_the_newest_are(
    described: list[tuple[int, list[tuple[int, bool]]]], limit: int, most_records: int
) -> None:
    partitions: list[list[tuple[int, bool]]] = []
    for age, steps in described:
        at = NOW - age
        partitions.append([])
        for step, is_match in steps:
            at -= step
            partitions[-1].insert(0, (at, is_match))
    _, log = topic_of(partitions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looking_back, "MOST_RECORDS", most_records)
        pages = asyncio.run(pages_of(log, limit))
    matches = [match for page in pages for match in page.matches]
    assert sorted(match.value for match in matches) == [
        (partition, offset)
        for partition, records in enumerate(partitions)
        for offset, (_, is_match) in enumerate(records)
        if is_match
    ]
    times = [match.timestamp for match in matches]
    assert times == sorted(times, reverse=True)
    for number, page in enumerate(pages, 1):
        shown = sum(len(each.matches) for each in pages[:number])
        assert sum(at > page.searched_from for records in partitions for at, is_match in records if is_match) <= shown
        assert all(match.timestamp >= page.searched_from for match in page.matches)
        assert len(page.matches) <= limit


@given(st.lists(st.lists(st.integers(0, 20), max_size=8), min_size=1, max_size=3), st.integers(1, 3))
@settings(max_examples=tries(40), deadline=None)
def test_pages_have_each_match_once_whatever_the_timestamps(ages: list[list[int]], limit: int) -> None:
    _, log = topic_of([[(NOW - age, True) for age in partition] for partition in ages])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(looking_back, "MOST_RECORDS", 2)
        pages = asyncio.run(pages_of(log, limit))
    found = sorted(match.value for page in pages for match in page.matches)
    assert found == [(number, offset) for number, records in enumerate(ages) for offset in range(len(records))]


async def test_a_partition_with_more_but_older_records_is_not_read_before_its_time() -> None:
    older = [(NOW - 8 * HOUR - number, True) for number in reversed(range(5_000))]
    newer = [(NOW - number * SECOND, True) for number in reversed(range(300))]
    topics, log = topic_of([older, newer])
    page = await page_of(log, SearchPosition(0), 50)
    assert [match.value for match in page.matches] == [(1, offset) for offset in range(299, 249, -1)]
    assert topics.read <= looking_back.FIRST_PIECE + looking_back.GROWTH * looking_back.FIRST_PIECE


async def test_a_request_that_may_read_no_more_shows_nothing_that_unread_records_can_be_newer_than(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(looking_back, "MOST_RECORDS", 100)
    older = [(NOW - 8 * HOUR, True)] * 10
    newer = [(NOW - number, False) for number in reversed(range(1_000))]
    _, log = topic_of([older, newer])
    page = await page_of(log, SearchPosition(0), 50)
    assert page.matches == []
    assert NOW - 100 <= page.searched_from <= NOW - 80
    pages = await pages_of(log, 50)
    assert [match.value for page in pages for match in page.matches] == [(0, offset) for offset in range(9, -1, -1)]


@pytest.mark.parametrize(
    ("reached", "sizes"),
    [
        pytest.param({0: Reached(30, 0, 0), 1: Reached(10, 0, 0)}, {0: 12, 1: 4}, id="nothing was read"),
        pytest.param({0: Reached(99, 10, 50), 1: Reached(99, 10, 50)}, {0: 8, 1: 8}, id="both came equally far"),
        pytest.param({0: Reached(99, 10, HOUR), 1: Reached(99, 10, 50)}, {1: 16}, id="one is much further back"),
        pytest.param({0: Reached(99, 10, 99), 1: Reached(99, 10, 49)}, {0: 2, 1: 14}, id="one is a little behind"),
        pytest.param({0: Reached(3, 10, 50)}, {0: 3}, id="little is left"),
        pytest.param({number: Reached(9, 1, 0) for number in range(40)}, dict.fromkeys(range(40), 1), id="many"),
    ],
)
def test_a_piece_brings_all_partitions_to_the_same_instant(reached: dict[int, Reached], sizes: dict[int, int]) -> None:
    assert piece_sizes(reached, 16) == sizes


class Marked:
    """A log with one more partition, which has nothing but markers of transactions: offsets without records."""

    def __init__(self, log: Log, marked: dict[int, Span]) -> None:
        self._log = log
        self._marked = marked

    async def extents(self, since: int) -> Mapping[int, Span]:
        return {**await self._log.extents(since), **self._marked}

    def read(self, spans: Mapping[int, Span], waiting: Waiting = nullcontext) -> AsyncIterator[Sequence[CommandRecord]]:
        with_records = {number: span for number, span in spans.items() if number not in self._marked}
        return self._log.read(with_records, waiting)


async def test_offsets_without_records_hold_nothing_back() -> None:
    topics, log = topic_of([[(NOW - HOUR, True)], [(NOW, False)] * 3])
    (page,) = await pages_of(Marked(log, {2: Span(0, 500)}), 5)
    assert [match.value for match in page.matches] == [(0, 0)]
    assert topics.read == 4
