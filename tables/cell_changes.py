"""Changes of counts by one write: the cells that gain and lose schedules (see `counts`)."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from light_scheduler.model import Entry, State
from light_scheduler.model.probe import PROBE_TENANT

from . import layout
from .cells import but_for_zeros

UNCOUNTED = b"\xff" * 4
"""The group of schedules that are not counted. It sorts after all others."""

GROUP_NUMBER = struct.Struct(">I")


class Group(NamedTuple):
    """Schedules that are counted together: they have the same tenant, target topic and state."""

    tenant: str
    topic: str
    state: State


class Numbered(Protocol):
    """The numbers of groups, and the next free number."""

    @property
    def numbers(self) -> Mapping[Group, bytes]: ...

    @property
    def next_number(self) -> int: ...


class CellChanges:
    """Collects the cells of added and removed schedules. It changes nothing itself, so it can be dropped."""

    def __init__(self, groups: Numbered) -> None:
        self._known = groups.numbers
        self._next = groups.next_number
        self.new: dict[Group, bytes] = {}
        self.added: list[bytes] = []
        self.removed: list[bytes] = []
        self._tenant = ""
        self._topic: str | None = None  # the last topic looked up for pending schedules, with its group number
        self._number = b""
        self._minute = slice(0)  # position of the minute in this tenant's time-index keys

    def add(self, entry: Entry, index_key: bytes) -> bytes:
        """Count a schedule and return its cell."""
        cell = self.cell(entry, index_key)
        self.added.append(cell)
        return cell

    def cell(self, entry: Entry, index_key: bytes) -> bytes:
        """Return the cell of a schedule."""
        schedule, progress = entry.schedule, entry.progress
        if progress.awaited or progress.paused:
            group = Group(schedule.tenant, schedule.target.topic, progress.state)
            return self.number(group) + layout.minute_in(index_key)
        topic = schedule.target.topic
        if topic != self._topic or schedule.tenant != self._tenant:
            self._tenant, self._topic = schedule.tenant, topic
            self._number = self.pending_number(schedule.tenant, topic)
            self._minute = layout.minute_of(schedule.tenant)
        return self._number + index_key[self._minute]

    def pending_number(self, tenant: str, topic: str) -> bytes:
        """Return the number (u32) of the group of schedules that are neither paused nor awaited."""
        return self.number(Group(tenant, topic, "pending"))

    def number(self, group: Group) -> bytes:
        """Return the number (u32) of a group. A group without counted schedules gets a new one."""
        if group.tenant == PROBE_TENANT:
            return UNCOUNTED
        number = self._known.get(group) or self.new.get(group)
        if number is None:
            number = self.new[group] = GROUP_NUMBER.pack(self._next)
            self._next += 1
        return number

    def changes(self) -> dict[bytes, int]:
        """Return the change of each cell, without zeros."""
        changes = Counter(self.added)
        if self.removed:
            changes_of = changes.get
            for cell, count in Counter(self.removed).items():
                changes[cell] = changes_of(cell, 0) - count
        if changes and max(changes) >= UNCOUNTED:
            return {cell: change for cell, change in changes.items() if change and cell < UNCOUNTED}
        return but_for_zeros(changes)
