"""Pairs firings with messages of the same content by time, in one pass over both.

Neither has to fit into memory: only messages that the next firings may have are held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Generic, NamedTuple, Protocol, TypeVar

Group = tuple[bytes, ...]


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
        upcoming = _Upcoming(messages)
        for group, of_group in groupby(firings, key=self._group_of_firing):
            while (message := upcoming.next) is not None and self._group_of(message) < group:
                yield None, upcoming.take()
            waiting: tuple[deque[M], deque[M]] = deque(), deque()
            for firing in of_group:
                windows, found = self._windows(firing), None
                latest = max(window.latest for window in windows)
                while (message := upcoming.next) is not None and self._group_of(message) == group:
                    if message.timestamp > latest:
                        break
                    waiting[not message.by_sender].append(upcoming.take())
                for queue, window in zip(waiting, windows, strict=True):
                    while found is None and queue and queue[0].timestamp <= window.latest:
                        message = queue.popleft()
                        if message.timestamp >= window.earliest and self._fits(firing, message):
                            found = message
                        else:
                            yield None, message
                yield firing, found
            yield from ((None, message) for queue in waiting for message in queue)
        while upcoming.next is not None:
            yield None, upcoming.take()


class _Upcoming(Generic[M]):
    """An iterator whose next item can be looked at."""

    def __init__(self, items: Iterable[M]) -> None:
        self._items = iter(items)
        self.next: M | None = next(self._items, None)

    def take(self) -> M:
        item, self.next = self.next, next(self._items, None)
        assert item is not None, "there was a next one"
        return item
