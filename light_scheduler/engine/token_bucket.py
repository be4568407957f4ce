"""A token bucket that can lend and borrow tokens. Instants are UTC epoch ms."""

from __future__ import annotations

import math

SAVED_S = 0.25
"""Capacity of a bucket, in seconds of its rate: the maximum burst after a pause."""

SPARE_S = 0.75
"""Additional tokens for other lanes only, in seconds of its rate."""

BORROWED_MS = 500
"""After this time, borrowed tokens only fill the bucket up: they are for waiting work, not for a later burst."""

MIN_REFILL_S = 0.1
"""Tokens to wait for before throttled firings go on, in seconds of the rate. Avoids a transaction for each firing."""

NOTHING_MS = 1_000
"""When to check a bucket again that earns nothing."""


class TokenBucket:
    """Earns a `share` of `rate` tokens per second, and saves up to `saved_s` seconds' worth, at least one token.

    Further tokens are spare, up to `spare_s` seconds' worth: they can only be lent. In total, it holds at most
    `saved_s + spare_s` seconds' worth, or one token. It starts full, or with the tokens earned `since`.
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
        self._borrowed: tuple[tuple[int, float], ...] = ()  # (until, tokens)
        self._at = now

    def earn(self, share: float, now: int) -> None:
        """Change the share from now on. The time since the last use counts with the lower one. Saved tokens stay."""
        self._follow(min(share, self._share))
        self.available(now)
        self._follow(share)

    def available(self, now: int) -> int:
        """Return the number of tokens. If the clock is set back, no tokens are earned or lost."""
        earned = self._tokens + max(0, now - self._at) * self._earned / 1_000
        if self._borrowed:
            earned += self._expire(now)
        self._tokens = min(self._capacity, earned)
        self._spare = min(self._most_spare, self._spare + earned - self._tokens)
        self._at = now
        return int(self._all)

    def spend(self, tokens: float) -> None:
        """Spend tokens, borrowed ones first."""
        left = []
        for until, amount in self._borrowed:
            spent = min(tokens, amount)
            tokens -= spent
            if amount > spent:
                left.append((until, amount - spent))
        self._borrowed = tuple(left)
        self._tokens -= tokens

    def lend(self, most: float, kept: float, now: int) -> float:
        """Take at most `most` tokens for another lane: spare ones, and own ones except those `kept`."""
        self.available(now)
        spare = min(most, self._spare)
        own = max(0.0, min(most - spare, self._tokens - kept))
        self._spare -= spare
        self._tokens -= own
        return spare + own

    def borrow(self, tokens: float, until: int) -> None:
        """Add tokens from another lane, which can be spent until an instant."""
        self._borrowed = (*self._borrowed, (until, tokens))

    def ready_at(self) -> int:
        """Return when there will be enough tokens to continue."""
        enough = min(self._capacity, max(1.0, self._earned * MIN_REFILL_S))
        if self._all >= enough:
            return self._at
        return self._at + (math.ceil((enough - self._all) * 1_000 / self._earned) if self._earned else NOTHING_MS)

    def is_full(self, now: int) -> bool:
        """Return whether it is full, like a new one."""
        self.available(now)
        return self._tokens >= self._capacity

    def _follow(self, share: float) -> None:
        self._share = share
        self._earned = earned = self.rate * share
        self._capacity = max(1.0, earned * self._saved_s)
        self._most_spare = max(0.0, earned * (self._saved_s + self._spare_s) - self._capacity)

    def _expire(self, now: int) -> float:
        """Expire borrowed tokens. Return how many of them fill up the bucket and become own ones."""
        old = sum(amount for until, amount in self._borrowed if until <= now)
        self._borrowed = tuple(each for each in self._borrowed if each[0] > now)
        return min(old, self._capacity - self._tokens)

    @property
    def _all(self) -> float:
        return self._tokens + sum(amount for _, amount in self._borrowed)
