"""The commands that wait for a lane, in offset order and without gaps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from light_scheduler.errors import LaneError
from light_scheduler.wire.record import CommandRecord

MAX_WAITING_BATCHES = 8
MAX_WAITING = 20_000
MAX_WAITING_BYTES = 16 << 20
"""Limits of a lane: waiting batches, the commands in them, and the bytes of those that were compressed.

Each may be exceeded by a batch. Further commands stay in the broker.
"""


class _Batch(NamedTuple):
    """Waiting commands. `size` is the total size of the batch when it arrived, in bytes."""

    records: list[CommandRecord]
    size: int


class Intake:
    """Receives fetched batches.

    A batch that does not start where the last one ended is refused, and the fetch loop then seeks to `next_offset`. A
    new `epoch` invalidates everything fetched before. `wake` wakes the lane when a batch has arrived, and `make_room`
    wakes the fetch loop when there is room again.
    """

    def __init__(self, wake: Callable[[], None], make_room: Callable[[], None]) -> None:
        self._wake = wake
        self._make_room = make_room
        self._waiting: deque[_Batch] = deque()
        self._count = self._size = 0  # of the waiting batches
        self._backlog_end = 0
        self._reached = self._taken = 0
        self.epoch = 0
        self.is_open = False
        self.needs_seek = False
        self.next_offset = 0
        self._lost: LaneError | None = None
        self.backlog_taken = False
        """Whether all commands that were in the log when the lane took over have been taken."""

    def open(self, position: int, backlog_end: int) -> None:
        """Accept batches from offset `position` on. The backlog ends before `backlog_end`."""
        self._drop()
        self._lost = None
        self._backlog_end = backlog_end
        self.next_offset = self._reached = self._taken = position
        self.backlog_taken = position >= backlog_end
        self.is_open = self.needs_seek = True
        self._make_room()

    def close(self) -> None:
        """Accept no more batches, and drop the waiting ones."""
        self._drop()
        self.is_open = self.backlog_taken = False

    @property
    def is_full(self) -> bool:
        is_much = self._count >= MAX_WAITING or self._size >= MAX_WAITING_BYTES
        return is_much or len(self._waiting) >= MAX_WAITING_BATCHES

    @property
    def has_all(self) -> bool:
        """Whether all commands known to be in the log have arrived."""
        return not self.is_full and self._reached >= self._backlog_end

    def offer(self, epoch: int, first: int, records: list[CommandRecord], size: int = 0) -> None:
        """Accept a batch that was fetched from offset `first` on, if it follows the last one.

        `size` is the uncompressed size of compressed batches in bytes. It may be many times the fetched size.
        """
        if not self.is_open or epoch != self.epoch or first != self.next_offset or records[0].offset < first:
            self.needs_seek = True
            return
        self._waiting.append(_Batch(records, size))
        self._count += len(records)
        self._size += size
        self.next_offset = self._reached = records[-1].offset + 1
        self._wake()

    def reached(self, position: int) -> None:
        """Note that all records before an offset have arrived. It may be past markers, which are not records."""
        if self.is_open and position > self._reached:
            self._reached = position
            if not self.backlog_taken:
                self._wake()

    def lose(self, offset: int) -> None:
        """Note that the log no longer has the offset to read next. The lane has to find out why."""
        self._lost = LaneError(f"the commands topic no longer has offset {offset}")
        self._wake()

    def done_before(self, position: int) -> int:
        """Return the offset before which nothing waits, here or in the broker, once `position` is committed.

        It is past the markers and aborted records that follow the last command.
        """
        is_all_done = self.is_open and not self._waiting and position >= self._taken
        return max(position, self._reached) if is_all_done else position

    def waiting(self) -> Iterator[CommandRecord]:
        """Yield the waiting commands in order, without taking them."""
        return chain.from_iterable(batch.records for batch in self._waiting)

    def take(self, limit: int) -> list[CommandRecord]:
        """Take up to `limit` waiting commands, in order. Raises LaneError after `lose`."""
        if self._lost is not None:
            raise self._lost
        taken: list[CommandRecord] = []
        was_full = self.is_full
        while self._waiting and len(taken) < limit:
            records, size = self._waiting.popleft()
            room = limit - len(taken)
            if len(records) > room:
                self._waiting.appendleft(_Batch(records[room:], size))
                records = records[:room]
            else:
                self._size -= size
            taken = taken + records if taken else records
        if taken:
            self._count -= len(taken)
            self._taken = taken[-1].offset + 1
            if was_full and not self.is_full:
                self._make_room()
        if not self.backlog_taken and self.is_open:
            arrived = self._reached if not self._waiting else self._taken
            self.backlog_taken = arrived >= self._backlog_end
        return taken

    def _drop(self) -> None:
        """Drop the waiting batches, and invalidate those being fetched."""
        self.epoch += 1
        self._waiting.clear()
        self._count = self._size = 0
