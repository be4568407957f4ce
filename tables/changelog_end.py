"""Up to where a changelog is to be applied before a table counts as complete."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from aiokafka import TopicPartition

from light_scheduler.errors import BrokerError
from light_scheduler.kafka.fetching import StateConsumer

POLL_S = 0.05
MARKERS_TIMEOUT_S = 20.0
"""How long an owner waits for markers; then it fences once more."""

EndOf = Callable[[StateConsumer, TopicPartition, int], Awaitable[int]]
"""Where a changelog ends for a table that has it up to an offset."""


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
                f"what is decided in {changelog.topic}-{changelog.partition} ends at {end}, before its end {log_end}: "
                f"no marker came for {MARKERS_TIMEOUT_S:.0f} s. If none comes at all, a transaction hangs in it "
                "(kafka-transactions.sh find-hanging)"
            )
        await asyncio.sleep(POLL_S)


def _ahead(changelog: TopicPartition, at: int, end: int) -> BrokerError:
    return BrokerError(
        f"{changelog.topic}-{changelog.partition} ends at {end}, before the offset {at} that the local copy has "
        "reached: it has lost records"
    )
