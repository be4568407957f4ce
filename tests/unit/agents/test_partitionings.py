"""What a worker makes of the numbers of partitions in the tenants topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from light_scheduler.access.records import PEER_SECRET_KEY
from light_scheduler.agents.services.partitionings import TopicPartitionings
from light_scheduler.lanes.context.partitionings import Stage
from light_scheduler.lanes.growing.records import VALUE, TopicIncarnation, partitions_key, stage_key
from light_scheduler.model.partitioning import Partitioning

TOPIC = TopicIncarnation("commands", "id")
SECRET = b"s" * 32
NEW = 8
"""A partition beyond the first eight."""


class Topic:
    """The tenants topic, read to its end."""

    is_loaded = True

    def __init__(self) -> None:
        self.entries = {PEER_SECRET_KEY: b'{"secret":"%s"}' % SECRET.hex().encode()}

    async def catch_up(self) -> None:
        """There is nothing to wait for."""

    async def follow(self, changed: Callable[[], None]) -> None:
        changed()

    async def write(self, key: bytes, value: bytes) -> None:
        self.entries[key] = value

    async def write_all(self, records: Iterable[tuple[bytes, bytes]]) -> None:
        self.entries.update(records)


class Worker:
    def __init__(self) -> None:
        self.topic = Topic()
        self.asked: list[str] = []
        self.topic_id = TOPIC.id
        ids: Any = SimpleNamespace(fresh=self._id)
        self.partitionings = TopicPartitionings(self.topic, ids, self._partitions_of)  # type: ignore[arg-type]

    def note(self, partitions: int, settled: Iterable[int] = ()) -> None:
        self.topic.entries[partitions_key(TOPIC, partitions)] = VALUE
        self.topic.entries.update((stage_key(TOPIC, partitions, Stage.SETTLED, each), VALUE) for each in settled)

    async def _id(self, _: str) -> str:
        return self.topic_id

    async def _partitions_of(self, topic: str) -> int:
        self.asked.append(topic)
        return 12


@pytest.fixture
def worker() -> Worker:
    return Worker()


async def test_the_first_lane_notes_how_many_partitions_there_are(worker: Worker) -> None:
    await worker.partitionings.refresh(TOPIC.topic, 0)
    partitioning = worker.partitionings.of(TOPIC.topic)
    assert partitioning is not None
    assert (partitioning.partitions, partitioning.former) == (12, None)


async def test_a_partition_that_was_added_is_used_when_earlier_moves_are_over(worker: Worker) -> None:
    worker.note(4)
    worker.note(8, settled=range(8))
    await worker.partitionings.refresh(TOPIC.topic, NEW)
    partitioning = worker.partitionings.of(TOPIC.topic)
    assert partitioning is not None
    assert (partitioning.partitions, partitioning.former) == (12, 8)


async def test_while_earlier_moves_go_on_nobody_is_asked_again_and_again_how_many_partitions_there_are(
    worker: Worker,
) -> None:
    worker.note(4)
    worker.note(8, settled=range(7))
    await worker.partitionings.refresh(TOPIC.topic, NEW)
    partitioning = worker.partitionings.of(TOPIC.topic)
    assert isinstance(partitioning, Partitioning)
    assert (partitioning.partitions, worker.asked) == (8, [])


async def test_a_lane_that_still_reads_the_deleted_topic_reports_nothing_about_the_new_one(worker: Worker) -> None:
    worker.note(4)
    await worker.partitionings.refresh(TOPIC.topic, 0)
    worker.topic_id = "another id"
    await worker.partitionings.refresh(TOPIC.topic, 1)  # for another lane
    for partition, topic_id in enumerate((TOPIC.id, worker.topic_id, "")):
        worker.partitionings.report(TOPIC.topic, topic_id, partition, 4, Stage.SETTLED)
    reported = set(worker.partitionings._unreported)
    new = TopicIncarnation(TOPIC.topic, worker.topic_id)
    assert reported == {stage_key(new, 4, Stage.SETTLED, partition) for partition in (1, 2)}
