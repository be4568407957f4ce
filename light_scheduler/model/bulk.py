"""Bulk commands while they are at work: a part in each partition, and a total in the one that they were sent to."""

from __future__ import annotations

import msgspec

from .command import ControlCommand, RescheduleCommand, Selection
from .outcome import Requester

BulkCommand = ControlCommand | RescheduleCommand
"""Commands that may have a selection."""


class BulkPart(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A bulk command as it is at work in one partition, where its record is `command.partition` and `command.offset`.

    `origin_partition` and `origin_offset` name the record that was sent. Schedules are gone through by id: those up to
    `after` have been dealt with, and `changed` of them have changed.
    """

    command: BulkCommand
    origin_partition: int
    origin_offset: int
    after: str = ""
    changed: int = 0
    token: str = ""
    """What a report to the total has to name."""
    requester: Requester | None = None
    """Who asked for it over HTTP."""

    @property
    def selection(self) -> Selection:
        """Which schedules it is for."""
        assert self.command.selection is not None
        return self.command.selection


class BulkTotal(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What is known of a bulk command where it was sent to: `changed` so far, and partitions still `awaited`."""

    command: BulkCommand
    awaited: tuple[int, ...]
    changed: int = 0
    token: str = ""
    """What a report has to name to be counted."""
    requester: Requester | None = None
    """Who asked for it over HTTP."""
