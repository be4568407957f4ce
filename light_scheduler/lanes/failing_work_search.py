"""How a lane that failed goes on: with less work at a time, until what fails stands alone.

Whatever the error is, the same work must not be met by it for ever. So after a failure the next cycle holds a quarter;
size alone may be what was wrong. When a single piece of work is left, a command or a firing, it is tried in turn with
cycles that hold nothing. If these pass and it fails, `STRIKES` times, then it is to blame, and is condemned; if these
fail too, it is the broker or the worker that fails, and nobody is. A connection that breaks says little of what was
sent over it: that takes `BREAKS` times. Each success doubles what a cycle may hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from .context import OriginKey

STRIKES, BREAKS = 3, 15


class Kind(Enum):
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
        self._limit: int | None = None
        self._turn = self._rests = 0
        self._suspect: Work | None = None
        self._evidence = 0.0
        self._is_control_due = False

    @property
    def is_active(self) -> bool:
        return self._limit is not None

    def share(self, limit: int) -> Share:
        """Return what the next cycle may hold, of a `limit` at most."""
        if self._limit is None:
            return Share(limit, EVERYTHING)
        if self._limit > 1:
            return Share(min(limit, self._limit), EVERYTHING)
        if self._is_control_due:
            return Share(1, NOTHING)
        return Share(1, frozenset({list(Kind)[self._turn % len(Kind)]}))

    def bytes_of(self, most: int) -> int:
        """Return how many bytes of firings the next cycle may hold, of `most`."""
        return most if self._limit is None else max(1, most * min(self._limit, FULL) // FULL)

    def failed(self, size: int, works: list[Work], *, is_break: bool = False) -> None:
        """Learn that a cycle of a size (commands and firings) failed; `works` is what it held, if that is little.

        `is_break` says that what failed was the connection.
        """
        if self._is_control_due:  # with nothing in it: whatever fails, it is no piece of work
            self._suspect, self._evidence, self._is_control_due, self.is_getting_on = None, 0.0, False, False
            return
        if self._limit == 1:
            self._is_control_due = True
            if len(works) == 1:
                before = self._evidence if works[0] == self._suspect else 0.0
                self._suspect, self._evidence = works[0], before + (STRIKES / BREAKS if is_break else 1.0)
        else:
            self._limit = max(1, (size if self._limit is None else min(size, self._limit)) // 4)

    def succeeded(self, works: list[Work]) -> Work | None:
        """Learn that a cycle was committed; return what is to blame for the failures before, if that is clear."""
        self._rests = 0
        self.is_getting_on = True
        if self._limit is None:
            return None
        if self._is_control_due:
            self._is_control_due = False
            if self._suspect is not None and self._evidence > STRIKES - 0.1:
                blamed, self._suspect, self._evidence = self._suspect, None, 0.0
                return blamed
            return None
        if self._suspect is not None and self._suspect in works:
            self._suspect, self._evidence = None, 0.0
        if self._suspect is None:
            self._limit = None if self._limit >= FULL else 2 * self._limit
        else:
            self._turn += 1
        return None

    def rested(self, *, is_caught_up: bool) -> bool:
        """Learn that there was nothing to do of what a cycle could hold; return whether another is to follow at once.

        Another kind has its turn, if one is left. Until the lane `is_caught_up`, it waits for commands and fires
        nothing: what failed is still to come.
        """
        if not is_caught_up and Kind.COMMAND in self.share(FULL).kinds:
            return False
        self._turn += 1
        if is_caught_up:
            self._rests += 1
            if self._limit != 1 or self._rests >= len(Kind):
                self._limit, self._suspect, self._evidence, self._rests = None, None, 0.0, 0
        return True

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


FULL = 2_500
"""A limit from which on there is none."""
