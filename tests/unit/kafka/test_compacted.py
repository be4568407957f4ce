"""When a reader of a compacted topic takes it for another one of the same name."""

from __future__ import annotations

import asyncio

import pytest

from light_scheduler.kafka.compacted import CompactedTopic, LogEnds


class EndsWhileReading(LogEnds):
    """Says where a log ends, while its reader comes as far as `reached`."""

    def __init__(self, topic: CompactedTopic, end: int, reached: int) -> None:
        self._topic = topic
        self._end = end
        self._reached = reached

    async def now(self) -> int:
        self._topic._reached = self._reached
        return self._end


@pytest.mark.parametrize(("before", "end", "reached", "is_another"), [(5, 5, 6, False), (5, 4, 5, True)])
async def test_a_log_is_another_one_only_if_it_ends_before_what_was_read_before_the_question(
    before: int, end: int, reached: int, is_another: bool
) -> None:
    topic = CompactedTopic("127.0.0.1:9092", "app-tenants")
    topic.is_loaded, topic._reached = True, before
    topic._ends = EndsWhileReading(topic, end, reached)
    catching_up = asyncio.create_task(topic.catch_up())
    await asyncio.sleep(0)
    assert topic._made_again.is_set() == is_another
    catching_up.cancel()
    await asyncio.wait([catching_up])
    assert catching_up.cancelled() == is_another
