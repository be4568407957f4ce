"""How a lane lends rate tokens to lanes of other commands topics, and borrows from them.

Messages may be lost, and may arrive in any order. An answer counts once, whatever happens to it (see
`engine.rate_lending`), and tokens are taken from a bucket before they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateMessage

NOBODY: Mapping[Place, float] = MappingProxyType({})


class RatePost(Protocol):
    """The post of one lane. `topics` commands topics share each rate."""

    @property
    def topics(self) -> int:
        """The number of commands topics that share each rate."""
        ...

    def others(self) -> Mapping[Place, float]:
        """Return the reachable lanes with their share of each rate, in the order in which to ask them."""
        ...

    def send(self, to: Place, said: RateAsk | RateGrant) -> None:
        """Send a message soon."""
        ...

    def received(self) -> list[RateMessage]:
        """Return the messages since the last call."""
        ...

    def open(self, ring: Callable[[], None]) -> None:
        """Receive messages from now on. `ring` is called when one arrives."""
        ...

    def close(self) -> None:
        """Stop receiving messages."""
        ...


class NoPost:
    """The post of a lane that reaches no others, as in the in-memory scheduler.

    It shares a log with all others, or there are none that it shares rates with.
    """

    topics = 1

    def others(self) -> Mapping[Place, float]:
        """Return no lanes."""
        return NOBODY

    def send(self, to: Place, said: RateAsk | RateGrant) -> None:
        """Do nothing: there are no other lanes."""

    def received(self) -> list[RateMessage]:
        """Return no messages."""
        return []

    def open(self, ring: Callable[[], None]) -> None:
        """Do nothing: no messages arrive."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
