"""A partition's local copy of its state: opened or built anew, brought up to the end of its changelog, closed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from aiokafka import TopicPartition

from light_scheduler.tables import ScheduleTable

from .rebuilding import MANY_OFFSETS
from .recovery import ChangelogFacts, Restoration, Restored, flaw_of, length, open_table, reading, restore
from .services import LaneServices


class LocalCopy:
    """What a lane, or a standby, has of a partition's state in its folder.

    `table` is None while it is closed, and `facts`, while it is open, those of the changelog that it was found to
    belong to. `rebuilds` counts how often a copy was thrown away. What takes long ends early when `stopping` says so.
    """

    def __init__(
        self,
        commands: TopicPartition,
        changelog: TopicPartition,
        path: Path,
        services: LaneServices,
        stopping: Callable[[], bool],
    ) -> None:
        self.table: ScheduleTable | None = None
        self.facts: ChangelogFacts | None = None
        self.restoration: Restoration | None = None
        self.rebuilds = 0
        self._commands = commands
        self._changelog = changelog
        self._path = path
        self._services = services
        self._stopping = stopping

    def adopt(self, table: ScheduleTable | None) -> None:
        """Take over the table that a standby had open in this folder, if it had one."""
        self.table, self.facts = table, None

    def give_away(self) -> ScheduleTable | None:
        """Let go of the open table without closing it."""
        table, self.table, self.facts = self.table, None, None
        return table

    def close(self) -> None:
        """Close the table, if it is open."""
        if (table := self.give_away()) is not None:
            table.close()

    def destroy(self) -> None:
        """Remove what is in the folder, which is damaged; the table must be closed."""
        self._services.stores.destroy(self._path)
        self._count_rebuild()

    async def bring_up(self) -> tuple[ScheduleTable, Restored]:
        """Open the copy unless it is open, throw it away if it may not be used, and apply what the changelog has more.

        For a lane, to be called after fencing (see `recovery.restore`, which says what is raised).
        """
        services = self._services
        facts = self.facts or await services.changelog_facts(self._changelog.topic)
        if self.table is not None and flaw_of(self.table, facts, services.clock.now()) is not None:
            self.close()
        table = self._open(facts) if self.table is None else self.table
        self.facts = facts
        async with services.loads if table.is_new else nullcontext(), reading(services.clients) as reader:
            begun = None
            if table.is_empty and services.rebuilding and await length(self._changelog, reader) >= MANY_OFFSETS:
                self.close()
                begun = await services.rebuilding.rebuild(
                    self._path, facts, self._changelog, self._commands, self._stopping, self._watch
                )
                table = self._open(facts)
            restored = await restore(
                table,
                facts,
                self._changelog,
                self._commands,
                reader,
                services.clock,
                self._stopping,
                self._watch,
                begun,
            )
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
