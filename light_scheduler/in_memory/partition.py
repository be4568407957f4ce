"""One partition of the commands topic: runs the lane's cycles one after another, without waiting in between."""

from __future__ import annotations

from light_scheduler.lanes.context.lane_context import CycleContext
from light_scheduler.lanes.cycle.budget import NOTHING_DUE, TurnBudget
from light_scheduler.lanes.cycle.cycle import Cycle
from light_scheduler.lanes.cycle.pace import MOST
from light_scheduler.lanes.cycle.steps import CycleSize, CycleSteps
from light_scheduler.tables import MemoryStore, Overlay, ScheduleTable
from light_scheduler.wire import CommandRecord

from .broker import MemoryBroker


class MemoryPartition:
    """The table of a partition, and how far its commands have been read. `next_due` is the next time a schedule wakes
    (UTC epoch ms).

    A cycle takes at most `most` commands and `most` firings.
    """

    def __init__(self, context: CycleContext, broker: MemoryBroker, most: int = MOST) -> None:
        self.next_due: int | None = None
        self._context = context
        self._broker = broker
        self._size = CycleSize(most)
        self._steps = CycleSteps()
        self._place = context.commands_topic, context.partition
        self._table = ScheduleTable(MemoryStore())
        self._position = 0
        self._is_bulk_at_work = False

    @property
    def table(self) -> ScheduleTable:
        """Its pending schedules."""
        return self._table

    def has_work(self, now: int) -> bool:
        """Return whether a cycle at an instant (UTC epoch ms) would do something."""
        is_due = self.next_due is not None and self.next_due <= now
        return is_due or self._is_bulk_at_work or self._position < self._broker.end(self._place)

    @property
    def is_behind(self) -> bool:
        """Whether one cycle cannot take all commands. One of the others may cancel a due firing."""
        return self._broker.end(self._place) - self._position > self._size.most

    @property
    def is_held(self) -> bool:
        """Commands never wait for schemas here."""
        return False

    def take(self, most: int) -> list[CommandRecord]:
        """Take up to `most` of the next commands."""
        taken: list[CommandRecord] = [*self._broker.log(self._place)[self._position : self._position + most]]
        self._position += len(taken)
        return taken

    def cycle(self, now: int) -> None:
        """Process all that waits at an instant, and write the results: steps 1 to 4 of the commit protocol."""
        overlay, batches = Overlay(self._table), self._context.new_batches(now)
        cycle = Cycle(self._context, overlay, batches, now)
        self._steps.begin(self)
        taken = self._steps.take(cycle, self, self._size)
        turns = TurnBudget(self._size.most, self._size.max_bytes)
        due = overlay.due(now, turns.most, turns.max_bytes) if taken.may_fire else NOTHING_DUE
        self._steps.fire(cycle, due, turns)
        cycle.keep_bulk()
        if taken.position is not None:
            cycle.moved_to(taken.position)
        for place, build, count in batches.by_place():
            self._broker.append_batch(place, build, count)
        self._steps.commit(cycle, taken, self._context.memory.command_rates)
        overlay.apply(changelog_offset=self._broker.end(self._context.changelog), complete_at=now)
        after = Overlay(self._table)
        self._is_bulk_at_work = bool((taken.read or taken.is_bulk_at_work) and after.others.bulk_parts())
        self.next_due = after.next_due()
