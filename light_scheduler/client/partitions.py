"""The partitions of a consumer. Each is processed by its own task; idle ones are polled meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import CommitFailedError, IllegalStateError

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.connection import broker_errors

MOST_RECORDS = 500
POLL_MS, BUSY_POLL_S = 200, 0.05
"""How long a poll waits for messages (ms). While partitions are busy: how long to wait for one of them before the
others are polled (s)."""

REVOKED_WAIT_S = 10.0
"""How long a rebalance waits for messages in progress."""

NOWHERE = TopicPartition("", -1)
"""Polled while every partition is busy or stopping: the group would take a consumer that does not poll for dead."""

Process = Callable[[TopicPartition, Any], Awaitable[None]]

log = logging.getLogger(__name__)


class PartitionWork:
    """Processes the records of one partition, one after the other.

    `position` is the offset after the last processed record; None before the first. After `stop`, no further record is
    begun.
    """

    def __init__(self, place: TopicPartition, records: Iterable[Any], process: Process) -> None:
        self.position: int | None = None
        self.is_revoked = False
        self._is_stopped = False
        self.task = asyncio.create_task(self._run(place, records, process))

    def stop(self) -> None:
        self._is_stopped = True

    async def _run(self, place: TopicPartition, records: Iterable[Any], process: Process) -> None:
        for record in records:
            if self._is_stopped:
                return
            await process(place, record)
            self.position = record.offset + 1


class Partitions(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Polls a consumer, starts the processing of records, and commits the progress of each partition."""

    def __init__(self, consumer: AIOKafkaConsumer, process: Process) -> None:
        self._consumer = consumer
        self._process = process
        self._at_work: dict[TopicPartition, PartitionWork] = {}
        self._done: dict[TopicPartition, int] = {}

    async def poll(self) -> None:
        """Commit completed records, and fetch for the idle partitions.

        Raises BrokerError, and the error of a failed message.
        """
        await self._settle()
        idle = self._consumer.assignment() - self._at_work.keys()
        places, timeout_ms = (idle or {NOWHERE}, 0) if self._at_work else ((), POLL_MS)
        for place, records in (await self._fetched(places, timeout_ms)).items():
            self._at_work[place] = PartitionWork(place, records, self._process)

    async def finish(self) -> None:
        """Wait for messages in progress, and commit them. No further message is begun.

        Raises BrokerError, and the error of a failed message.
        """
        for work in self._at_work.values():
            work.stop()
        while self._at_work:
            await self._settle()
            await self._fetched({NOWHERE}, 0)

    async def close(self) -> None:
        """Cancel messages in progress, and commit completed ones. Raises BrokerError."""
        for work in self._at_work.values():
            work.task.cancel()
        await self._wait(None, asyncio.ALL_COMPLETED)
        self._note()
        await self._commit()

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Commit completed records before other members take over. They process records again that take too long."""
        places = set(revoked)
        at_work = [work for place, work in self._at_work.items() if place in places]
        for work in at_work:
            work.stop()
        if at_work:
            await asyncio.wait([work.task for work in at_work], timeout=REVOKED_WAIT_S)
        self._note()
        for work in at_work:
            work.is_revoked = True
        try:
            await self._commit()
        except BrokerError as error:
            log.warning("%s", error)
        for place in places:
            self._done.pop(place, None)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Does nothing: assigned partitions are polled anyway."""

    async def _settle(self) -> None:
        """Wait briefly for messages in progress, drop finished tasks, and commit completed records."""
        await self._wait(BUSY_POLL_S)
        self._note()
        self._reap()
        await self._commit()

    async def _fetched(self, places: Iterable[TopicPartition], timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        """Return the next records of partitions; without any, of all partitions."""
        with broker_errors(f"cannot consume {_topics(self._consumer.assignment())}"):
            fetched: dict[TopicPartition, list[Any]] = await self._consumer.getmany(
                *places, timeout_ms=timeout_ms, max_records=MOST_RECORDS
            )
        return fetched

    async def _wait(self, timeout: float | None, until: str = asyncio.FIRST_COMPLETED) -> None:
        if self._at_work:
            tasks = [work.task for work in self._at_work.values()]
            await asyncio.wait(tasks, timeout=timeout, return_when=until)

    def _note(self) -> None:
        """Note the progress of the partitions that are still assigned."""
        for place, work in self._at_work.items():
            if work.position is not None and not work.is_revoked:
                self._done[place] = work.position

    def _reap(self) -> None:
        """Drop finished tasks. Raises the error of a failed one."""
        for place, work in [*self._at_work.items()]:
            if work.task.done():
                del self._at_work[place]
                work.task.result()

    async def _commit(self) -> None:
        """Commit the progress of partitions that are still assigned: after a rebalance, the others belong to another
        member."""
        assigned = self._consumer.assignment()
        done = {place: position for place, position in self._done.items() if place in assigned}
        self._done = dict(done)
        if not done:
            return
        with (
            broker_errors(f"cannot commit what was consumed from {_topics(done)}"),
            suppress(CommitFailedError, IllegalStateError),  # tried again if it is still assigned
        ):
            await self._consumer.commit(done)
            for place, position in done.items():
                if self._done.get(place) == position:
                    del self._done[place]


def _topics(places: Iterable[TopicPartition]) -> str:
    return ", ".join(sorted({place.topic for place in places}))
