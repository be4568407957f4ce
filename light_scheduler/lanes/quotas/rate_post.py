"""How a lane lends tokens of rates to lanes of other commands topics, and borrows from them.

What is sent may be lost, and may arrive in any order. An answer counts once, whatever happens to it (see
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
    """Of one lane. Each rate is of `topics` commands topics together."""

    @property
    def topics(self) -> int:
        """How many commands topics share each rate."""
        ...

    def others(self) -> Mapping[Place, float]:
        """Return who can be reached, and the share of each rate that each has; first who is to be asked first."""
        ...

    def send(self, to: Place, said: RateAsk | RateGrant) -> None:
        """Send something soon."""
        ...

    def received(self) -> list[RateMessage]:
        """Return what has arrived since the last call."""
        ...

    def open(self, ring: Callable[[], None]) -> None:
        """Receive from now on; `ring` is called when something arrives."""
        ...

    def close(self) -> None:
        """Receive nothing any more."""
        ...


class NoPost:
    """For a lane that shares a log with all others, or has none that it shares rates with: the scheduler in memory."""

    topics = 1

    def others(self) -> Mapping[Place, float]:
        """There are none."""
        return NOBODY

    def send(self, to: Place, said: RateAsk | RateGrant) -> None:
        """Nobody is there to be sent to."""

    def received(self) -> list[RateMessage]:
        """Nothing arrives."""
        return []

    def open(self, ring: Callable[[], None]) -> None:
        """Nothing will arrive."""

    def close(self) -> None:
        """There is nothing to let go of."""
