"""The commands of a lane, on their way from the log to a cycle."""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.wire import CommandRecord

from .input_position import InputPosition
from .intake import Intake
from .readable import Readable


class Incoming(NamedTuple):
    """Of one lane: those that wait in the `intake`, which of them are `readable`, and where in which log they are."""

    intake: Intake
    readable: Readable
    position: InputPosition

    @property
    def is_behind(self) -> bool:
        """Whether the lane is to read its backlog before it fires: a command there may cancel what is due.

        A schema registry that cannot be asked may hold up commands for hours, but nothing that is pending.
        """
        return not (self.intake.backlog_taken or self.readable.is_stuck)

    def open(self, position: int, backlog_end: int) -> None:
        """Read commands from an offset on; the backlog ends before another."""
        self.readable.begin()
        self.intake.open(position, backlog_end)

    def take(self, most: int) -> list[CommandRecord]:
        """Take the next commands that can be read, at most `most`. Raises LaneError if the log has lost some."""
        return self.intake.take(self.readable.count(self.intake.waiting(), most))
