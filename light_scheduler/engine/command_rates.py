"""The rates of commands: a token bucket for each tenant with a quota of `commands_per_second`.

Commands count at the time when they were recorded, so a backlog is not held against its senders. Time goes back with
the lane's clock only, and is never ahead of it, so forged timestamps gain nothing. Instants are UTC epoch ms.
"""

from __future__ import annotations

from copy import copy

from light_scheduler.model.rate_lending import RatePart

from .token_bucket import TokenBucket

COMMANDS_SAVED_S = 1.0
"""Commands that a tenant may send at once after a pause, in seconds of its rate."""


class CommandRates:
    """Limits the rate of commands of each tenant in a lane, which earns a part of it."""

    def __init__(self) -> None:
        self._committed: dict[str, tuple[TokenBucket, int]] = {}  # a tenant's bucket, and when it was looked at
        self._begun: dict[str, tuple[TokenBucket, int]] = {}
        self._part: RatePart | None = None
        self._since: int | None = None

    def begin(self) -> None:
        """Begin a transaction; commands that an earlier one took and did not commit do not count."""
        self._begun.clear()

    @property
    def is_new(self) -> bool:
        """Whether the lane may not have its whole part of rates yet, since its partition was added."""
        return self._part is not None and self._part.is_new

    def earn(self, part: RatePart, now: int) -> None:
        """Earn another part of each rate from now on; what buckets hold stays. To be called between transactions."""
        if part == self._part:
            return
        self._since = now if part.is_new else None
        self._part = part
        for tenant, (bucket, reached) in self._committed.items():
            at = max(reached, now) if part.is_new else reached
            bucket.earn(part.share, at)
            self._committed[tenant] = bucket, at

    def allows(self, tenant: str, rate: float, recorded_at: int, now: int) -> bool:
        """Return whether one more command of a tenant may be taken; `rate` is that of its rule."""
        bucket, at = self._bucket(tenant, rate, min(recorded_at, now), now)
        self._begun[tenant] = bucket, at
        return bucket.available(at) >= 1

    def take(self, tenant: str, rate: float, recorded_at: int, now: int) -> bool:
        """Take one command of a tenant, unless that is too many."""
        if not self.allows(tenant, rate, recorded_at, now):
            return False
        self._begun[tenant][0].spend(1)
        return True

    def catch_up(self, tenant: str, rate: float, now: int) -> bool:
        """Go on to when one more command of a tenant could have been taken; return whether that was not after `now`.

        So commands that waited while nobody looked at the bucket have all that it could have given out meanwhile, not
        only what it holds at once. Of a tenant that is not known here, nobody knows since when that was.
        """
        known = self._begun.get(tenant) or self._committed.get(tenant)
        if known is None or known[0].rate != rate or self.is_new:
            return False
        at = known[1]
        while at <= now:
            if self.allows(tenant, rate, at, now):
                return True
            at = self.ready_at(tenant)
        return False

    def ready_at(self, tenant: str) -> int:
        """Return when commands of a tenant may be taken, of which one was just not allowed."""
        return self._begun[tenant][0].ready_at()

    def left(self, tenant: str) -> int:
        """Return how many more may be taken of a tenant of which one was just taken."""
        bucket, at = self._begun[tenant]
        return bucket.available(at)

    def lend(self, tenant: str, rate: float, most: float, kept: float, recorded_at: int, now: int) -> float:
        """Take at most so many tokens of a tenant for another lane, which asked then; see `TokenBucket.lend`.

        They are gone even if the transaction fails: the other lane may have them, if only the answer was lost.
        """
        bucket, at = self._begun[tenant] = self._bucket(tenant, rate, min(recorded_at, now), now)
        lent = bucket.lend(most, kept, at)
        if lent:  # what was earned until now has to count as earned, or it would be once more
            kept_anyway, _ = self._committed[tenant]
            kept_anyway.available(at)
            kept_anyway.spend(lent)
            self._committed[tenant] = kept_anyway, at
        return lent

    def borrow(self, tenant: str, tokens: float, until: int) -> None:
        """Add tokens of another lane for a tenant, if any command of it was taken or denied here."""
        known = self._begun.get(tenant) or self._committed.get(tenant)
        if known is not None:
            bucket = copy(known[0])
            bucket.borrow(tokens, until)
            self._begun[tenant] = bucket, known[1]

    def receive(self, tenant: str, tokens: float, until: int) -> None:
        """Do so outside of transactions: the tokens stay even if the one that has begun fails."""
        for buckets in (self._committed, self._begun):
            if tenant in buckets:
                buckets[tenant][0].borrow(tokens, until)

    def commit(self) -> None:
        """Count what the transaction has taken."""
        self._committed |= self._begun
        self._begun.clear()

    def _bucket(self, tenant: str, rate: float, at: int, now: int) -> tuple[TokenBucket, int]:
        known = self._begun.get(tenant)
        if known is None or known[0].rate != rate:
            bucket, reached = self._before(tenant, rate, at)
            known = copy(bucket), reached
        return known[0], max(min(known[1], now), at)

    def _before(self, tenant: str, rate: float, at: int) -> tuple[TokenBucket, int]:
        """Return the bucket as this transaction finds it. A new one stays if that fails: it may have lent by then."""
        known = self._committed.get(tenant)
        if known is None or known[0].rate != rate:
            share = 1.0 if self._part is None else self._part.share
            at = at if self._since is None else max(at, self._since)
            bucket = TokenBucket(rate, at, COMMANDS_SAVED_S, spare_s=0.0, share=share, since=self._since)
            known = self._committed[tenant] = bucket, at
        return known
