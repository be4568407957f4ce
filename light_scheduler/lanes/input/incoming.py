"""The commands of a lane, on their way from the log to a cycle."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.wire import CommandRecord

from .intake import Intake
from .position import InputPosition
from .readable import Readable


class Incoming(NamedTuple):
    """The incoming commands of one lane: the `intake` they wait in, which are `readable`, and their log `position`."""

    intake: Intake
    readable: Readable
    position: InputPosition

    @property
    def is_behind(self) -> bool:
        """Whether the lane must read its backlog before it fires, as a command there may cancel a due firing.

        An unreachable schema registry may hold up commands for hours, but must not hold up pending schedules.
        """
        return not (self.intake.backlog_taken or self.readable.is_stuck)

    @property
    def is_held(self) -> bool:
        """Whether the next command waits for its schema."""
        return self.readable.is_held

    def open(self, position: int, backlog_end: int) -> None:
        """Read commands from offset `position` on. The backlog ends before `backlog_end`."""
        self.readable.begin()
        self.intake.open(position, backlog_end)

    def take(self, most: int) -> list[CommandRecord]:
        """Take up to `most` of the next commands that can be read. Raises LaneError if the log has lost some."""
        return self.intake.take(self.readable.count(self.intake.waiting(), most))
