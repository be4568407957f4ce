"""Lending tokens of rates between partitions: what a lane needs, whom it asks, and what it lends. Pure.

Each commands topic has an equal part of a rate, and each lane an equal part of that of its topic. One that has to hold
back asks others for tokens, again and again while it has to; one that is asked lends what it does not need soon. Tokens
only move, so all lanes together never carry out more than their buckets allow. Nothing is stored: a lane that begins
learns what it needs, and tokens under way when it ends are lost.

A lane asks for little at first, and for twice as much in each further round, so a moment over its part takes next to
nothing from others. It asks those first that it has not asked for longest, and as many as it takes to have enough: what
the others earn is fetched before their buckets run over. Instants are UTC epoch ms.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from light_scheduler.model.place import Place
from light_scheduler.model.rate_lending import RateAsk, RateGrant, RateName

MEMORY_MS = 1_000
"""Time constant of the measured use: after this time, what was carried out counts for 1/e."""

ROUND_MS = 200
"""Between two rounds in which a lane asks for tokens of one rate."""

HELD_MS = 500
"""A need that was not felt for so long is over."""

MOST_WANTED_S = 0.4
"""Most tokens to ask for in a round, in seconds of the whole rate: two rounds' worth, more if they are slow."""

FIRST_WANTED_S = 0.1
"""Tokens that it asks for at first, in seconds of its part of the rate; and one token more."""

EARNED_S = 1.0
"""Capacity of the buckets of lanes that are not asked, in seconds of their rate: more overflows."""

LOW_S = 0.25
"""A lane whose commands cannot wait asks ahead when fewer tokens are left than it uses in this time (s)."""

KEPT_S = 0.5
"""Tokens that a lane keeps when it lends, in seconds of its use; all of its own if it had to hold back."""

MARGIN = 1.25
"""It asks each lane for this times the average that each has to give, because some have less."""

FIRST_PAUSE_MS, LAST_PAUSE_MS = 500, 4_000
"""One that has nothing to lend is left alone for so long, longer each time; one that does not answer, for longest."""

CROWD = 1_000
"""Rates that there may be before those at rest are forgotten."""

REST_MS = 10_000

THOUSANDTHS = 1_000


class OwnPart(NamedTuple):
    """The `share` of each rate, 0 to 1, that a lane earns at its own `place`.

    `others` are the places that may be asked, and their shares. Those come first that are to be asked first.
    """

    place: Place
    share: float
    others: Mapping[Place, float]


class Other:
    """What a lane knows of another one: when it asked that last, and may again; the ask that is not answered."""

    __slots__ = ("ask_at", "asked_at", "open", "pause_ms")

    def __init__(self) -> None:
        self.asked_at = 0
        self.ask_at = 0
        self.pause_ms = FIRST_PAUSE_MS
        self.open: int | None = None


class Demand:
    """What a lane knows of one rate."""

    def __init__(self) -> None:
        self._used = 0.0  # tokens a second, as they were `_used_at`
        self._used_at = 0
        self._held_at = self._needed_since = self._needed_at = -HELD_MS
        self._needed_in = -HELD_MS
        self._others: defaultdict[Place, Other] = defaultdict(Other)
        self._first: tuple[OwnPart, int, int] | None = None  # of which others, when that was known, and when it is
        self._number = 0
        self.asked_at = 0

    def use(self, tokens: int, now: int) -> None:
        """Count what was carried out."""
        self._used = self._use_at(now) + tokens * 1_000 / MEMORY_MS
        self._used_at = now

    def hold(self, now: int) -> None:
        """Note that something has to wait, or is rejected, since no token is left."""
        self._held_at = now

    def need(self, now: int, cycle: int) -> None:
        """Note that tokens are needed in a cycle. A need goes on that is felt in each, however long cycles take."""
        if cycle > self._needed_in + 1 and not 0 <= now - self._needed_at < HELD_MS:
            self._needed_since = now
        self._needed_at, self._needed_in = now, cycle

    def is_low(self, tokens: int, now: int) -> bool:
        """Return whether the tokens of a lane may not last until others have answered."""
        return tokens < self._use_at(now) * LOW_S

    def kept(self, now: int) -> float:
        """Return how many of its tokens a lane keeps when it lends."""
        return math.inf if 0 <= now - self._held_at < HELD_MS else self._use_at(now) * KEPT_S

    def ask(self, name: RateName, rate: float, part: OwnPart, now: int) -> dict[Place, RateAsk]:
        """Begin a round, if it is time for one: return what to ask which others, of a whole rate.

        Their buckets have about what they earned since they were asked last.
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
        """Return how many tokens an answer brings: none if it is not the one to the last ask, or was taken already."""
        other = self._others[sender]
        if other.open != grant.number:
            return 0.0
        other.open = self._first = None
        other.pause_ms = FIRST_PAUSE_MS if grant.amount else min(LAST_PAUSE_MS, 2 * other.pause_ms)
        other.ask_at = now if grant.amount else now + other.pause_ms
        return grant.amount / THOUSANDTHS

    def ask_at(self, part: OwnPart, now: int) -> int:
        """Return when there is somebody to ask next."""
        return max(self.asked_at + ROUND_MS, self._first_ready_at(part, now))

    def is_at_rest(self, now: int) -> bool:
        """Return whether nothing would be lost with it."""
        return max(self._held_at, self._used_at, self.asked_at) < now - REST_MS

    def _wanted(self, rate: float, share: float, now: int) -> float:
        doublings = min(30, max(0, now - self._needed_since) // ROUND_MS)
        most = min(EARNED_S, max(MOST_WANTED_S, 2 * (now - self.asked_at) / 1_000))
        return min(max(1.0, rate * most), (1 + rate * share * FIRST_WANTED_S) * (1 << doublings))

    def _first_ready_at(self, part: OwnPart, now: int) -> int:
        """Return when the first of the others may be asked. Looks at all of them only if something has changed."""
        if self._first is None or self._first[0] is not part or now < self._first[1]:
            at = (now if self._may_ask(each, now) else self._others[each].ask_at for each in part.others)
            self._first = part, now, min(at, default=0)
        return self._first[2]

    def _ready(self, part: OwnPart, now: int) -> list[Place]:
        ready = [each for each in part.others if self._may_ask(each, now)]
        return sorted(ready, key=lambda each: self._others[each].asked_at)

    def _may_ask(self, place: Place, now: int) -> bool:
        """Return whether it is time to ask another one. A clock that was set back makes nobody wait for it."""
        ask_at = self._others[place].ask_at
        return ask_at <= now or ask_at > now + LAST_PAUSE_MS

    def _use_at(self, now: int) -> float:
        return self._used * math.exp(-max(0, now - self._used_at) / MEMORY_MS)


class RateDemand:
    """All rates of a lane, and the number of its `cycle`."""

    def __init__(self) -> None:
        self.cycle = 0
        self._part: tuple[object, OwnPart] | None = None
        self._all: dict[RateName, Demand] = {}
        self._crowd = CROWD

    def part(self, basis: object, make: Callable[[], OwnPart]) -> OwnPart:
        """Return the lane's part of all rates: the same object until it is made of something else."""
        if self._part is None or self._part[0] != basis:
            self._part = basis, make()
        return self._part[1]

    def of(self, name: RateName, now: int) -> Demand:
        """Return what is known of a rate."""
        demand = self._all.get(name)
        if demand is None:
            if len(self._all) >= self._crowd:
                self._all = {name: each for name, each in self._all.items() if not each.is_at_rest(now)}
                self._crowd = max(CROWD, 2 * len(self._all))
            demand = self._all[name] = Demand()
        return demand
