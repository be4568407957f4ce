"""How a lane that failed goes on: with less work at a time, until what fails stands alone.

Whatever the error is, the same work must not be met by it for ever. So after a failure each cycle holds one kind of
work, in turn: while one kind fails, the others go on. Each kind has its limit: a quarter of what failed, since size
alone may be what was wrong; and twice as much after each success. A cycle that failed leaves no trace, so the next one
of its kind begins with the same work, and what fails comes to stand alone, however much arrives behind it.

When a single piece of work has failed, a command or a firing, a control cycle follows, which holds nothing. If the
control cycle passes, the work has a strike, and with `STRIKES` of them it is to blame, and is condemned. If the control
cycle fails too, it is the broker or the worker that fails, and nobody is to blame. A connection that breaks says little
of what was sent over it: that takes `BREAKS` times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from light_scheduler.lanes.context import OriginKey

STRIKES, BREAKS = 3, 15


class Kind(Enum):
    """Kinds of work, in the order in which a cycle does them. A delayed command is, as a piece of work, a command."""

    DELAYED = auto()
    COMMAND = auto()
    BULK = auto()
    FIRING = auto()


class Work(NamedTuple):
    """A piece of work: a command record or a bulk command at work, by its offset, or a firing."""

    kind: Kind
    key: int | OriginKey


class WorkFailedError(Exception):
    """Carrying out a piece of work raised an error: it is to blame for that. The cause is the error."""

    def __init__(self, work: Work) -> None:
        super().__init__(f"{work.kind.name.lower()} {work.key}")
        self.work = work


class Share(NamedTuple):
    """The limits of a cycle: at most `limit` pieces of each of these kinds of work."""

    limit: int
    kinds: frozenset[Kind]


EVERYTHING = frozenset(Kind)
NOTHING: frozenset[Kind] = frozenset()


class FailingWorkSearch:
    """How much a lane may do at a time after failures; `condemned` says what it shall not do, and why.

    Cycles that refuse `silenced` bulk commands fail, too, so they shall not tell of them.
    """

    def __init__(self) -> None:
        self.condemned: dict[Work, str] = {}
        self.silenced: set[Work] = set()
        self.is_getting_on = True
        """Whether failures may be the work's: a cycle that held nothing passed, or was not tried yet."""
        self._limits: dict[Kind, int] = {}
        self._turns = deque(Kind)  # the first one is next
        self._kind = self._turns[0]  # of the cycle that is under way
        self._strikes: dict[Work, float] = {}
        self._suspect: Work | None = None  # what has failed alone, while a control cycle is due
        self._is_control_due = False

    @property
    def is_active(self) -> bool:
        """Whether any kind of work has a limit."""
        return bool(self._limits)

    def share(self, limit: int, *, is_behind: bool = False, is_catching_up: bool = False) -> Share:
        """Return what the next cycle may hold, of a `limit` at most.

        A lane that `is_behind` reads commands before anything else, and while it `is_catching_up` then carries out what
        was delayed: then what is due can have its turn, whatever fails.
        """
        if not self._limits:
            return Share(limit, EVERYTHING)
        if self._is_control_due:
            return Share(1, NOTHING)
        first = Kind.COMMAND if is_behind else Kind.DELAYED if is_catching_up else None
        self._kind = first or self._turns[0]
        return Share(min(limit, self._limit), frozenset({self._kind}))

    def bytes_of(self, most: int) -> int:
        """Return how many bytes of firings the next cycle may hold, of `most`."""
        return max(1, most * min(self._limit, FULL) // FULL) if self._limits else most

    def failed(self, size: int, works: list[Work], *, is_break: bool = False) -> None:
        """Learn that a cycle of a size (commands and firings) failed; `works` is what it held, if that is little.

        `is_break` says that what failed was the connection.
        """
        if self._is_control_due:  # with nothing in it: whatever fails, it is no piece of work
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
        """Learn that a cycle was committed; return what is to blame for the failures before, if that is clear."""
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
        """Learn that there was nothing to do of what a cycle could hold; return whether another is to follow at once.

        So nothing is left of that kind that could fail. A lane that is not yet `is_caught_up` waits for commands: what
        failed is still to come.
        """
        if is_caught_up:
            self._release(self._end_turn())
        return is_caught_up

    def met(self, works: Iterable[Work]) -> None:
        """Forget what was condemned and has been refused."""
        for work in works:
            self.condemned.pop(work, None)
            self.silenced.discard(work)

    def condemn(self, work: Work, reason: str) -> None:
        """Have a piece of work refused when it is met next; a bulk command in silence, if that is to blame as well."""
        if work.kind is Kind.BULK and work in self.condemned:
            self.silenced.add(work)
        self.condemned[work] = reason

    @property
    def _limit(self) -> int:
        """That of the kind of work in the cycle that is under way."""
        return self._limits.get(self._kind, FULL)

    def _end_turn(self) -> Kind:
        """Have the next kind have its turn, if it was a turn; return the kind of the cycle that has ended."""
        kind = self._kind
        if kind is self._turns[0]:
            self._turns.rotate(-1)
        self._kind = self._turns[0]
        return kind

    def _release(self, kind: Kind) -> None:
        """Have a kind of work have no limit."""
        self._limits.pop(kind, None)
        if not self._limits:
            self._strikes.clear()

    def _blamed(self) -> Work | None:
        """Return what has failed alone before a control cycle that passed, if it has all its strikes."""
        suspect, self._suspect = self._suspect, None
        if suspect is None or self._strikes[suspect] < STRIKES - 0.1:
            return None
        del self._strikes[suspect]
        return suspect


FULL = 2_500
"""A limit from which on there is none."""
