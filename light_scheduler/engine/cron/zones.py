"""Time zones from the tzdata package, never from the machine, so that all nodes with the same package agree."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

from .errors import CronError

_EPOCH = datetime(1970, 1, 1)
_SECOND = timedelta(seconds=1)
_LAST = int((datetime.max - _EPOCH) / _SECOND) - 2 * 86_400
"""Later times are replaced by this one, since they may exceed the range of datetime in another zone."""

_NEAR = 5 * 86_400
"""Shorter than the time between two transitions in any zone."""

_SPAN = 365 * 86_400
"""Transitions are found, and kept, for as long a time at once."""


class Transition(NamedTuple):
    """The instant (epoch s) from which a zone has a new offset (s)."""

    instant: int
    before: int
    after: int

    @property
    def passed_again_until(self) -> int:
        """The instant up to which local time comes for the second time, or that of the transition if none does."""
        return self.instant + max(0, self.before - self.after)


class Zone:
    """Offsets of a zone from UTC (s, positive in the east) at instants (epoch s) and wall times (wall seconds)."""

    __slots__ = ("_known", "_zone", "key")

    def __init__(self, key: str, zone: ZoneInfo) -> None:
        self.key = key
        self._zone = zone
        self._known: dict[int, tuple[Transition, ...]] = {}  # by the span that they are in

    def offset_at(self, instant: int) -> int:
        """Return the offset at an instant."""
        return self.local_at(instant)[0]

    def local_at(self, instant: int) -> tuple[int, bool]:
        """Return the offset at an instant, and whether its wall time occurs for the second time."""
        local = datetime.fromtimestamp(min(instant, _LAST), self._zone)
        offset = local.utcoffset()
        assert offset is not None
        return offset.days * 86_400 + offset.seconds, local.fold == 1

    def offsets_of(self, wall: int) -> tuple[int, int]:
        """Return the two offsets of a wall time.

        They are equal if it occurs once. The first is larger if it occurs twice: they are for the first and second
        pass. The first is smaller if it is skipped: they are for before and after the gap.
        """
        naive = _EPOCH + timedelta(seconds=min(wall, _LAST))
        first, second = self._zone.utcoffset(naive), self._zone.utcoffset(naive.replace(fold=1))
        assert first is not None
        assert second is not None
        return first.days * 86_400 + first.seconds, second.days * 86_400 + second.seconds

    def transition(self, wall: int) -> int:
        """Return the instant at which the clock skips a wall time, or goes back over it."""
        first, second = self.offsets_of(wall)
        return self._change(wall - max(first, second) - 1, wall - min(first, second), first)

    def transitions(self, after: int, before: int) -> Iterator[Transition]:
        """Yield the transitions after an instant and before another one, in order."""
        for span in range((after + 1) // _SPAN, (before - 1) // _SPAN + 1):
            for transition in self._within(span):
                if after < transition.instant < before:
                    yield transition

    def _within(self, span: int) -> tuple[Transition, ...]:
        known = self._known.get(span)
        if known is None:
            known = self._known[span] = tuple(self._found(span * _SPAN - 1, (span + 1) * _SPAN))
        return known

    def _found(self, after: int, before: int) -> Iterator[Transition]:
        offset = self.offset_at(after)
        while after < before - 1:
            looked_at = min(after + _NEAR, before - 1)
            following = self.offset_at(looked_at)
            if following != offset:
                yield Transition(self._change(after, looked_at, offset), offset, following)
            after, offset = looked_at, following

    def _change(self, before: int, after: int, offset: int) -> int:
        """Return the first instant without `offset`, which the instant `before` has and `after` has not."""
        while after - before > 1:
            middle = (before + after) // 2
            if self.offset_at(middle) == offset:
                before = middle
            else:
                after = middle
        return after


@cache
def load_zone(key: str) -> Zone:
    """Return an IANA time zone. Raises CronError if the tzdata package does not have it."""
    if key not in _keys():
        by_lower = {name.lower(): name for name in _keys()}
        near = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.8)
        hint = f"; is it {by_lower[near[0]]}?" if near else ""
        raise CronError(f"{key!r} is not an IANA time zone{hint}", field="timezone")
    with files("tzdata").joinpath("zoneinfo", *key.split("/")).open("rb") as file:
        return Zone(key, ZoneInfo.from_file(file, key))


@cache
def _keys() -> frozenset[str]:
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())
