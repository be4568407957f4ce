"""Commands for many schedules while they are at work: sweeps of the partitions, and a tally where they were sent to."""

from __future__ import annotations

import msgspec

from .command import ControlCommand, RescheduleCommand, Selection

CommandForMany = ControlCommand | RescheduleCommand
"""Commands that may have a selection."""


class Sweep(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A command for many at work in one partition, where its place is `command.partition` and `command.offset`.

    `origin_partition` and `origin_offset` name the record that was sent. Schedules are gone through by id: those up to
    `after` have been dealt with, and `changed` of them have changed.
    """

    command: CommandForMany
    origin_partition: int
    origin_offset: int
    after: str = ""
    changed: int = 0

    @property
    def selection(self) -> Selection:
        """Which schedules it is for."""
        assert self.command.selection is not None
        return self.command.selection


class Tally(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a command for many where it was sent to: `changed` so far, and partitions still `awaited`."""

    command: CommandForMany
    awaited: tuple[int, ...]
    changed: int = 0
