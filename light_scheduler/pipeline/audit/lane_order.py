"""What the order of a lane's history tells of its commands, whatever the instants are.

A lane carries out the commands of a tenant in the order of their log (see `Orders.overtakes` for those that do not
wait), and writes its lines, all to one partition of the history, in the order of what it does. So:

    a line was written when a command had its effect        all commands of the tenant before it had been carried out
    a schedule fired by a line after that                   a command before it that could have changed that was lost
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .faults import RecordId
from .handled import Queue
from .header_lists import Numbers

_NUMBER = "<i8"


class CarriedOut(NamedTuple):
    """When a line of history was written, a command had surely been carried out after all of its tenant before it:
    that at an `offset`.
    """

    line: RecordId
    offset: int


class PassedOver(NamedTuple):
    """A command that would have changed a schedule, and had surely not been carried out when it fired by a `line`."""

    command: RecordId
    recorded_at: int
    line: RecordId

    @property
    def detail(self) -> str:
        topic, partition, offset = self.line
        return f"it had no effect before {topic}/{partition}/{offset}, and a later command had"


class Piece(NamedTuple):
    """Rows of offsets: of a line in a partition of the history, and of a command in a queue that it tells of."""

    queue: Queue
    partition: int
    offsets: bytes


class CarriedOutCommands:
    """Commands that were carried out, and the lines that tell it, in few and small pieces."""

    def __init__(self) -> None:
        self._by_log: defaultdict[tuple[Queue, int], list[Numbers]] = defaultdict(list)
        self._number = 0

    def add(self, queue: Queue, partition: int, offsets: Numbers) -> None:
        """Add rows of offsets, as a piece has them."""
        self._by_log[queue, partition].append(offsets)
        self._number += len(offsets)

    def pieces(self, least: int) -> Iterator[Piece]:
        """Remove and yield all, if there are so many."""
        if self._number < least:
            return
        for (queue, partition), offsets in self._by_log.items():
            yield Piece(queue, partition, np.concatenate(offsets).astype(_NUMBER).tobytes())
        self._by_log.clear()
        self._number = 0


def offsets_in(packed: bytes) -> Numbers:
    """Return the rows of offsets in a piece."""
    rows: Numbers = np.frombuffer(packed, _NUMBER).reshape(-1, 2)
    return rows
