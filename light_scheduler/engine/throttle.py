"""Rate caps: token buckets for all firings of a lane, and for those of each tenant.

A firing that finds no token waits; it is late then, and never lost. Instants are UTC epoch ms.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from light_scheduler.model import Entry, Shares

SAVED_S = 0.25
"""Capacity of a bucket, in seconds of its rate: the burst that can go out after a pause."""

MIN_REFILL_S = 0.1
"""Tokens to wait for before throttled firings go on, in seconds of the rate. Avoids a transaction for each firing."""


ALL = ""
"""In place of a tenant: all together."""


class TokenBucket:
    """Gives out `rate` tokens a second, and at most `saved_s` seconds' worth, or one, at once. It begins full."""

    def __init__(self, rate: float, now: int, saved_s: float = SAVED_S) -> None:
        self.rate = rate
        self._capacity = max(1.0, rate * saved_s)
        self._tokens = self._capacity
        self._at = now

    def available(self, now: int) -> int:
        """Return how many tokens there are. A clock that is set back fills nothing, and costs nothing."""
        earned = max(0, now - self._at) * self.rate / 1_000
        self._tokens = min(self._capacity, self._tokens + earned)
        self._at = now
        return int(self._tokens)

    def spend(self, tokens: int) -> None:
        """Take tokens out."""
        self._tokens -= tokens

    def ready_at(self) -> int:
        """Return when there will be enough to go on with."""
        enough = min(self._capacity, max(1.0, self.rate * MIN_REFILL_S))
        return self._at + max(0, math.ceil((enough - self._tokens) * 1_000 / self.rate))

    def is_full(self, now: int) -> bool:
        """Tell whether it is as good as a new one."""
        self.available(now)
        return self._tokens >= self._capacity


class Throttle:
    """Applies the rate caps to a lane's firings.

    A cap counts for all used partitions of a commands topic together; each lane has an equal part of it.
    """

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self._lanes = 1
        self._total: TokenBucket | None = None
        self._buckets: dict[str, TokenBucket] = {}
        self._held_at: dict[str, int] = {}  # tenant, or ALL -> when something due was last kept waiting
        self._crowd = 1_000  # buckets there may be before those that are full are given up

    @property
    def has_caps(self) -> bool:
        """Whether anything is capped."""
        return self._shares.has_caps

    def change(self, shares: Shares) -> None:
        """Have other caps hold; buckets whose rate stays are as they were."""
        kept = {
            name: bucket for name, bucket in self._buckets.items() if self._shares.rate_of(name) == shares.rate_of(name)
        }
        self._shares, self._buckets = shares, kept

    def share_among(self, lanes: int) -> None:
        """Note how many lanes share the caps."""
        if lanes != self._lanes:
            self._lanes, self._total, self._buckets = lanes, None, {}

    def total(self, now: int) -> int | None:
        """Return how many firings may be delivered now; None: any number."""
        if self._shares.rate is None:
            return None
        if self._total is None:
            self._total = TokenBucket(self._shares.rate / self._lanes, now)
        return self._total.available(now)

    def allowed(self, tenant: str, now: int) -> int | None:
        """Return how many firings of a tenant may be delivered now; None: any number."""
        bucket = self._bucket(tenant, now)
        return None if bucket is None else bucket.available(now)

    def charge(self, delivered: Iterable[Entry], now: int) -> int:
        """Count what was delivered; return how much of it a cap had kept waiting."""
        if self._shares.rate is None and not self._shares.rates:
            return 0
        counts: Counter[str] = Counter()
        waited = 0
        for entry in delivered:
            tenant = entry.schedule.tenant
            counts[tenant] += 1
            waited += entry.progress.due <= max(self._held_at.get(ALL, 0), self._held_at.get(tenant, 0))
        if self._total is not None:
            self._total.spend(counts.total())
        for tenant, count in counts.items():
            bucket = self._bucket(tenant, now)
            if bucket is not None:
                bucket.spend(count)
        return waited

    def hold(self, tenants: Iterable[str], now: int) -> int | None:
        """Note which tenants, or ALL, have more due than they may; return when the first of them goes on.

        None: nobody is held.
        """
        resumes = []
        for tenant in tenants:
            self._held_at[tenant] = now
            bucket = self._total if tenant == ALL else self._bucket(tenant, now)
            if bucket is not None:
                resumes.append(bucket.ready_at())
        return min(resumes, default=None)

    def _bucket(self, tenant: str, now: int) -> TokenBucket | None:
        bucket = self._buckets.get(tenant)
        if bucket is None and (rate := self._shares.rate_of(tenant)) is not None:
            if len(self._buckets) >= self._crowd:
                self._give_up_full_ones(now)
            bucket = self._buckets[tenant] = TokenBucket(rate / self._lanes, now)
        return bucket

    def _give_up_full_ones(self, now: int) -> None:
        self._buckets = {tenant: bucket for tenant, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._held_at = {tenant: at for tenant, at in self._held_at.items() if tenant == ALL or tenant in self._buckets}
        self._crowd = 1_000 + 2 * len(self._buckets)
