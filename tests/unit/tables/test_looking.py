"""Looking whether anything counts that lies between two offsets of a changelog."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError

from light_scheduler.errors import BrokerError
from light_scheduler.tables import changelog
from light_scheduler.tables.changelog import is_untouched, nothing_counts

LOG = TopicPartition("changelog", 0)


class Reader:
    """Reads a changelog in which these offsets can be read; `trouble` is what happens to the first question."""

    def __init__(self, offsets: list[int], end: int, trouble: str) -> None:
        self._offsets, self._end, self._trouble = offsets, end, trouble
        self._position = 0

    async def start(self) -> None:
        if self._trouble == "silence":
            await asyncio.Event().wait()

    async def stop(self) -> None:
        pass

    async def end_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        if self._trouble == "error":
            raise KafkaConnectionError("gone")
        return {LOG: self._end}

    def assign(self, places: list[TopicPartition]) -> None:
        assert places == [LOG]

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._position = offset

    async def position(self, place: TopicPartition) -> int:
        return self._position

    async def getmany(self, timeout_ms: int) -> dict[TopicPartition, list[int]]:
        self._position += 1
        return {LOG: [self._position - 1]} if self._position - 1 in self._offsets else {}


class Clients:
    def __init__(self, *offsets: int, end: int = 10, trouble: str = "") -> None:
        self.reader = lambda: Reader([*offsets], end, trouble)


@pytest.mark.parametrize(
    ("clients", "untouched"),
    [(Clients(3, 8), True), (Clients(6), False), (Clients(end=7), False)],
    ids=["only markers", "a record", "not known yet"],
)
async def test_only_markers_and_what_was_aborted_count_for_nothing(clients: Any, untouched: bool) -> None:
    assert await nothing_counts(clients, LOG, 4, 8) is untouched
    assert await is_untouched(clients, LOG, 4, 8) is untouched


@pytest.mark.parametrize("trouble", ["silence", "error"])
async def test_without_an_answer_nothing_is_said_of_what_counts(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "LOOK_S", 0.01)
    clients: Any = Clients(trouble=trouble)
    with pytest.raises(BrokerError, match="changelog-0: cannot read from offset 4 to 8 whether"):
        await nothing_counts(clients, LOG, 4, 8)
    assert not await is_untouched(clients, LOG, 4, 8)
