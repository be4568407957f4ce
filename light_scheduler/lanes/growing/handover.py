"""Hands over, slice by slice, the schedules that belong to other partitions since the topic has grown.

This module has the position of a lane. `moving` moves each schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from light_scheduler.tables import Overlay

from .moving import Moving

MOST_SEEN = 5_000
MOST_MOVED = 500
MOST_BYTES = 2 << 20
"""Limits of a cycle, so that firings do not wait long: schedules seen, schedules moved, and bytes of payload seen."""

AGAIN_MS, SOON_MS = 60_000, 10_000
"""Minimum time until the next pass, if some schedules could not be moved, or because there were delayed commands."""


class Slice(NamedTuple):
    """The schedules that a cycle looked at: all up to the identity `after`. `stayed` of them cannot be moved.

    `waiting` more belong to tenants with delayed commands. If it `is_last`, there are no more schedules, and `ends` has
    the ends of the queues of delayed commands, by tenant. Some stayed for partitions that are `away`.
    """

    after: bytes
    stayed: int
    waiting: int
    is_last: bool = False
    ends: Mapping[str, int] = {}
    away: frozenset[int] = frozenset()


class HandoverPass:
    """Goes through the schedules of a partition by identity, and hands over those of other partitions.

    Its position is only in memory: a new worker starts again, and finds only schedules that were not moved.

    At first it skips schedules of tenants with delayed commands, since one of those may be a bulk command. Once all
    commands that waited at the end of the first pass are executed, it moves these schedules too, even if newer commands
    wait: a tenant that always exceeds its rate must not keep the partition from finishing.
    """

    def __init__(self) -> None:
        self._partitions = 0
        self._begin()

    def _begin(self) -> None:
        self._after = b""
        self._stayed = self._waiting = self._again_at = 0
        self._away: frozenset[int] = frozenset()  # partitions that schedules wait for
        self._ends: Mapping[str, int] | None = None  # ends of the queues after the first pass

    def is_due(self, moving: Moving, now: int) -> bool:
        """Return whether there may be schedules to hand over at an instant (UTC epoch ms).

        False in a cycle that abandons a bulk command: another one may fail on a schedule to hand over, and then the
        abandonment would never be committed.
        """
        partitioning = moving.partitioning
        if not moving.is_active or not partitioning.all_run or moving.has_handed_over() or moving.has_given_up:
            return False
        if partitioning.partitions != self._partitions:
            self._partitions = partitioning.partitions
            self._begin()
        is_back = any(not moving.is_away(each) for each in self._away)
        is_time = bool(self._after) or is_back or now >= self._again_at
        return is_time and (self._ends is None or not moving.waits_before(self._ends))

    def advance(self, moving: Moving, overlay: Overlay, most: int) -> Slice:
        """Hand over the next schedules. The position only changes with `learn`."""
        after, stayed, waiting, moved, size = self._after, self._stayed, self._waiting, 0, 0
        ends = moving.delayed_ends()
        held = {tenant.encode() for tenant in ends} if self._ends is None else set()
        away = set(self._away) if after else set[int]()
        for seen, name in enumerate(overlay.stored(b"", after)):
            if seen >= MOST_SEEN or moved >= min(most, MOST_MOVED) or size > MOST_BYTES:
                return Slice(after, stayed, waiting, away=frozenset(away))
            after = name
            if held and name.partition(b"\0")[0] in held:
                waiting += 1
                continue
            entry = overlay.get(name)
            if entry is None:
                continue
            size += len(entry.schedule.payload or b"")
            key = entry.schedule.key
            if key is None:  # it moves once a command names its key
                stayed += 1
            elif moving.leaves(key):
                is_gone = moving.move_caught_up(name, entry, key)
                moved, stayed = moved + is_gone, stayed + (not is_gone)
                if not is_gone and moving.is_away(home := moving.home_of(key)):
                    away.add(home)
        if not stayed and not waiting and (self._ends is not None or not ends):
            moving.finish()
        return Slice(after, stayed, waiting, is_last=True, ends=ends, away=frozenset(away))

    def learn(self, done: Slice, now: int) -> None:
        """Continue after a slice whose transaction was committed at an instant (UTC epoch ms), or was empty."""
        self._away = done.away
        if not done.is_last:
            self._after, self._stayed, self._waiting = done.after, done.stayed, done.waiting
            return
        self._after, self._stayed, self._waiting = b"", 0, 0
        self._again_at = now + (AGAIN_MS if done.stayed else SOON_MS)
        if self._ends is None:
            self._ends = done.ends
