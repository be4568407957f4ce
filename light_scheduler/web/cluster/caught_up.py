"""Waits until tables contain every change that was answered before: a result can be read a moment before the table has
it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from light_scheduler.tables.views import Lane, ReadableTable
from light_scheduler.web.interfaces import Lanes, Tables


async def caught_up(lanes: Lanes) -> Tables:
    """Wait until the tables contain everything committed by now. Leaves out tables that do not catch up in time."""
    late = await lanes.catch_up()
    return _Without(lanes, late) if late else lanes


class _Without:
    def __init__(self, lanes: Tables, late: Set[Lane]) -> None:
        self._lanes = lanes
        self._late = late

    def tables(self) -> Mapping[Lane, ReadableTable]:
        return {lane: table for lane, table in self._lanes.tables().items() if lane not in self._late}
