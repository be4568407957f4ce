"""Whether a partition's local copy may be used: it is opened, deleted if it could be wrong, or left as it is.

A copy from a newer version is left as it is: `open_table` raises FormatTooNew, and a lane then ends its worker.
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
"""How long after now a copy may have been complete last: clocks are set back a little where they are kept in step."""

log = logging.getLogger(__name__)


class ChangelogFacts(NamedTuple):
    """Facts that decide whether a local copy may be used: the topic's id, and how long it keeps tombstones (ms)."""

    id: str
    delete_retention_ms: int


def open_table(
    stores: Stores, path: Path, facts: ChangelogFacts, now: int, discarded: Callable[[], None] = lambda: None
) -> ScheduleTable:
    """Open a partition's local copy; delete it first, and begin an empty one, if it may not be used.

    It may not if cancelled schedules could return: its changelog was deleted and created again, or it is older than
    the changelog keeps tombstones, so cancels and firings since then may have been compacted away. If it is of a time
    that is still to come, a clock was wrong, and nobody knows how old it is. Nor may it be used if it is damaged, if an
    older version wrote it in another layout, or if its process ended before it was complete. `discarded` is called if a
    copy is deleted. Raises FormatTooNew, with the copy untouched, if a newer version wrote it, and FormatError.
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
    """Open a local copy, and say what is wrong with it."""
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
    """Say why an open table may not be used; None: it may.

    A lane that was frozen for long and goes on has a table as dangerous as one that was found on disk.
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
    """Raise StateStale unless what was read until now (ms) can go into the table, or count for it.

    To be called between reading and applying: the process may have been frozen before it read. Of what was committed
    after the table was complete last, all that the changelog has lost is superseded, as long as it keeps tombstones.
    """
    if flaw := flaw_of(table, facts, now):
        raise StateStale(f"the local copy cannot be brought up to date: {flaw}")
