"""Step 2: bulk commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from light_scheduler.engine import Decision, concerns, decide_bulk
from light_scheduler.lanes.bulk import commands as bulk_module
from light_scheduler.lanes.bulk.commands import BulkCommands
from light_scheduler.lanes.bulk.growth import Governing
from light_scheduler.model import BulkPart, Entry
from light_scheduler.wire.lane_marks import Count
from simulation.drawing_growth import draw_bulk_growth

from .planting import mutant, replaced

replace = msgspec.structs.replace


@mutant(2, "A bulk command is not carried out first on what something else happens to.")
def _nothing_catches_up() -> Iterator[Any]:
    with replaced(BulkCommands, "catch_up", lambda _self, _name, entry: entry):
        yield None


@mutant(2, "A schedule does not record the bulk command that was carried out on it out of turn.")
def _bulk_offset_is_not_kept() -> Iterator[Any]:
    def unmarked(*args: Any) -> Decision:
        decision = decide_bulk(*args)
        if decision.entry is None:
            return decision
        progress = replace(decision.entry.progress, bulk_offset=0)
        return replace(decision, entry=replace(decision.entry, progress=progress))

    with replaced(bulk_module, "decide_bulk", unmarked):
        yield None


@mutant(2, "A bulk command is carried out on what arrived after it, too.")
def _bulk_commands_touch_later_schedules() -> Iterator[Any]:
    def anything(part: BulkPart, entry: Entry) -> bool:
        return concerns(part, replace(entry, progress=replace(entry.progress, arrival=0)))

    with replaced(bulk_module, "concerns", anything):
        yield None


@mutant(2, "A bulk command is answered when the first partition has reported.")
def _tally_is_answered_too_soon() -> Iterator[Any]:
    add_count = BulkCommands.add_count

    def first_is_enough(self: BulkCommands, count: Count) -> None:
        total = self._overlay.others.bulk_total(count.offset)
        if total is not None and self._totals.get(count.offset) == total:
            self._totals.put(count.offset, replace(total, awaited=(count.partition,)))
        add_count(self, count)

    with replaced(BulkCommands, "add_count", first_is_enough):
        yield None


@mutant(2, "A bulk command does not follow schedules that have been handed over.", 200, draw_bulk_growth)
def _bulk_commands_follow_nothing() -> Iterator[Any]:
    with replaced(Governing, "spreads", lambda *_: False):
        yield None


@mutant(2, "Each part is for all schedules of its partition, though the topic grows.", 400, draw_bulk_growth)
def _parts_are_for_all() -> Iterator[Any]:
    with replaced(BulkCommands, "_concerns", lambda _, part, entry: concerns(part, entry)):
        yield None


@mutant(
    2,
    "Commands behind a bulk command overtake it, as its former partitions have nothing left.",
    3_000,
    draw_bulk_growth,
)
def _bulk_commands_are_overtaken() -> Iterator[Any]:
    with replaced(BulkCommands, "any_awaited", False), replaced(BulkCommands, "awaits", lambda *_: False):
        yield None
