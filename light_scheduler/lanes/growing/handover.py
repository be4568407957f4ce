"""Handing over, slice by slice, what belongs to other partitions since the topic has grown: how far a lane has come.

`moving` moves each single schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from light_scheduler.tables import Overlay

from .moving import Moving

MOST_SEEN = 5_000
MOST_MOVED = 500
MOST_BYTES = 2 << 20
"""Per cycle, so that firings do not wait for long: schedules looked at, schedules moved, and payloads looked at."""

AGAIN_MS, SOON_MS = 60_000, 10_000
"""How long it is at least until those that could not be moved are looked at again; or all, once more, since there were
delayed commands."""


class Slice(NamedTuple):
    """How far a cycle has come: all up to the identity `after` were looked at, and `stayed` of them cannot be moved.

    Commands are delayed of the tenants of `waiting` more. If it `is_last`, there are no more, and `ends` are where the
    queues of delayed commands end, by tenant. For partitions that are `away` some stayed.
    """

    after: bytes
    stayed: int
    waiting: int
    is_last: bool = False
    ends: Mapping[str, int] = {}
    away: frozenset[int] = frozenset()


class HandoverPass:
    """Goes through the schedules of a partition by identity, to hand over those of other partitions.

    Its position is only in memory: a new worker starts again, and finds only the schedules that were not moved.

    At first it skips schedules of tenants with delayed commands, since one of those may be a bulk command. After the
    first pass, once all commands that waited by its end are carried out, it moves these schedules too, even if newer
    commands wait: a tenant that always exceeds its rate must not keep the partition from finishing.
    """

    def __init__(self) -> None:
        self._partitions = 0
        self._begin()

    def _begin(self) -> None:
        self._after = b""
        self._stayed = self._waiting = self._again_at = 0
        self._away: frozenset[int] = frozenset()  # partitions that schedules wait for
        self._ends: Mapping[str, int] | None = None  # where queues ended when all had been gone through once

    def is_due(self, moving: Moving, now: int) -> bool:
        """Return whether there may be something to hand over at an instant (UTC epoch ms).

        Not in a cycle that gives a bulk command up: another one may fail on what would be handed over, and that the
        first is given up would never be committed.
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
        """Hand over the next schedules; nothing is kept of that before `learn`."""
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
            if key is None:  # it moves when a command tells its key
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
        """Go on behind a slice; its transaction was committed at an instant (UTC epoch ms), or had nothing to say."""
        self._away = done.away
        if not done.is_last:
            self._after, self._stayed, self._waiting = done.after, done.stayed, done.waiting
            return
        self._after, self._stayed, self._waiting = b"", 0, 0
        self._again_at = now + (AGAIN_MS if done.stayed else SOON_MS)
        if self._ends is None:
            self._ends = done.ends
