"""Delivers the messages of lanes about rates: within this worker at once, to other workers by a courier."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateMessage

from .rate_sharing import Owned, RateSharing

MOST_WAITING = 1_000
"""Maximum number of letters for a lane, or for another worker. Older ones are lost."""


class Letter(NamedTuple):
    """A message for the lane of a commands topic's partition."""

    to: Place
    message: RateMessage


class Owners(Protocol):
    """Knows which worker owns which partitions."""

    @property
    def own_url(self) -> str:
        """The URL of this worker."""
        ...

    def owners(self) -> Owned:
        """Return the partitions of all workers: worker -> topic -> partitions.

        It is the same object as long as the assignment does not change.
        """
        ...


class RateExchange:
    """The exchange of one worker with these commands `topics` in its settings.

    A courier takes the letters for other workers.
    """

    def __init__(self, owners: Owners, topics: Collection[str]) -> None:
        self._owners = owners
        self._topics = topics
        self._known = RateSharing({}, topics)
        self._posts: dict[Place, Post] = {}
        self._outgoing: dict[str, deque[Letter]] = {}
        self._posted = asyncio.Event()

    @property
    def sharing(self) -> RateSharing:
        """The lanes that share rates now."""
        owned = self._owners.owners()
        if owned is not self._known.owned:
            self._known = RateSharing(owned, self._topics)
        return self._known

    def post_of(self, place: Place) -> Post:
        """Return the post by which a lane reaches all others."""
        return Post(self, place)

    def send(self, letter: Letter) -> None:
        """Deliver a letter to a lane of this worker, or queue it for the lane's worker."""
        if letter.to in self._posts:
            self.deliver(letter)
            return
        url = self.sharing.workers.get(letter.to)
        if url is not None and url != self._owners.own_url:
            self._outgoing.setdefault(url, deque(maxlen=MOST_WAITING)).append(letter)
            self._posted.set()

    def deliver(self, letter: Letter) -> None:
        """Deliver a letter to a lane, if this worker has that lane."""
        if (post := self._posts.get(letter.to)) is not None:
            post.take(letter.message)

    async def addressees(self) -> list[str]:
        """Wait for new letters for other workers. Return the URLs of all workers with letters."""
        await self._posted.wait()
        self._posted.clear()
        return [*self._outgoing]

    def take(self, url: str, most: int) -> list[Letter]:
        """Remove and return up to `most` letters for another worker, the oldest first."""
        waiting = self._outgoing.get(url, ())
        letters = [waiting.popleft() for _ in range(min(most, len(waiting)))] if waiting else []
        if not waiting:
            self._outgoing.pop(url, None)
        return letters

    def enter(self, post: Post) -> None:
        """Make a lane reachable."""
        self._posts[post.place] = post

    def leave(self, post: Post) -> None:
        """Make a lane unreachable, unless another one has taken its place."""
        if self._posts.get(post.place) is post:
            del self._posts[post.place]


class Post:
    """The `RatePost` of a lane at a `place`."""

    def __init__(self, exchange: RateExchange, place: Place) -> None:
        self.place = place
        self._exchange = exchange
        self._letters: deque[RateMessage] = deque(maxlen=MOST_WAITING)
        self._ring: Callable[[], None] = lambda: None

    @property
    def topics(self) -> int:
        return len(self._exchange.sharing.topics)

    def others(self) -> Mapping[Place, float]:
        return self._exchange.sharing.shares(self.place)

    def send(self, to: Place, said: RateAsk | RateGrant) -> None:
        self._exchange.send(Letter(to, RateMessage(self.place[0], said)))

    def take(self, message: RateMessage) -> None:
        """Queue a message for the lane, and wake it."""
        self._letters.append(message)
        self._ring()

    def received(self) -> list[RateMessage]:
        letters = [*self._letters]
        self._letters.clear()
        return letters

    def open(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._exchange.enter(self)

    def close(self) -> None:
        self._exchange.leave(self)
