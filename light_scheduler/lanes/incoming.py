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

    def take(self, most: int) -> list[CommandRecord]:
        """Take the next commands that can be read, at most `most`. Raises LaneError if the log has lost some."""
        return self.intake.take(self.readable.count(self.intake.waiting(), most))
