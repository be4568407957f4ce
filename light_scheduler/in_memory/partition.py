"""One partition of the commands topic: runs the lane's cycles one after another, without waiting in between."""

from __future__ import annotations

from light_scheduler.lanes.budget import NOTHING_DUE, TurnBudget
from light_scheduler.lanes.context import CycleContext
from light_scheduler.lanes.cycle import Cycle
from light_scheduler.lanes.cycles import MAX_BULK, MAX_FIRING_BYTES
from light_scheduler.lanes.pace import MOST
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
        self._most = most
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

    def cycle(self, now: int) -> None:
        """Process all that waits at an instant, and write the results: steps 1 to 4 of the commit protocol."""
        overlay, batches = Overlay(self._table), self._context.new_batches(now)
        cycle = Cycle(self._context, overlay, batches, now)
        commands = self._take_commands()
        has_commands = bool(commands)
        has_more = self._position < self._broker.end(self._place)
        if has_commands:
            cycle.take_all(commands)  # this empties the list
            cycle.moved_to(self._position)
        is_bulk_at_work = cycle.advance_bulk(min(self._most, MAX_BULK), MAX_FIRING_BYTES)
        # A waiting command may cancel due firings.
        turns = TurnBudget(self._most, MAX_FIRING_BYTES)
        due = NOTHING_DUE if has_more else overlay.due(now, turns.most, turns.max_bytes)
        cycle.fire_due(due, {}, turns)
        cycle.answer({})
        cycle.keep_bulk()
        for place, build, count in batches.by_place():
            self._broker.append_batch(place, build, count)
        overlay.apply(changelog_offset=self._broker.end(self._context.changelog), complete_at=now)
        after = Overlay(self._table)
        self._is_bulk_at_work = bool((has_commands or is_bulk_at_work) and after.others.bulk_parts())
        self.next_due = after.next_due()

    def _take_commands(self) -> list[CommandRecord]:
        """Return the next commands in reverse order."""
        if self._position == self._broker.end(self._place):
            return []
        log = self._broker.log(self._place)[self._position : self._position + self._most]
        self._position += len(log)
        return [*reversed(log)]
