"""The partitions of a consumer: each is processed by its own task, and the others are polled meanwhile."""

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
"""How long a poll waits for messages; and, while partitions are at work, for one of them, before others are polled."""

REVOKED_WAIT_S = 10.0
"""How long a rebalance waits for the messages that are being processed."""

NOWHERE = TopicPartition("", -1)
"""Is polled while every partition is at work or ends: the group takes a consumer that does not poll for a dead one."""

Process = Callable[[TopicPartition, Any], Awaitable[None]]

log = logging.getLogger(__name__)


class PartitionWork:
    """Processes the records of one partition, one after the other.

    `position` is the offset after the last one that is done, None if none is. After `stop`, no further one is begun.
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
    """Polls a consumer, has records processed, and commits how far each partition has come."""

    def __init__(self, consumer: AIOKafkaConsumer, process: Process) -> None:
        self._consumer = consumer
        self._process = process
        self._at_work: dict[TopicPartition, PartitionWork] = {}
        self._done: dict[TopicPartition, int] = {}

    async def poll(self) -> None:
        """Commit what is done, and fetch for the partitions that are not at work.

        Raises BrokerError, and what a message's processing has failed with.
        """
        await self._settle()
        idle = self._consumer.assignment() - self._at_work.keys()
        places, timeout_ms = (idle or {NOWHERE}, 0) if self._at_work else ((), POLL_MS)
        for place, records in (await self._fetched(places, timeout_ms)).items():
            self._at_work[place] = PartitionWork(place, records, self._process)

    async def finish(self) -> None:
        """Wait for the messages that are being processed, and commit them; no further one is begun.

        Raises BrokerError, and what a message's processing has failed with.
        """
        for work in self._at_work.values():
            work.stop()
        while self._at_work:
            await self._settle()
            await self._fetched({NOWHERE}, 0)

    async def close(self) -> None:
        """Cancel what is being processed, and commit what is done. Raises BrokerError."""
        for work in self._at_work.values():
            work.task.cancel()
        await self._wait(None, asyncio.ALL_COMPLETED)
        self._note()
        await self._commit()

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Commit what is done before others take over; what takes too long is processed again by whoever does."""
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
        """There is nothing to do: what is assigned is polled."""

    async def _settle(self) -> None:
        """Wait a moment for what is being processed, let go of what has ended, and commit what is done."""
        await self._wait(BUSY_POLL_S)
        self._note()
        self._reap()
        await self._commit()

    async def _fetched(self, places: Iterable[TopicPartition], timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        """Return the next records of partitions; without any, those of all."""
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
        """Note how far partitions have come that are still ours."""
        for place, work in self._at_work.items():
            if work.position is not None and not work.is_revoked:
                self._done[place] = work.position

    def _reap(self) -> None:
        """Let go of what has ended. Raises what it has failed with."""
        for place, work in [*self._at_work.items()]:
            if work.task.done():
                del self._at_work[place]
                work.task.result()

    async def _commit(self) -> None:
        """Commit what is done of partitions that are still ours: after a rebalance another member has the rest."""
        assigned = self._consumer.assignment()
        done = {place: position for place, position in self._done.items() if place in assigned}
        self._done = dict(done)
        if not done:
            return
        with (
            broker_errors(f"cannot commit what was consumed from {_topics(done)}"),
            suppress(CommitFailedError, IllegalStateError),  # what is still ours after the rebalance is tried again
        ):
            await self._consumer.commit(done)
            for place, position in done.items():
                if self._done.get(place) == position:
                    del self._done[place]


def _topics(places: Iterable[TopicPartition]) -> str:
    return ", ".join(sorted({place.topic for place in places}))
