"""A token bucket that lends what it does not need, and borrows. Instants are UTC epoch ms."""

from __future__ import annotations

import math

SAVED_S = 0.25
"""Capacity of a bucket, in seconds of its rate: the burst that can go out after a pause."""

SPARE_S = 0.75
"""Tokens beyond that, for other lanes only, in seconds of its rate."""

BORROWED_MS = 500
"""After this time, borrowed tokens only fill the bucket up: they are for what waits now, not for a burst later."""

MIN_REFILL_S = 0.1
"""Tokens to wait for before throttled firings go on, in seconds of the rate. Avoids a transaction for each firing."""

NOTHING_MS = 1_000
"""When to look again at a bucket that earns nothing."""


class TokenBucket:
    """Gives out a `share` of `rate` tokens a second, and at most `saved_s` seconds' worth, or one, at once.

    What it earns beyond that is spare, up to `spare_s` seconds' worth: only others get it. It holds no more than
    `saved_s` and `spare_s` seconds' worth in all, or one token. It begins full, or with what it has earned `since`.
    """

    def __init__(
        self,
        rate: float,
        now: int,
        saved_s: float = SAVED_S,
        spare_s: float = SPARE_S,
        *,
        share: float = 1.0,
        since: int | None = None,
    ) -> None:
        self.rate = rate
        self._saved_s, self._spare_s = saved_s, spare_s
        self._follow(share)
        earned = self._capacity if since is None else max(0, now - since) * self._earned / 1_000
        self._tokens = min(self._capacity, earned)
        self._spare = 0.0
        self._borrowed: tuple[tuple[int, float], ...] = ()  # until when, and how many
        self._at = now

    def earn(self, share: float, now: int) -> None:
        """Earn another share from now on, and by the lower one since it was looked at last; what it holds stays."""
        self._follow(min(share, self._share))
        self.available(now)
        self._follow(share)

    def available(self, now: int) -> int:
        """Return how many tokens there are. A clock that is set back fills nothing, and costs nothing."""
        earned = self._tokens + max(0, now - self._at) * self._earned / 1_000
        if self._borrowed:
            earned += self._expire(now)
        self._tokens = min(self._capacity, earned)
        self._spare = min(self._most_spare, self._spare + earned - self._tokens)
        self._at = now
        return int(self._all)

    def spend(self, tokens: float) -> None:
        """Take tokens out: borrowed ones first."""
        left = []
        for until, amount in self._borrowed:
            spent = min(tokens, amount)
            tokens -= spent
            if amount > spent:
                left.append((until, amount - spent))
        self._borrowed = tuple(left)
        self._tokens -= tokens

    def lend(self, most: float, kept: float, now: int) -> float:
        """Take out at most so many tokens for another lane: those that are spare, and own ones above what is `kept`."""
        self.available(now)
        spare = min(most, self._spare)
        own = max(0.0, min(most - spare, self._tokens - kept))
        self._spare -= spare
        self._tokens -= own
        return spare + own

    def borrow(self, tokens: float, until: int) -> None:
        """Add tokens of another lane, which can be spent before an instant."""
        self._borrowed = (*self._borrowed, (until, tokens))

    def ready_at(self) -> int:
        """Return when there will be enough to go on with."""
        enough = min(self._capacity, max(1.0, self._earned * MIN_REFILL_S))
        if self._all >= enough:
            return self._at
        return self._at + (math.ceil((enough - self._all) * 1_000 / self._earned) if self._earned else NOTHING_MS)

    def is_full(self, now: int) -> bool:
        """Return whether it is as good as a new one."""
        self.available(now)
        return self._tokens >= self._capacity

    def _follow(self, share: float) -> None:
        self._share = share
        self._earned = earned = self.rate * share
        self._capacity = max(1.0, earned * self._saved_s)
        self._most_spare = max(0.0, earned * (self._saved_s + self._spare_s) - self._capacity)

    def _expire(self, now: int) -> float:
        """Return how many borrowed tokens become own ones, as far as the bucket is not full."""
        old = sum(amount for until, amount in self._borrowed if until <= now)
        self._borrowed = tuple(each for each in self._borrowed if each[0] > now)
        return min(old, self._capacity - self._tokens)

    @property
    def _all(self) -> float:
        return self._tokens + sum(amount for _, amount in self._borrowed)
