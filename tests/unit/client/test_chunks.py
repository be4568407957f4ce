"""A stream of requests is taken a chunk at a time, in its order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from light_scheduler.client import Receipt, ScheduleRequest
from light_scheduler.client.chunks import MOST_BYTES, async_chunks, chunks
from light_scheduler.testing import InMemoryScheduler


def ids(count: int) -> Iterator[ScheduleRequest]:
    return ({"id": f"id-{n}", "topic": "t"} for n in range(count))


async def later(requests: Iterator[ScheduleRequest]) -> AsyncIterator[ScheduleRequest]:
    for request in requests:
        yield request


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (3, [3]), (4, [4]), (9, [4, 4, 1])])
async def test_chunks_hold_so_many_requests_in_their_order(
    monkeypatch: pytest.MonkeyPatch, count: int, sizes: list[int]
) -> None:
    monkeypatch.setattr("light_scheduler.client.chunks.MOST_REQUESTS", 4)
    expected = list(ids(count))
    for found in (
        list(chunks(ids(count))),
        [chunk async for chunk in async_chunks(ids(count))],
        [chunk async for chunk in async_chunks(later(ids(count)))],
    ):
        assert [len(chunk) for chunk in found] == sizes
        assert [request for chunk in found for request in chunk] == expected


def test_large_payloads_make_small_chunks() -> None:
    payload = bytes(MOST_BYTES // 2)
    sizes = [len(chunk) for chunk in chunks({"id": str(n), "topic": "t", "payload": payload} for n in range(5))]
    assert sizes == [2, 2, 1]


async def test_no_more_is_taken_of_a_stream_than_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("light_scheduler.client.chunks.MOST_REQUESTS", 4)
    taken: list[str] = []

    async def requests() -> AsyncIterator[ScheduleRequest]:
        for n in range(100):
            taken.append(f"id-{n}")
            yield {"id": taken[-1], "topic": "t", "after": "1h"}

    sent = InMemoryScheduler().schedule_each(requests())
    receipts: list[Receipt] = [await anext(sent) for _ in range(5)]
    await sent.aclose()
    assert [receipt.id for receipt in receipts] == taken[:5]
    assert len(taken) == 8
