"""Carrying what lanes say to each other about rates: in this worker at once, to other workers by a courier."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, Protocol

from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateMessage

from .rate_sharing import Owned, RateSharing

MOST_WAITING = 1_000
"""Letters for a lane, or for another worker; older ones are lost."""


class Letter(NamedTuple):
    """A message for the lane of a commands topic's partition."""

    to: Place
    message: RateMessage


class Owners(Protocol):
    """Who has which partitions: worker -> topic -> partitions."""

    @property
    def own_url(self) -> str:
        """This worker."""
        ...

    def owners(self) -> Owned:
        """Return those of all workers: the same object for as long as the assignment is the same."""
        ...


class RateExchange:
    """Of one worker, whose settings have these commands `topics`. A courier takes what is for other workers."""

    def __init__(self, owners: Owners, topics: Collection[str]) -> None:
        self._owners = owners
        self._topics = topics
        self._known = RateSharing({}, topics)
        self._posts: dict[Place, Post] = {}
        self._outgoing: dict[str, deque[Letter]] = {}
        self._posted = asyncio.Event()

    @property
    def sharing(self) -> RateSharing:
        """Who shares rates now."""
        owned = self._owners.owners()
        if owned is not self._known.owned:
            self._known = RateSharing(owned, self._topics)
        return self._known

    def post_of(self, place: Place) -> Post:
        """Return the way of a lane to all others."""
        return Post(self, place)

    def send(self, letter: Letter) -> None:
        """Deliver a letter to a lane of this worker, or have it carried to another one's."""
        if letter.to in self._posts:
            self.deliver(letter)
            return
        url = self.sharing.workers.get(letter.to)
        if url is not None and url != self._owners.own_url:
            self._outgoing.setdefault(url, deque(maxlen=MOST_WAITING)).append(letter)
            self._posted.set()

    def deliver(self, letter: Letter) -> None:
        """Give a letter to a lane of this worker, if it has it."""
        if (post := self._posts.get(letter.to)) is not None:
            post.take(letter.message)

    async def addressees(self) -> list[str]:
        """Wait until there is something new for other workers; return for which there is something."""
        await self._posted.wait()
        self._posted.clear()
        return [*self._outgoing]

    def take(self, url: str, most: int) -> list[Letter]:
        """Take letters for another worker out, the oldest first."""
        waiting = self._outgoing.get(url, ())
        letters = [waiting.popleft() for _ in range(min(most, len(waiting)))] if waiting else []
        if not waiting:
            self._outgoing.pop(url, None)
        return letters

    def enter(self, post: Post) -> None:
        """Have a lane be reached."""
        self._posts[post.place] = post

    def leave(self, post: Post) -> None:
        """Have a lane not be reached, unless there is another one in its place by now."""
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
        """Keep a message for the lane, and wake it."""
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
