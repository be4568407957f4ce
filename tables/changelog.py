"""A changelog as its readers see it: up to where it counts, and what lies between two offsets."""

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
"""How long an owner waits for markers; then it fences once more."""


class PartitionLogs(NamedTuple):
    """A partition of a commands topic, and that of the changelog which has its state."""

    commands: TopicPartition
    changelog: TopicPartition


EndOf = Callable[[StateConsumer, TopicPartition, int], Awaitable[int]]
"""Where a changelog ends for a table that has it up to an offset."""


@asynccontextmanager
async def reading(clients: LaneClients) -> AsyncIterator[StateConsumer]:
    """Give a started reader, and stop it. Raises BrokerError if the broker does not answer."""
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
    """Return how many offsets a changelog has. Raises KafkaError."""
    begins, ends = await reader.beginning_offsets([changelog]), await reader.end_offsets([changelog])
    return int(ends[changelog] - begins[changelog])


async def committed_end(reader: StateConsumer, changelog: TopicPartition, at: int) -> int:
    """Return the last stable offset: all that can be read. Somebody else may be writing.

    Raises BrokerError if the table has more (it reached `at`), and KafkaError.
    """
    end = int((await reader.end_offsets([changelog]))[changelog])
    if at > end:
        raise _ahead(changelog, at, end)
    return end


async def decided_end(reader: StateConsumer, changelog: TopicPartition, at: int, *, are_markers_late: bool) -> int:
    """Return where a changelog ends when all that is in it can be read; for its owner, after fencing.

    Fencing decided every transaction, but those of ids that are stuck have their markers written later
    (`are_markers_late`): what they committed counts, and cannot be read yet. So their markers are waited for, unless
    the table ends where the log does: then its last commit was answered, and it lacks nothing. Raises BrokerError if
    markers do not come, or if the log ends before the table, and KafkaError.
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
    """Return whether nothing between two offsets counts, or may come to count: only markers, and what was aborted.

    To be asked by an owner whose open transaction begins at `end`, or who has waited until all can be read that is
    before it. Raises BrokerError if there is no answer in time.
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
    """Return whether it is known that nothing between two offsets counts; see `nothing_counts`."""
    try:
        return await nothing_counts(clients, changelog, start, end)
    except BrokerError:
        return False


def _ahead(changelog: TopicPartition, at: int, end: int) -> BrokerError:
    return BrokerError(
        f"{changelog.topic}-{changelog.partition} ends at {end}, before the offset {at} that the local copy has "
        "reached: it has lost records"
    )
