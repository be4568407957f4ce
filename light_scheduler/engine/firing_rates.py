"""Rate caps of firings: a token bucket for all firings of a lane, and one for each tenant.

The caps are the settings `firing_rate` and `tenant_firing_rates`, and `firings_per_second` in a tenant's rules. A
firing without a token waits, so it is late, but never lost. Instants are UTC epoch ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from light_scheduler.model import Entry, Shares
from light_scheduler.model.rate_lending import ALL, RateKind, RateName, RatePart

from .rate_lending import RateDemand
from .token_bucket import TokenBucket


class FiringRates:
    """Applies the rate caps to a lane's firings.

    A cap applies to all commands topics together. Topics have equal parts of it, and so have the used partitions of
    each. Lanes lend tokens to each other. Delivered firings are counted in `demand`.
    """

    def __init__(self, shares: Shares, demand: RateDemand | None = None) -> None:
        self._shares = shares
        self._demand = demand or RateDemand()
        self._part: RatePart | None = None
        self._since: int | None = None
        self._total: TokenBucket | None = None
        self._buckets: dict[str, TokenBucket] = {}
        self._held_at: dict[str, int] = {}  # tenant, or ALL -> when due firings were last held back
        self._crowd = 1_000  # number of buckets from which full ones are dropped

    @property
    def has_caps(self) -> bool:
        """Whether there is any cap."""
        return self._shares.has_caps

    def change(self, shares: Shares) -> None:
        """Change the caps. Buckets with an unchanged rate are kept."""
        kept = {
            name: bucket for name, bucket in self._buckets.items() if self._shares.rate_of(name) == shares.rate_of(name)
        }
        self._shares, self._buckets = shares, kept

    def earn(self, part: RatePart, now: int) -> None:
        """Change the part of each cap that is earned from now on. Saved tokens stay."""
        if part == self._part:
            return
        self._since = now if part.is_new else None
        self._part = part
        for bucket in filter(None, (self._total, *self._buckets.values())):
            bucket.earn(part.share, now)

    def cap_of(self, tenant: str) -> float | None:
        """Return the cap of a tenant, or of ALL, for all lanes together."""
        return self._shares.rate if tenant == ALL else self._shares.rate_of(tenant)

    def total(self, now: int) -> int | None:
        """Return how many firings may be delivered now; None if not limited."""
        bucket = self._bucket(ALL, now)
        return None if bucket is None else bucket.available(now)

    def allowed(self, tenant: str, now: int) -> int | None:
        """Return how many firings of a tenant may be delivered now; None if not limited."""
        bucket = self._bucket(tenant, now)
        return None if bucket is None else bucket.available(now)

    def charge(self, delivered: Iterable[Entry], now: int) -> int:
        """Count delivered firings. Return how many of them were held back by a cap."""
        if self._shares.rate is None and not self._shares.rates:
            return 0
        counts: Counter[str] = Counter()
        waited = 0
        for entry in delivered:
            tenant = entry.schedule.tenant
            counts[tenant] += 1
            waited += entry.progress.due <= max(self._held_at.get(ALL, 0), self._held_at.get(tenant, 0))
        for tenant, count in (*counts.items(), (ALL, counts.total())):
            bucket = self._bucket(tenant, now)
            if bucket is not None:
                bucket.spend(count)
                self._demand.of(RateName(RateKind.FIRINGS, tenant), now).use(count, now)
        return waited

    def lend(self, tenant: str, most: float, kept: float, now: int) -> float:
        """Take at most `most` tokens of a tenant, or of ALL, for another lane; see `TokenBucket.lend`."""
        bucket = self._bucket(tenant, now)
        return 0.0 if bucket is None else bucket.lend(most, kept, now)

    def borrow(self, tenant: str, tokens: float, until: int) -> None:
        """Add tokens from another lane for a tenant, or for ALL, if there is a cap."""
        bucket = self._total if tenant == ALL else self._buckets.get(tenant)
        if bucket is not None:
            bucket.borrow(tokens, until)

    def hold(self, tenants: Iterable[str], now: int) -> int | None:
        """Record that tenants, or ALL, have more due than is allowed. Return when the first of them may continue.

        None if none is held back.
        """
        resumes = []
        for tenant in tenants:
            self._held_at[tenant] = now
            bucket = self._bucket(tenant, now)
            if bucket is not None:
                resumes.append(bucket.ready_at())
        return min(resumes, default=None)

    def _bucket(self, tenant: str, now: int) -> TokenBucket | None:
        if tenant == ALL:
            if self._total is None and self._shares.rate is not None:
                self._total = self._new_bucket(self._shares.rate, now)
            return self._total
        bucket = self._buckets.get(tenant)
        if bucket is None and (rate := self._shares.rate_of(tenant)) is not None:
            if len(self._buckets) >= self._crowd:
                self._give_up_full_ones(now)
            bucket = self._buckets[tenant] = self._new_bucket(rate, now)
        return bucket

    def _new_bucket(self, rate: float, now: int) -> TokenBucket:
        share = 1.0 if self._part is None else self._part.share
        return TokenBucket(rate, now, share=share, since=self._since)

    def _give_up_full_ones(self, now: int) -> None:
        self._buckets = {tenant: bucket for tenant, bucket in self._buckets.items() if not bucket.is_full(now)}
        self._held_at = {tenant: at for tenant, at in self._held_at.items() if tenant == ALL or tenant in self._buckets}
        self._crowd = 1_000 + 2 * len(self._buckets)
