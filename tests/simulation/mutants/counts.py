"""What a table counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from light_scheduler.tables import Overlay, ScheduleTable
from light_scheduler.tables.cell_changes import CellChanges
from simulation.drawing import draw_tenants

from .planting import mutant, replaced


@mutant(4, "Schedules stay counted when they have fired.", draw=draw_tenants)
def _counts_that_only_grow() -> Iterator[Any]:
    with replaced(CellChanges, "changes", lambda counted: dict(Counter(counted.added))):
        yield None


@mutant(4, "What a failed cycle would have added counts as pending.", draw=draw_tenants)
def _counts_survive_an_abort() -> Iterator[Any]:
    added: defaultdict[Any, defaultdict[bytes, int]] = defaultdict(lambda: defaultdict(int))
    apply = Overlay.apply

    def go_on(self: Overlay) -> None:
        self._counted = added[self._table]

    def applied(self: Overlay, **reached: Any) -> None:
        apply(self, **reached)
        added.pop(self._table, None)

    with replaced(Overlay, "count_tenants", go_on), replaced(Overlay, "apply", applied):
        yield None


@mutant(4, "Counts are stored in a write of their own.")
def _counts_apart() -> Iterator[Any]:
    write = ScheduleTable.write

    def apart(self: ScheduleTable, changes: Any, checkpoint: Any, counted: Any = None) -> None:
        step = None if counted is None else self.counts.step(counted)
        if step is not None:
            self.store.write(step.rows)
            self.counts.take(step)
        write(self, changes, checkpoint)

    with replaced(ScheduleTable, "write", apart):
        yield None


@mutant(0, "What a changelog record takes away stays counted.")
def _replays_only_add() -> Iterator[Any]:
    replay = Overlay.replay

    def adding(self: Overlay, key: bytes, value: bytes | None) -> None:
        replay(self, key, value)
        self._cells.removed.clear()

    with replaced(Overlay, "replay", adding):
        yield None
