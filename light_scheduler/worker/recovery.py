"""Bringing a table up to date from its changelog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from aiokafka import TopicPartition

from light_scheduler.clock import Clock
from light_scheduler.errors import BrokerError, FormatError, FormatTooOld
from light_scheduler.tables import Overlay, ScheduleTable
from light_scheduler.tables.store import Stores

from .clients import LaneClients

log = logging.getLogger(__name__)

STALL_TIMEOUT_S = 30.0


class ChangelogFacts(NamedTuple):
    """What decides whether a local copy may be used: the topic's identity and how long it keeps tombstones (ms)."""

    id: str
    delete_retention_ms: int


class Restored(NamedTuple):
    """What a restore did: records applied, and where the commands ended (offset) when it was done."""

    records: int
    backlog_end: int


def open_table(stores: Stores, path: Path, facts: ChangelogFacts, now: int) -> ScheduleTable:
    """Open a partition's local copy; throw it away first if it could bring schedules back from the dead.

    That is so if it belongs to a changelog that was deleted and made again, or if it is older than the changelog keeps
    tombstones, since cancels and firings that happened meanwhile may have been compacted away. So is
    one that an older version laid out in another way.
    """
    store = stores(path)
    try:
        table = ScheduleTable(store)
    except FormatTooOld as error:
        log.warning("throwing away %s: %s", path, error)
        store.close()
        stores.destroy(path)
        table = ScheduleTable(stores(path))
    except FormatError:
        store.close()
        raise
    checkpoint = table.checkpoint
    if checkpoint.changelog_id:
        foreign = checkpoint.changelog_id != facts.id
        stale = is_stale(table, facts, now)
        if foreign or stale:
            log.warning("throwing away %s: %s", path, "its changelog was made anew" if foreign else "it is too old")
            table.close()
            stores.destroy(path)
            table = ScheduleTable(stores(path))
    table.checkpoint = msgspec.structs.replace(table.checkpoint, changelog_id=facts.id)
    return table


def is_stale(table: ScheduleTable, facts: ChangelogFacts, now: int) -> bool:
    """Tell whether a table was last written longer ago than its changelog keeps tombstones.

    A lane that was frozen for as long and goes on has a table as dangerous as one that was found on disk.
    """
    return now - table.checkpoint.written_at > facts.delete_retention_ms


async def restore(
    table: ScheduleTable,
    changelog: TopicPartition,
    commands: TopicPartition,
    clients: LaneClients,
    clock: Clock,
    stopping: Callable[[], bool],
) -> Restored:
    """Apply the changelog from the table's checkpoint to its last stable offset, and look where the commands end.

    To be called after fencing: only then are the markers of the former owner's last transaction certain to be written.
    Raises BrokerError if the changelog stops answering, or ends before the offset that the table has.
    """
    consumer = clients.reader()
    applied = 0
    try:
        async with asyncio.timeout(STALL_TIMEOUT_S) as stall:
            await consumer.start()
            ends = await consumer.end_offsets([changelog, commands])
            end, at = ends[changelog], table.checkpoint.changelog_offset
            if at > end:
                raise BrokerError(
                    f"what is committed in {changelog.topic}-{changelog.partition} ends at {end}, before the offset "
                    f"{at} that the local copy has reached: it has lost records, or a transaction hangs in it "
                    "(kafka-transactions.sh find-hanging)"
                )
            consumer.assign([changelog])
            consumer.seek(changelog, at)
            # A position passes transaction markers and compacted holes, which no record stands for.
            while not stopping() and (at := await consumer.position(changelog)) < end:
                batch = (await consumer.getmany(timeout_ms=200)).get(changelog)
                if batch:
                    overlay = Overlay(table)
                    for record in batch:
                        overlay.replay(record.key, record.value)
                    overlay.apply(changelog_offset=batch[-1].offset + 1, written_at=clock.now())
                    applied += len(batch)
                    stall.reschedule(asyncio.get_running_loop().time() + STALL_TIMEOUT_S)
    except TimeoutError as error:
        raise BrokerError(
            f"{changelog.topic}-{changelog.partition} did not answer for {STALL_TIMEOUT_S:.0f} s"
        ) from error
    finally:
        await consumer.stop()
    return Restored(applied, ends[commands])
