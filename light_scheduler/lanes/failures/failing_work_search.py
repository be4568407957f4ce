"""Isolates the work that makes a lane fail, by doing less work at a time after failures.

Whatever the error is, the same work must not fail forever. So after a failure each cycle holds one kind of work, in
turn: while one kind fails, the others proceed. The limit of each kind begins at a quarter of the failed cycle, since
its size alone may be the cause, and doubles after each success. A failed cycle leaves no trace, so the next one of its
kind begins with the same work, and the failing work is isolated, however much arrives behind it.

When a single piece of work (a command or a firing) has failed, an empty control cycle follows. If the control cycle
passes, the work gets a strike. After `STRIKES` of them it is to blame, and is condemned. If the control cycle fails
too, the broker or the worker is at fault, and no work is blamed. A broken connection says little about the work sent
over it, so that takes `BREAKS` failures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from light_scheduler.lanes.context.lane_context import OriginKey
from light_scheduler.model.arrival import offset_of

STRIKES, BREAKS = 3, 15


class Kind(Enum):
    """Kinds of work, in the order in which a cycle does them. As `Work`, a delayed command is a COMMAND."""

    DELAYED = auto()
    COMMAND = auto()
    BULK = auto()
    FIRING = auto()


class Work(NamedTuple):
    """A piece of work: a command record or a bulk command in progress, by its arrival, or a firing.

    What has waited for another partition has a negative number instead (see `cycle.stranded`).
    """

    kind: Kind
    key: int | OriginKey

    def __str__(self) -> str:
        """Name it for people, who know commands by their offsets."""
        key = offset_of(self.key) if isinstance(self.key, int) and self.key >= 0 else self.key
        return f"{self.kind.name.lower()} {key}"


class WorkFailedError(Exception):
    """A piece of work raised an error (the cause), and is to blame for it."""

    def __init__(self, work: Work) -> None:
        super().__init__(str(work))
        self.work = work


class Share(NamedTuple):
    """The limits of a cycle: at most `limit` pieces of each of these kinds of work."""

    limit: int
    kinds: frozenset[Kind]


EVERYTHING = frozenset(Kind)
NOTHING: frozenset[Kind] = frozenset()


class FailingWorkSearch:
    """Limits how much a lane does at a time after failures. `condemned` has the work to refuse, with the reasons.

    Recording the refusal of a `silenced` bulk command fails too, so a cycle must not record it.
    """

    def __init__(self) -> None:
        self.condemned: dict[Work, str] = {}
        self.silenced: set[Work] = set()
        self.is_getting_on = True
        """Whether work may be the cause of failures. False after a failed control cycle, until a cycle is committed."""
        self._limits: dict[Kind, int] = {}
        self._turns = deque(Kind)  # the first is next
        self._kind = self._turns[0]  # of the current cycle
        self._strikes: dict[Work, float] = {}
        self._suspect: Work | None = None  # the work that failed alone, while a control cycle is due
        self._is_control_due = False

    @property
    def is_active(self) -> bool:
        """Whether any kind of work has a limit."""
        return bool(self._limits)

    def share(self, limit: int, *, is_behind: bool = False, is_catching_up: bool = False) -> Share:
        """Return the kinds of work that the next cycle may hold, and how much, up to a `limit`.

        A lane that `is_behind` reads commands before anything else. While it `is_catching_up` after that, it executes
        delayed commands. Then due firings get their turn, whatever fails.
        """
        if not self._limits:
            return Share(limit, EVERYTHING)
        if self._is_control_due:
            return Share(1, NOTHING)
        first = Kind.COMMAND if is_behind else Kind.DELAYED if is_catching_up else None
        self._kind = first or self._turns[0]
        return Share(min(limit, self._limit), frozenset({self._kind}))

    def bytes_of(self, most: int) -> int:
        """Return how many bytes of firings the next cycle may hold, up to `most`."""
        return max(1, most * min(self._limit, FULL) // FULL) if self._limits else most

    def failed(self, size: int, works: list[Work], *, is_break: bool = False) -> None:
        """Note that a cycle of `size` commands and firings failed. `works` has its work if there is little of it.

        `is_break` says that the connection failed.
        """
        if self._is_control_due:  # an empty cycle failed, so no work is the cause
            self._is_control_due = self.is_getting_on = False
            self._strikes.clear()
        elif not self._limits:
            self._limits = dict.fromkeys(Kind, max(1, size // 4))
        elif (limit := self._limit) > 1:
            self._limits[self._end_turn()] = max(1, min(size, limit) // 4)
        else:
            self._end_turn()
            self._is_control_due = True
            self._suspect = works[0] if len(works) == 1 else None
            if self._suspect is not None:
                strike = STRIKES / BREAKS if is_break else 1.0
                self._strikes[self._suspect] = self._strikes.get(self._suspect, 0.0) + strike

    def succeeded(self, works: list[Work]) -> Work | None:
        """Note that a cycle was committed. Return the work to blame for earlier failures, if that is clear."""
        self.is_getting_on = True
        if not self._limits:
            return None
        if self._is_control_due:
            self._is_control_due = False
            return self._blamed()
        for work in works:
            self._strikes.pop(work, None)
        limit, kind = self._limit, self._end_turn()
        if limit < FULL:
            self._limits[kind] = 2 * limit
        else:
            self._release(kind)
        return None

    def rested(self, *, is_caught_up: bool) -> bool:
        """Note that there was no work of a cycle's kind. Return whether the next cycle must follow at once.

        That means no work of that kind is left that could fail. But a lane that is not yet `is_caught_up` waits for
        commands, as the failed ones are still to come.
        """
        if is_caught_up:
            self._release(self._end_turn())
        return is_caught_up

    def met(self, works: Iterable[Work]) -> None:
        """Forget condemned work that has been refused."""
        for work in works:
            self.condemned.pop(work, None)
            self.silenced.discard(work)

    def condemn(self, work: Work, reason: str) -> None:
        """Refuse a piece of work the next time. A bulk command still condemned is silenced, as its refusal failed."""
        if work.kind is Kind.BULK and work in self.condemned:
            self.silenced.add(work)
        self.condemned[work] = reason

    @property
    def _limit(self) -> int:
        """The limit for the kind of work in the current cycle."""
        return self._limits.get(self._kind, FULL)

    def _end_turn(self) -> Kind:
        """Return the kind of the cycle that has ended. If that was its turn, the next kind is up."""
        kind = self._kind
        if kind is self._turns[0]:
            self._turns.rotate(-1)
        self._kind = self._turns[0]
        return kind

    def _release(self, kind: Kind) -> None:
        """Remove the limit of a kind of work."""
        self._limits.pop(kind, None)
        if not self._limits:
            self._strikes.clear()

    def _blamed(self) -> Work | None:
        """Return the work that failed alone before a passed control cycle, if it has all its strikes."""
        suspect, self._suspect = self._suspect, None
        if suspect is None or self._strikes[suspect] < STRIKES - 0.1:
            return None
        del self._strikes[suspect]
        return suspect


FULL = 2_500
"""The limit at which a kind of work is no longer limited."""
