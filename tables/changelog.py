"""Reads a changelog: finds the end of its committed records, and checks ranges of offsets for records that count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.clients import LaneClients
from light_scheduler.kafka.fetching import StateConsumer

STALL_TIMEOUT_S = 30.0
POLL_S = 0.05
LOOK_S = 3.0
MARKERS_TIMEOUT_S = 20.0
"""How long an owner waits for transaction markers before it fences again."""


class PartitionLogs(NamedTuple):
    """A partition of a commands topic, and the changelog partition with its state."""

    commands: TopicPartition
    changelog: TopicPartition


EndOf = Callable[[StateConsumer, TopicPartition, int], Awaitable[int]]
"""Returns the end of a changelog for a table that has applied it up to an offset."""


@asynccontextmanager
async def reading(clients: LaneClients) -> AsyncIterator[StateConsumer]:
    """Start a reader, yield it and stop it. Raises BrokerError if the broker does not answer."""
    reader = clients.reader()
    try:
        try:
            async with asyncio.timeout(STALL_TIMEOUT_S):
                await reader.start()
        except TimeoutError as error:
            raise BrokerError(f"the broker did not answer for {STALL_TIMEOUT_S:.0f} s") from error
        yield reader
    finally:
        await reader.stop()


async def length(changelog: TopicPartition, reader: StateConsumer) -> int:
    """Return the number of offsets in a changelog. Raises KafkaError."""
    begins, ends = await reader.beginning_offsets([changelog]), await reader.end_offsets([changelog])
    return int(ends[changelog] - begins[changelog])


async def committed_end(reader: StateConsumer, changelog: TopicPartition, at: int) -> int:
    """Return the last stable offset, the end of readable records. Another process may be writing.

    Raises BrokerError if the table, which reached `at`, is past it. Raises KafkaError.
    """
    end = int((await reader.end_offsets([changelog]))[changelog])
    if at > end:
        raise _ahead(changelog, at, end)
    return end


async def decided_end(reader: StateConsumer, changelog: TopicPartition, at: int, *, are_markers_late: bool) -> int:
    """Return the end of a changelog once all its records can be read. For its owner, after fencing.

    Fencing decides every transaction, but markers of stuck transactional ids are written later (`are_markers_late`):
    their committed records count, but cannot be read yet. So this waits for the markers, unless the table ends at the
    end of the log: then its last commit was acknowledged, and it is complete. Raises BrokerError if the markers do not
    arrive, or if the log ends before the table. Raises KafkaError.
    """
    deadline = asyncio.get_running_loop().time() + MARKERS_TIMEOUT_S
    while True:
        log_end = await reader.log_end(changelog)
        if at > log_end:
            raise _ahead(changelog, at, log_end)
        if at == log_end and are_markers_late:
            return at
        end = int((await reader.end_offsets([changelog]))[changelog])
        if end >= log_end:
            return end
        if asyncio.get_running_loop().time() > deadline:
            raise BrokerError(
                f"{changelog.topic}-{changelog.partition}: committed records end at {end}, the log at {log_end}: a "
                f"transaction has been open for {MARKERS_TIMEOUT_S:.0f} s. If it never ends, it hangs: find it with "
                "kafka-transactions.sh find-hanging"
            )
        await asyncio.sleep(POLL_S)


async def nothing_counts(clients: LaneClients, changelog: TopicPartition, start: int, end: int) -> bool:
    """Return whether no record between two offsets counts now or later: there are only markers and aborted records.

    Only call this as an owner whose open transaction begins at `end`, or after waiting until everything before `end`
    can be read. Raises BrokerError if the broker does not answer in time.
    """
    try:
        async with asyncio.timeout(LOOK_S), reading(clients) as reader:
            if (await reader.end_offsets([changelog]))[changelog] < end:
                return False
            reader.assign([changelog])
            reader.seek(changelog, start)
            while await reader.position(changelog) < end:
                if (await reader.getmany(timeout_ms=50)).get(changelog):
                    return False
    except (TimeoutError, KafkaError) as error:
        raise BrokerError(
            f"{changelog.topic}-{changelog.partition}: cannot read from offset {start} to {end} whether a transaction "
            f"counts: {error!r}"
        ) from error
    return True


async def is_untouched(clients: LaneClients, changelog: TopicPartition, start: int, end: int) -> bool:
    """Return the result of `nothing_counts`; False if the broker does not answer."""
    try:
        return await nothing_counts(clients, changelog, start, end)
    except BrokerError:
        return False


def _ahead(changelog: TopicPartition, at: int, end: int) -> BrokerError:
    return BrokerError(
        f"{changelog.topic}-{changelog.partition} ends at {end}, before the offset {at} that the local copy has "
        "reached: it has lost records"
    )
