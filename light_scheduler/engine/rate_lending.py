"""Lends tokens of rates between partitions: what a lane needs, which lanes it asks, and how much it lends. Pure.

Each commands topic has an equal part of a rate, and each lane an equal part of its topic's. A lane without tokens
repeatedly asks others. A lane that is asked lends tokens that it does not need soon. Tokens only move, so all lanes
together never exceed the rate. Nothing is stored: a new lane learns its needs, and tokens in transit are lost when a
lane ends.

A lane first asks for few tokens, and for twice as many in each further round, so exceeding its part for a moment takes
almost nothing from others. It first asks the lanes that it has not asked for longest, and as many as necessary. So
tokens are fetched before the buckets of the others overflow. Instants are UTC epoch ms.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateName

MEMORY_MS = 1_000
"""Time constant of the measured use: after this time, use counts for 1/e."""

ROUND_MS = 200
"""Time between two rounds in which a lane asks for tokens of one rate."""

HELD_MS = 500
"""A need ends if it was not recorded for this long."""

MOST_WANTED_S = 0.4
"""Maximum tokens to ask for in a round, in seconds of the whole rate: enough for two rounds, more if they are slow."""

FIRST_WANTED_S = 0.1
"""Tokens to ask for in the first round, in seconds of the lane's part of the rate, plus one token."""

EARNED_S = 1.0
"""Capacity of the buckets of lanes that are not asked, in seconds of their rate. More tokens overflow."""

LOW_S = 0.25
"""A lane whose commands cannot wait asks ahead when it has fewer tokens than it uses in this time (s)."""

KEPT_S = 0.5
"""Tokens that a lane keeps when it lends, in seconds of its use. It keeps all of its own if it had to hold back."""

MARGIN = 1.25
"""A lane asks each other lane for this times the average needed from each, since some have less."""

FIRST_PAUSE_MS, LAST_PAUSE_MS = 500, 4_000
"""Pause for a lane that had nothing to lend, growing each time. A lane that does not answer gets the longest pause."""

CROWD = 1_000
"""Number of rates from which inactive ones are forgotten."""

REST_MS = 10_000

THOUSANDTHS = 1_000


class OwnPart(NamedTuple):
    """The `share` of each rate, 0 to 1, that a lane earns at its own `place`.

    `others` has the shares of places that may be asked, in the order in which to ask them.
    """

    place: Place
    share: float
    others: Mapping[Place, float]


class Other:
    """A lane's knowledge about another lane: the time of the last and of the next ask, and the unanswered ask."""

    __slots__ = ("ask_at", "asked_at", "open", "pause_ms")

    def __init__(self) -> None:
        self.asked_at = 0
        self.ask_at = 0
        self.pause_ms = FIRST_PAUSE_MS
        self.open: int | None = None


