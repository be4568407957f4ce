"""Handing over, slice by slice, what belongs to other partitions since the topic has grown: how far a lane has come.

`moving` moves each single schedule.
"""

from __future__ import annotations

from typing import NamedTuple

from light_scheduler.tables import Overlay

from .moving import Moving

MOST_SEEN = 5_000
MOST_MOVED = 500
MOST_BYTES = 2 << 20
"""Per cycle, so that firings do not wait for long: schedules looked at, schedules moved, and payloads looked at."""

AGAIN_MS, SOON_MS = 60_000, 10_000
"""How long it is at least until those that could not be moved are looked at again; or all, once more, when no delayed
command waits, if only those did."""


class Slice(NamedTuple):
    """How far a cycle has come: all up to the identity `after` were looked at, and `stayed` of them cannot be moved.

    `is_last` if there were no more.
    """

    after: bytes
    stayed: int
    is_last: bool


class Sweep:
    """Goes through the schedules of a partition by identity, for a number of partitions. Forgets nothing in between
    but when the worker ends: then what was moved is not there any more, and the rest is gone through again.
    """

    def __init__(self) -> None:
        self._partitions = 0
        self._after = b""
        self._stayed = 0
        self._again_at = 0
        self._is_for_delayed = False

    def is_due(self, moving: Moving, now: int) -> bool:
        """Tell whether there may be something to hand over at an instant (UTC epoch ms)."""
        placement = moving.placement
        if not moving.is_active or not placement.all_run or moving.is_swept():
            return False
        if placement.partitions != self._partitions:
            self._partitions, self._after, self._stayed, self._again_at = placement.partitions, b"", 0, 0
            self._is_for_delayed = False
        return now >= self._again_at and (not self._is_for_delayed or moving.may_finish())

    def advance(self, moving: Moving, overlay: Overlay, most: int) -> Slice:
        """Hand over the next schedules; nothing is kept of that before `learn`."""
        after, stayed, moved, size = self._after, self._stayed, 0, 0
        for seen, name in enumerate(overlay.stored(b"", after)):
            if seen >= MOST_SEEN or moved >= min(most, MOST_MOVED) or size > MOST_BYTES:
                return Slice(after, stayed, is_last=False)
            after = name
            entry = moving.caught_up(name)
            if entry is None:
                continue
            size += len(entry.schedule.payload or b"")
            key = entry.schedule.key
            if key is None:  # it moves when a command tells its key
                stayed += 1
            elif moving.belongs_elsewhere(key):
                is_moved = moving.move(name, entry, key)
                moved, stayed = moved + is_moved, stayed + (not is_moved)
        if not stayed and moving.may_finish():
            moving.finish()
        return Slice(after, stayed, is_last=True)

    def learn(self, done: Slice, now: int) -> None:
        """Go on behind a slice; its transaction was committed at an instant (UTC epoch ms), or had nothing to say."""
        self._after, self._stayed = (b"", 0) if done.is_last else (done.after, done.stayed)
        self._again_at = now + (AGAIN_MS if done.stayed else SOON_MS) if done.is_last else 0
        self._is_for_delayed = done.is_last and not done.stayed
