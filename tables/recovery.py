"""Brings a table up to date from its changelog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from light_scheduler.clock import Clock
from light_scheduler.errors import BrokerError
from light_scheduler.kafka.fetching import StateConsumer

from .changelog import STALL_TIMEOUT_S, EndOf, PartitionLogs, committed_end
from .loading import STEP_RECORDS, BulkLoad, ChangelogRecord
from .overlay import Overlay
from .status import RestoreStatus
from .table import ScheduleTable
from .usable_copy import ChangelogFacts, check_fresh

log = logging.getLogger(__name__)

LOG_INTERVAL_S = 5.0


class Restoration:
    """Progress and speed of a restore between two offsets of the changelog. `time` is a monotonic clock (s)."""

    def __init__(self, start: int, end: int, time: Callable[[], float]) -> None:
        self._start = self._at = start
        self._end = end
        self._time = time
        self._began = self._logged = time()
        self._ended: float | None = None
        self.records = 0

    def extend(self, end: int) -> None:
        """Continue to a new end."""
        self._end, self._ended = end, None

    def reached(self, at: int, records: int) -> None:
        """Record that everything before offset `at` was read, with `records` since the last call."""
        self._at = at
        self.records += records

    def finish(self) -> None:
        """Record that the restore is complete."""
        self._at, self._ended = self._end, self._time()

    def status(self) -> RestoreStatus:
        """Return the current status."""
        done, total = self._at - self._start, self._end - self._start
        seconds = (self._time() if self._ended is None else self._ended) - self._began
        per_s = done / seconds if seconds > 0 else 0.0
        return RestoreStatus(
            done=done,
            total=total,
            records=self.records,
            seconds=seconds,
            per_s=per_s,
            seconds_left=(total - done) / per_s if per_s else None,
        )

    def is_worth_a_line(self) -> bool:
        """Return whether it is time to log the progress: True at most once per LOG_INTERVAL_S."""
        now = self._time()
        if now - self._logged < LOG_INTERVAL_S:
            return False
        self._logged = now
        return True


class Restored(NamedTuple):
    """The result of a restore: records applied, the offset reached, and the range of commands at that time."""

    records: int
    end: int
    backlog_end: int
    backlog_begin: int = 0


class PartitionState(NamedTuple):
    """The state of a partition: its logs, facts about its changelog, and the function that returns the changelog's end.

    The partition's owner needs an `end_of` that waits for the transactions decided by fencing.
    """

    facts: ChangelogFacts
    logs: PartitionLogs
    end_of: EndOf = committed_end


class Following(NamedTuple):
    """How to run a restoration: it is passed to `watch` when it begins, ends early if `stopping`, continues `begun`.

    With `may_block`, single steps may take seconds, since nothing else waits for the event loop.
    """

    stopping: Callable[[], bool]
    watch: Callable[[Restoration], None]
    begun: Restoration | None = None
    may_block: bool = False


async def restore(
    table: ScheduleTable, state: PartitionState, reader: StateConsumer, clock: Clock, following: Following
) -> Restored:
    """Apply the changelog from the table's checkpoint to its end, and look up the range of commands.

    The partition's owner must call this after fencing. Raises BrokerError if the broker stops answering, or as
    `end_of`; StateStale if the table becomes too old meanwhile.
    """
    loop = asyncio.get_running_loop()
    facts, (commands, changelog), end_of = state
    stopping, watch, begun, may_block = following
    to_table = _Loading(table, may_block) if table.is_new else Replaying(table)
    try:
        async with asyncio.timeout(STALL_TIMEOUT_S) as stall:
            began = clock.now()
            at = table.checkpoint.changelog_offset
            end = await end_of(reader, changelog, at)
            ends = await reader.end_offsets([commands])
            begins = await reader.beginning_offsets([commands])
            if at == 0:  # an empty table has nothing out of date
                table.checkpoint = msgspec.structs.replace(table.checkpoint, complete_at=began)
            restoration = begun or Restoration(at, end, loop.time)
            restoration.extend(end)
            watch(restoration)
            reader.assign([changelog])
            reader.seek(changelog, at)
            # The position also moves past transaction markers and compacted offsets, which have no records.
            while not stopping() and (at := await reader.position(changelog)) < end:
                # After the end, there can be half a transaction of a process that has fenced this owner since.
                records = _before(end, (await reader.getmany(timeout_ms=200)).get(changelog, []))
                if records:
                    check_fresh(table, facts, clock.now())
                    stall.reschedule(None)  # the timeout is for the broker, not for the work here
                    await to_table.take(records)
                    restoration.reached(records[-1].offset + 1, len(records))
                    stall.reschedule(loop.time() + STALL_TIMEOUT_S)
                    if restoration.is_worth_a_line():
                        log.info("restoring %s-%d: %s", *commands, restoration.status())
            if not stopping():
                stall.reschedule(None)
                check_fresh(table, facts, clock.now())
                await to_table.finish(end, began)
                restoration.finish()
    except TimeoutError as error:
        raise BrokerError(
            f"{changelog.topic}-{changelog.partition} did not answer for {STALL_TIMEOUT_S:.0f} s"
        ) from error
    return Restored(restoration.records, end, ends[commands], begins[commands])


def _before(end: int, records: Sequence[ChangelogRecord]) -> Sequence[ChangelogRecord]:
    """Return the records that are before an offset."""
    if not records or records[-1].offset < end:
        return records
    return [record for record in records if record.offset < end]


class Replaying:
    """Brings a table up to date in steps, each with its own checkpoint."""

    def __init__(self, table: ScheduleTable) -> None:
        self._table = table

    async def take(self, records: Sequence[ChangelogRecord]) -> None:
        for start in range(0, len(records), STEP_RECORDS):
            step = records[start : start + STEP_RECORDS]
            overlay = Overlay(self._table)
            for record in step:
                overlay.replay(record.key or b"", record.value)
            complete_at = self._table.checkpoint.complete_at
            overlay.apply(changelog_offset=step[-1].offset + 1, complete_at=complete_at)
            await asyncio.sleep(0)

    async def finish(self, end: int, complete_at: int) -> None:
        """Store that everything before `end` was applied, which was the end at `complete_at` (UTC epoch ms)."""
        checkpoint = self._table.checkpoint
        self._table.write({}, msgspec.structs.replace(checkpoint, changelog_offset=end, complete_at=complete_at))


class _Loading:
    """Fills an empty table, or continues where another load in this process stopped."""

    def __init__(self, table: ScheduleTable, may_block: bool) -> None:
        self._load = BulkLoad(table, may_block=may_block)

    async def take(self, records: Sequence[ChangelogRecord]) -> None:
        self._load.add(records)
        if self._load.is_full:
            await self._write(records[-1].offset + 1)

    async def finish(self, end: int, complete_at: int) -> None:
        await self._write(end)
        await self._load.finish(complete_at=complete_at)

    async def _write(self, end: int) -> None:
        for _ in self._load.write(changelog_offset=end):
            await asyncio.sleep(0)
