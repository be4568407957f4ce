"""Where places end: each answers for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError

from light_scheduler.lanes.failures import stable_ends as module
from light_scheduler.lanes.failures.stable_ends import stable_ends
from light_scheduler.model.place import Place

A, B, SILENT, FORBIDDEN = (("t", number) for number in range(4))


class Reader:
    """Takes the place of a consumer; asked for several partitions at once, it answers when all do."""

    def __init__(self, *, starts: bool = True) -> None:
        self._starts = starts
        self.stopped = 0

    async def start(self) -> None:
        if not self._starts:
            raise KafkaConnectionError

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        if TopicPartition(*SILENT) in partitions:
            await asyncio.Event().wait()
        if TopicPartition(*FORBIDDEN) in partitions:
            raise TopicAuthorizationFailedError("t")
        return {tp: 10 + tp.partition for tp in partitions}

    async def stop(self) -> None:
        self.stopped += 1


class Suspects:
    """Takes the place of targets."""

    def __init__(self) -> None:
        self.suspected: list[list[Place]] = []

    async def suspect(self, places: Collection[Place], reason: str) -> None:
        self.suspected.append(sorted(places))


@pytest.fixture
def targets() -> Any:
    return Suspects()


def clients(reader: Reader) -> Any:
    return SimpleNamespace(reader=lambda: reader)


async def test_each_place_has_its_end_or_its_error(targets: Any) -> None:
    reader = Reader()
    ends = await stable_ends([A, FORBIDDEN, B], clients(reader), targets)
    assert (ends[A], ends[B]) == (10, 11)
    assert isinstance(ends[FORBIDDEN], TopicAuthorizationFailedError)
    assert (targets.suspected, reader.stopped) == ([], 1)


async def test_a_place_that_does_not_answer_is_suspected_and_no_other(
    targets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.05)
    reader = Reader()
    assert await stable_ends([A, SILENT], clients(reader), targets) == {A: 10}
    assert (targets.suspected, reader.stopped) == ([[SILENT]], 1)


async def test_the_schedulers_own_topics_are_no_targets_to_suspect(
    targets: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.05)
    assert await stable_ends([SILENT], clients(Reader()), targets, {SILENT[0]}) == {}
    assert targets.suspected == []


async def test_without_a_connection_no_place_is_to_blame(targets: Any) -> None:
    with pytest.raises(KafkaConnectionError):
        await stable_ends([A], clients(Reader(starts=False)), targets)
    assert targets.suspected == []