class Demand:
    """A lane's demand for one rate."""

    def __init__(self) -> None:
        self._used = 0.0  # tokens per second at `_used_at`
        self._used_at = 0
        self._held_at = self._needed_since = self._needed_at = -HELD_MS
        self._needed_in = -HELD_MS
        self._others: defaultdict[Place, Other] = defaultdict(Other)
        self._first: tuple[OwnPart, int, int] | None = None  # (part with the others, when computed, earliest ask)
        self._number = 0
        self.asked_at = 0

    def use(self, tokens: int, now: int) -> None:
        """Count used tokens."""
        self._used = self._use_at(now) + tokens * 1_000 / MEMORY_MS
        self._used_at = now

    def hold(self, now: int) -> None:
        """Record that work must wait or is rejected, since there are no tokens left."""
        self._held_at = now

    def need(self, now: int, cycle: int) -> None:
        """Record that tokens are needed in a cycle. A need in consecutive cycles continues, even if they take long."""
        if cycle > self._needed_in + 1 and not 0 <= now - self._needed_at < HELD_MS:
            self._needed_since = now
        self._needed_at, self._needed_in = now, cycle

    def is_low(self, tokens: int, now: int) -> bool:
        """Return whether the lane's tokens may not last until others have answered."""
        return tokens < self._use_at(now) * LOW_S

    def kept(self, now: int) -> float:
        """Return how many tokens the lane keeps when it lends."""
        return math.inf if 0 <= now - self._held_at < HELD_MS else self._use_at(now) * KEPT_S

    def ask(self, name: RateName, rate: float, part: OwnPart, now: int) -> dict[Place, RateAsk]:
        """Begin a round if it is time for one. Return the asks by place. `rate` is the whole rate.

        Assumes that the others have about the tokens that they earned since they were last asked.
        """
        if 0 <= now - self.asked_at < ROUND_MS or self._first_ready_at(part, now) > now:
            return {}
        wanted = self._wanted(rate, part.share, now)
        to, expected = [], 0.0
        for place in self._ready(part, now):
            to.append(place)
            expected += rate * part.others[place] * min(EARNED_S, (now - self._others[place].asked_at) / 1_000)
            if expected >= wanted:
                break
        if not to:
            return {}
        self.asked_at = now
        self._first = None
        self._number = number = max(now, self._number + 1)
        each = math.ceil(THOUSANDTHS * wanted * MARGIN / len(to))
        for place in to:
            other = self._others[place]
            other.asked_at, other.open = now, number
            other.ask_at = now + LAST_PAUSE_MS
        return {place: RateAsk(name, part.place[1], number, each) for place in to}

    def answered(self, sender: Place, grant: RateGrant, now: int) -> float:
        """Return the tokens in an answer; 0 if it does not answer the last ask, or was processed already."""
        other = self._others[sender]
        if other.open != grant.number:
            return 0.0
        other.open = self._first = None
        other.pause_ms = FIRST_PAUSE_MS if grant.amount else min(LAST_PAUSE_MS, 2 * other.pause_ms)
        other.ask_at = now if grant.amount else now + other.pause_ms
        return grant.amount / THOUSANDTHS

    def ask_at(self, part: OwnPart, now: int) -> int:
        """Return when the next ask is possible."""
        return max(self.asked_at + ROUND_MS, self._first_ready_at(part, now))

    def is_at_rest(self, now: int) -> bool:
        """Return whether it can be forgotten without loss."""
        return max(self._held_at, self._used_at, self.asked_at) < now - REST_MS

    def _wanted(self, rate: float, share: float, now: int) -> float:
        doublings = min(30, max(0, now - self._needed_since) // ROUND_MS)
        most = min(EARNED_S, max(MOST_WANTED_S, 2 * (now - self.asked_at) / 1_000))
        return min(max(1.0, rate * most), (1 + rate * share * FIRST_WANTED_S) * (1 << doublings))

    def _first_ready_at(self, part: OwnPart, now: int) -> int:
        """Return when the first of the others may be asked. Checks all of them only after a change."""
        if self._first is None or self._first[0] is not part or now < self._first[1]:
            at = (now if self._may_ask(each, now) else self._others[each].ask_at for each in part.others)
            self._first = part, now, min(at, default=0)
        return self._first[2]

    def _ready(self, part: OwnPart, now: int) -> list[Place]:
        ready = [each for each in part.others if self._may_ask(each, now)]
        return sorted(ready, key=lambda each: self._others[each].asked_at)

    def _may_ask(self, place: Place, now: int) -> bool:
        """Return whether another lane may be asked. If the clock was set back, this does not wait for it."""
        ask_at = self._others[place].ask_at
        return ask_at <= now or ask_at > now + LAST_PAUSE_MS

    def _use_at(self, now: int) -> float:
        return self._used * math.exp(-max(0, now - self._used_at) / MEMORY_MS)


class RateDemand:
    """The demand for all rates of a lane, and the number of its `cycle`."""

    def __init__(self) -> None:
        self.cycle = 0
        self._part: tuple[object, OwnPart] | None = None
        self._all: dict[RateName, Demand] = {}
        self._crowd = CROWD

    def part(self, basis: object, make: Callable[[], OwnPart]) -> OwnPart:
        """Return the lane's part of all rates. Creates it with `make` only if `basis` has changed."""
        if self._part is None or self._part[0] != basis:
            self._part = basis, make()
        return self._part[1]

    def of(self, name: RateName, now: int) -> Demand:
        """Return the demand for a rate."""
        demand = self._all.get(name)
        if demand is None:
            if len(self._all) >= self._crowd:
                self._all = {name: each for name, each in self._all.items() if not each.is_at_rest(now)}
                self._crowd = max(CROWD, 2 * len(self._all))
            demand = self._all[name] = Demand()
        return demand
