"""Rates of commands: a token bucket for each tenant with a quota of `commands_per_second`.

Commands count at the time when they were recorded, so senders are not penalised for a backlog. This time only goes back
with the lane's clock, and is never ahead of it, so forged timestamps have no advantage. Instants are UTC epoch ms.
"""

from __future__ import annotations

from copy import copy

from light_scheduler.model.rate_lending import RatePart

from .token_bucket import TokenBucket

COMMANDS_SAVED_S = 1.0
"""Burst of commands that a tenant may send after a pause, in seconds of its rate."""


class CommandRates:
    """Limits the rate of each tenant's commands in a lane. The lane earns a part of the rate."""

    def __init__(self) -> None:
        self._committed: dict[str, tuple[TokenBucket, int]] = {}  # tenant -> (bucket, time of its last use)
        self._begun: dict[str, tuple[TokenBucket, int]] = {}
        self._outdated: set[str] = set()  # tenants that another lane may have served since their last use here
        self._part: RatePart | None = None
        self._since: int | None = None

    def begin(self) -> None:
        """Begin a transaction. Commands of an earlier uncommitted transaction do not count."""
        self._begun.clear()

    @property
    def is_new(self) -> bool:
        """Whether the lane may not have its full part of rates yet, since its partition is new."""
        return self._part is not None and self._part.is_new

    def earn(self, part: RatePart, now: int) -> None:
        """Change the part of each rate that is earned from now on. Saved tokens stay. Only between transactions."""
        if part == self._part:
            return
        self._since = now if part.is_new else None
        self._part = part
        for tenant, (bucket, reached) in self._committed.items():
            at = max(reached, now) if part.is_new else reached
            bucket.earn(part.share, at)
            self._committed[tenant] = bucket, at

    @property
    def is_used(self) -> bool:
        """Whether it has a bucket of any tenant."""
        return bool(self._committed)

    def take_back(self) -> None:
        """Another lane has had the partition, so nobody catches up with the time since the last use of a bucket."""
        self._outdated = set(self._committed)

    def allows(self, tenant: str, rate: float, recorded_at: int, now: int) -> bool:
        """Return whether one more command of a tenant may be taken. `rate` is the rate in its rule."""
        bucket, at = self._bucket(tenant, rate, min(recorded_at, now), now)
        self._begun[tenant] = bucket, at
        return bucket.available(at) >= 1

    def take(self, tenant: str, rate: float, recorded_at: int, now: int) -> bool:
        """Take one command of a tenant. Return False if that exceeds the rate."""
        if not self.allows(tenant, rate, recorded_at, now):
            return False
        self._begun[tenant][0].spend(1)
        return True

    def catch_up(self, tenant: str, rate: float, now: int) -> bool:
        """Move the bucket to the time when one more command of a tenant was possible. Return whether that is by `now`.

        So waiting commands get all tokens that the bucket earned since its last use, and not only its capacity. Returns
        False for an unknown tenant, since the time of its last use is unknown, also if that was in another lane.
        """
        known = self._begun.get(tenant) or (None if tenant in self._outdated else self._committed.get(tenant))
        if known is None or known[0].rate != rate or self.is_new:
            return False
        at = known[1]
        while at <= now:
            if self.allows(tenant, rate, at, now):
                return True
            at = self.ready_at(tenant)
        return False

    def ready_at(self, tenant: str) -> int:
        """Return when the next command of a tenant is allowed, after one was not."""
        return self._begun[tenant][0].ready_at()

    def left(self, tenant: str) -> int:
        """Return how many more commands of a tenant may be taken, after one was taken."""
        bucket, at = self._begun[tenant]
        return bucket.available(at)

    def lend(self, tenant: str, rate: float, most: float, kept: float, recorded_at: int, now: int) -> float:
        """Take at most `most` tokens of a tenant for another lane's ask at `recorded_at`; see `TokenBucket.lend`.

        They are gone even if the transaction fails: it may have been committed with only the answer lost, and then the
        other lane has them.
        """
        bucket, at = self._begun[tenant] = self._bucket(tenant, rate, min(recorded_at, now), now)
        lent = bucket.lend(most, kept, at)
        if lent:  # record the tokens earned so far, or they would be earned again
            kept_anyway, _ = self._committed[tenant]
            kept_anyway.available(at)
            kept_anyway.spend(lent)
            self._committed[tenant] = kept_anyway, at
        return lent

    def borrow(self, tenant: str, tokens: float, until: int) -> None:
        """Add tokens from another lane for a tenant, if any of its commands was taken or denied here."""
        known = self._begun.get(tenant) or self._committed.get(tenant)
        if known is not None:
            bucket = copy(known[0])
            bucket.borrow(tokens, until)
            self._begun[tenant] = bucket, known[1]

    def receive(self, tenant: str, tokens: float, until: int) -> None:
        """Like `borrow`, but outside of transactions: the tokens stay even if the current one fails."""
        for buckets in (self._committed, self._begun):
            if tenant in buckets:
                buckets[tenant][0].borrow(tokens, until)

    def commit(self) -> None:
        """Count the commands taken in the transaction.

        Whose bucket has reached another time may catch up from then on. Borrowed tokens leave the time as it was.
        """
        self._outdated = {
            tenant
            for tenant in self._outdated
            if tenant not in self._begun or self._begun[tenant][1] == self._committed[tenant][1]
        }
        self._committed |= self._begun
        self._begun.clear()

    def _bucket(self, tenant: str, rate: float, at: int, now: int) -> tuple[TokenBucket, int]:
        known = self._begun.get(tenant)
        if known is None or known[0].rate != rate:
            bucket, reached = self._before(tenant, rate, at)
            known = copy(bucket), reached
        return known[0], max(min(known[1], now), at)

    def _before(self, tenant: str, rate: float, at: int) -> tuple[TokenBucket, int]:
        """Return the bucket from before this transaction. A new bucket stays if that fails, since it may have lent."""
        known = self._committed.get(tenant)
        if known is None or known[0].rate != rate:
            share = 1.0 if self._part is None else self._part.share
            at = at if self._since is None else max(at, self._since)
            bucket = TokenBucket(rate, at, COMMANDS_SAVED_S, spare_s=0.0, share=share, since=self._since)
            known = self._committed[tenant] = bucket, at
        return known
