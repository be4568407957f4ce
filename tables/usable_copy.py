"""Decides whether a partition's local copy may be used. Copies that could be wrong are deleted.

A copy from a newer version is not touched: `open_table` raises FormatTooNew, and a lane then ends its worker.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from light_scheduler.errors import FormatError, FormatTooOld, StateCorrupt, StateStale

from .store import Stores
from .table import ScheduleTable

MAX_AHEAD_MS = 60_000
"""How far in the future the `complete_at` of a copy may be: synchronised clocks are set back a little at times."""

log = logging.getLogger(__name__)


class ChangelogFacts(NamedTuple):
    """Facts that decide whether a local copy may be used: the changelog's id and retention of tombstones (ms)."""

    id: str
    delete_retention_ms: int


def open_table(
    stores: Stores, path: Path, facts: ChangelogFacts, now: int, discarded: Callable[[], None] = lambda: None
) -> ScheduleTable:
    """Open a partition's local copy. If it may not be used, delete it and start with an empty one.

    A copy is deleted if cancelled schedules could return: its changelog was deleted and created again, or it is older
    than the changelog's retention of tombstones, so later cancels and firings may have been compacted away. It is also
    deleted if its time is in the future (a clock was wrong, so its age is unknown), if it is damaged, if an older
    version wrote it in another layout, or if its process ended before it was complete. `discarded` is called when a
    copy is deleted. Raises FormatTooNew if a newer version wrote the copy, which is left untouched. Raises FormatError.
    """
    table, flaw = _opened(stores, path, facts, now)
    if flaw is not None:
        log.warning("discarding the local copy %s: %s", path, flaw)
        discarded()
        if table is not None:
            table.close()
        stores.destroy(path)
    if table is None or flaw is not None:
        table = ScheduleTable(stores(path))
    table.checkpoint = msgspec.structs.replace(table.checkpoint, changelog_id=facts.id)
    return table


def _opened(stores: Stores, path: Path, facts: ChangelogFacts, now: int) -> tuple[ScheduleTable | None, str | None]:
    """Open a local copy. Return the table and the reason why it may not be used, if any."""
    try:
        store = stores(path)
    except StateCorrupt as error:
        return None, str(error)
    try:
        table = ScheduleTable(store)
        return table, "it was not finished" if table.is_cut_short else flaw_of(table, facts, now)
    except (FormatTooOld, StateCorrupt) as error:
        store.close()
        return None, str(error)
    except FormatError:
        store.close()
        raise


def flaw_of(table: ScheduleTable, facts: ChangelogFacts, now: int) -> str | None:
    """Return why an open table may not be used; None if it may.

    The open table of a lane that was frozen for long is as dangerous as an old copy on disk.
    """
    checkpoint = table.checkpoint
    if not checkpoint.changelog_id:
        return None  # nothing was written yet
    if checkpoint.changelog_id != facts.id:
        return "its changelog was made anew"
    age = now - checkpoint.complete_at
    if age < -MAX_AHEAD_MS:
        return f"the clock was {-age:,} ms ahead of this one when it was written, so its age is not known"
    return "it is too old" if age > facts.delete_retention_ms else None


def check_fresh(table: ScheduleTable, facts: ChangelogFacts, now: int) -> None:
    """Raise StateStale unless records read until now (ms) may be applied to the table.

    Call this between reading and applying, since the process may have been frozen before it read. Within the retention
    of tombstones, records that the changelog lost since the table was complete were superseded by later ones.
    """
    if flaw := flaw_of(table, facts, now):
        raise StateStale(f"the local copy cannot be brought up to date: {flaw}")
