"""A partition's local copy of its state: opens or rebuilds it, brings it up to date from its changelog, closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from .changelog import PartitionLogs, committed_end, decided_end, length, reading
from .rebuilding import MANY_OFFSETS
from .recovery import Following, PartitionState, Restoration, Restored, restore
from .services import LaneServices
from .table import ScheduleTable
from .usable_copy import ChangelogFacts, flaw_of, open_table


class LocalCopy:
    """The local copy of a partition's state, in the folder of a lane or a standby.

    `table` is None while the copy is closed. `facts` are the facts of the changelog against which the open copy was
    checked. A lane's copy is announced to `services.loads` until it is complete. `rebuilds` counts discarded copies.
    Long work ends early when `stopping` returns True.
    """

    def __init__(
        self,
        logs: PartitionLogs,
        path: Path,
        services: LaneServices,
        stopping: Callable[[], bool],
        *,
        is_lane: bool = False,
    ) -> None:
        self.table: ScheduleTable | None = None
        self.facts: ChangelogFacts | None = None
        self.restoration: Restoration | None = None
        self.rebuilds = 0
        self._is_condemned = False
        self._logs = logs
        self._path = path
        self._services = services
        self._stopping = stopping
        self._is_lane = is_lane
        if is_lane:
            services.loads.announce(self)

    def adopt(self, table: ScheduleTable | None) -> None:
        """Take over a standby's open table in this folder; None if it has none."""
        self.table, self.facts = table, None

    def give_away(self) -> ScheduleTable | None:
        """Return the open table and forget it without closing it."""
        table, self.table, self.facts = self.table, None, None
        return table

    def close(self) -> None:
        """Close the table, if it is open."""
        self._services.loads.withdraw(self)
        self._close_table()

    def _close_table(self) -> None:
        if (table := self.give_away()) is not None:
            table.close()

    def condemn(self) -> None:
        """Mark the folder's content as damaged: it is deleted before the next open. The table must be closed."""
        self._is_condemned = True

    async def bring_up(self, *, are_markers_late: bool = False) -> tuple[ScheduleTable, Restored]:
        """Open the copy if it is closed, discard it if it may not be used, and apply the rest of the changelog.

        A lane must call this after fencing, and say whether fencing left markers to be written (see
        `changelog.decided_end`). Raises as `recovery.restore`, and StateError if a copy cannot be deleted.
        """
        services = self._services
        if self._is_lane:
            services.loads.announce(self)
        if self._is_condemned:
            services.stores.destroy(self._path)
            self._count_rebuild()
            self._is_condemned = False
        facts = self.facts or await services.changelog_facts(self._logs.changelog.topic)
        if self.table is not None and flaw_of(self.table, facts, services.clock.now()) is not None:
            self._close_table()
        table = self._open(facts) if self.table is None else self.table
        self.facts = facts
        for _ in table.renew():
            await asyncio.sleep(0)
        turn = services.loads.turn(is_lane=self._is_lane, stopping=self._stopping) if table.is_new else nullcontext()
        async with turn, reading(services.clients) as reader:
            end_of = partial(decided_end, are_markers_late=are_markers_late) if self._is_lane else committed_end
            state, following = PartitionState(facts, self._logs, end_of), Following(self._stopping, self._watch)
            is_wanted = table.is_empty and not self._stopping()
            if is_wanted and services.rebuilding and await length(self._logs.changelog, reader) >= MANY_OFFSETS:
                self._close_table()
                begun = await services.rebuilding.rebuild(self._path, state, following)
                following = following._replace(begun=begun)
                table = self._open(facts)
            is_filled = table.is_new
            try:
                restored = await restore(table, state, reader, services.clock, following)
            except BaseException:
                if is_filled:  # it may have uncounted rows; without a checkpoint, it will not be used again
                    self._close_table()
                raise
        services.loads.withdraw(self)
        return table, restored

    def _open(self, facts: ChangelogFacts) -> ScheduleTable:
        services = self._services
        self.table = open_table(services.stores, self._path, facts, services.clock.now(), self._count_rebuild)
        self.facts = facts
        return self.table

    def _watch(self, restoration: Restoration) -> None:
        self.restoration = restoration

    def _count_rebuild(self) -> None:
        self.rebuilds += 1
