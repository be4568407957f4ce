"""Pairs firings with messages of the same content by time, in one pass over both.

Neither has to fit into memory: only messages that the next firings may have are held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from typing import Generic, NamedTuple, Protocol, TypeVar

Group = tuple[bytes, ...]

_MOST_SHIFTS = 8
_FAR = 1 << 62


class Span(NamedTuple):
    """A span of time (UTC epoch ms) with both ends."""

    earliest: int
    latest: int


class Windows(NamedTuple):
    """When a firing's message may have been written, by the clock of its sender and by that of the broker."""

    sender: Span
    broker: Span


class Message(Protocol):
    @property
    def timestamp(self) -> int: ...
    @property
    def by_sender(self) -> bool: ...


F = TypeVar("F")
M = TypeVar("M", bound=Message)


class Pairing(Generic[F, M]):
    """How firings and messages are paired: within a group, in the order of both.

    `fits` tells whether a message in the window of a firing can be its message.
    """

    def __init__(
        self,
        group_of_firing: Callable[[F], Group],
        group_of_message: Callable[[M], Group],
        windows: Callable[[F], Windows],
        fits: Callable[[F, M], bool],
    ) -> None:
        self._group_of_firing = group_of_firing
        self._group_of = group_of_message
        self._windows = windows
        self._fits = fits

    def of(self, firings: Iterable[F], messages: Iterable[M]) -> Iterator[tuple[F | None, M | None]]:
        """Yield each firing and each message once: the earliest that fit together, the others alone.

        Both are sorted by group and time; the windows of a group's firings begin in that order, too.
        """
        upcoming = _Upcoming(messages, self._group_of)
        for group, of_group in groupby(firings, key=self._group_of_firing):
            yield from ((None, message) for message in upcoming.before(group))
            waiting = _Waiting(upcoming, group)
            for firing in of_group:
                windows, found = self._windows(firing), None
                while found is None and (candidate := waiting.take(windows)) is not None:
                    message, is_in_window = candidate
                    if is_in_window and self._fits(firing, message):
                        found = message
                    else:
                        yield None, message
                yield firing, found
            yield from ((None, message) for message in waiting.left())
        yield from ((None, message) for message in upcoming.before(None))


class _Shift(Generic[F]):
    """The `first` of the latest firings whose messages are nearer in time to the firings after them."""

    def __init__(self) -> None:
        self.first: F | None = None
        self._nearer = 0

    def add(self, firing: F, nearer: int) -> None:
        """Go on to the next firing, whose message would be `nearer` to the one after it."""
        if self._nearer + nearer <= 0:
            self.first, self._nearer = None, 0
        else:
            self.first = firing if self.first is None else self.first
            self._nearer += nearer


class Lacking(Generic[F, M]):
    """Tells which firings lack their messages if some are alone at the end of a group's pairs.

    Pairs are in order. So if the message of a firing is missing, it has that of the next one, and so on up to the last
    one, which is alone. Any of these may be the one: it is the one with which messages are nearest to their firings. Of
    several, the second is found in the same way, with all messages as they are after the first.
    """

    def __init__(self, time_of: Callable[[F], int], may_be: Callable[[F, M], bool]) -> None:
        self._time_of = time_of
        self._may_be = may_be
        self.reset()

    def reset(self) -> None:
        """Begin another group."""
        self._before: F | None = None
        self._messages: deque[M | None] = deque(maxlen=_MOST_SHIFTS)
        self._shifts: list[_Shift[F]] = [_Shift() for _ in range(_MOST_SHIFTS)]
        self._alone = 0

    def pair(self, firing: F, message: M) -> None:
        """Note the next pair of a group."""
        if self._alone:
            self.reset()
        self._go_on(firing, message)

    def of(self, firing: F) -> F:
        """Return the firing that lacks its message, given the next one of a group, which is alone."""
        self._go_on(firing, None)
        first = self._shifts[self._alone].first if self._alone < _MOST_SHIFTS else None
        self._alone += 1
        return firing if first is None else first

    def _go_on(self, firing: F, message: M | None) -> None:
        if self._before is not None:
            for shift, earlier in zip(self._shifts, self._messages, strict=False):
                if earlier is not None:
                    shift.add(self._before, self._nearer(earlier, self._before, firing))
        self._before = firing
        self._messages.appendleft(message)

    def _nearer(self, message: M, before: F, firing: F) -> int:
        """Return by how many ms a message is nearer to a firing than to the one before it."""
        if not self._may_be(firing, message):
            return -_FAR
        distances = [abs(message.timestamp - self._time_of(each)) for each in (before, firing)]
        return distances[0] - distances[1]


class _Upcoming(Generic[M]):
    """Messages that are not held yet."""

    def __init__(self, messages: Iterable[M], group_of: Callable[[M], Group]) -> None:
        self._messages = iter(messages)
        self._group_of = group_of
        self._next: M | None = next(self._messages, None)

    def before(self, group: Group | None) -> Iterator[M]:
        """Take the messages of the groups before one, or all."""
        while (message := self._next) is not None and (group is None or self._group_of(message) < group):
            yield self._take(message)

    def take(self, group: Group, latest: int) -> M | None:
        """Take the next message if it is of a group, and has no later timestamp."""
        message = self._next
        if message is None or message.timestamp > latest or self._group_of(message) != group:
            return None
        return self._take(message)

    def _take(self, message: M) -> M:
        self._next = next(self._messages, None)
        return message


class _Waiting(Generic[M]):
    """Messages of a group that are held: those by the clock of their sender, and the others."""

    def __init__(self, upcoming: _Upcoming[M], group: Group) -> None:
        self._upcoming = upcoming
        self._group = group
        self._queues: tuple[deque[M], deque[M]] = deque(), deque()

    def take(self, windows: Windows) -> tuple[M, bool] | None:
        """Take the message that soonest comes before all windows, and return whether it is in its own. None: none is.

        A later firing can have the others, so as many as possible are paired.
        """
        latest = max(window.latest for window in windows)
        begin = max(window.earliest for window in windows)
        while True:
            soonest = self._soonest(windows)
            enough = latest if soonest is None else min(latest, soonest[0] + begin)
            if (upcoming := self._upcoming.take(self._group, enough)) is not None:
                self._queues[not upcoming.by_sender].append(upcoming)
            elif soonest is None:
                return None
            else:
                left, queue = soonest
                return queue.popleft(), left >= 0

    def _soonest(self, windows: Windows) -> tuple[int, deque[M]] | None:
        """Return how long (ms) until the window is after the message that is next to leave it, and its queue."""
        found = [
            (queue[0].timestamp - window.earliest, queue)
            for queue, window in zip(self._queues, windows, strict=True)
            if queue and queue[0].timestamp <= window.latest
        ]
        return min(found, key=lambda each: each[0], default=None)

    def left(self) -> Iterator[M]:
        return chain(*self._queues)
