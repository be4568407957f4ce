"""Which request carries out an idempotency key, and with what result: the state of the idempotency topic.

Every worker reads the same records in the same order, so all arrive at the same state. Times are the records'
timestamps, UTC epoch ms.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from light_scheduler.model import Outcome, Result
from light_scheduler.web.limits.shares import Holder, Shares
from light_scheduler.wire.idempotency import ClaimEvent, ClaimMade, CommandSent, key_hash_of

MOST_KEYS = 200_000
"""Keys of the last hour, of all workers together, that are kept in memory. A tenant that is alone may use half of them.
Beyond that, keys are refused until some expire."""

KEPT_MS = 3_600_000
"""How long a key belongs to the request that used it first."""

ABANDONED_MS = 120_000
"""Age at which a claim without a sent command is abandoned: its worker must be gone. It is longer than the longest wait
of a request, the look-ups before sending, and the time until its claim is renewed."""

COUNTED_FOR_MS = 1_000
"""How long a count of expired claims is reused: counting can take about 50 ms."""

MOST_REFUSED = 10_000
"""Number of refused requests that are remembered after their claims were forgotten, in case a renewal arrives late."""

_CHANGED_NOTHING = (Outcome.REJECTED, Outcome.CONFLICT)


@dataclass(slots=True)
class Claim:
    """The request that carries out a key. `owner` is the claim that does so: the first, or one that took over. `at` is
    when it was made or last renewed.

    `request_id` is that of the first claim, so that the result of its command counts, however late. `id` is the
    schedule's. `sent` is None until the command is known to be in its topic.
    """

    request_id: str
    owner: str
    fingerprint: str
    id: str
    tenant: str
    at: int
    sent: CommandSent | None = None
    result: Result | None = None

    def is_abandoned(self, now: int) -> bool:
        """Return whether another request may take over."""
        return self.sent is None and self.result is None and now - self.at > ABANDONED_MS


class _Expired(NamedTuple):
    """Number of expired claims of each tenant at an instant. They are removed when the next record is applied."""

    at: int
    of: Counter[Holder]


class Claims:
    """The claims of the last hour, by the hash of their keys."""

    def __init__(self) -> None:
        self._by_hash: OrderedDict[str, Claim] = OrderedDict()
        self._shares = Shares(MOST_KEYS)
        self._expired: _Expired | None = None
        self._refused: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._by_hash)

    def has_room(self, tenant: str, now: int) -> bool:
        """Return whether a tenant may claim one more key. Expired claims count as free: the record of the new claim
        removes them."""
        if self._shares.has_room(tenant):
            return True
        if self._expired is None or now - self._expired.at >= COUNTED_FOR_MS:
            gone = takewhile(lambda claim: claim.at <= now - KEPT_MS, self._by_hash.values())
            self._expired = _Expired(now, Counter(claim.tenant for claim in gone))
        return self._shares.has_room(tenant, freed=self._expired.of)

    def get(self, hash: str, now: int) -> Claim | None:
        """Return the claim of a key at an instant, or None."""
        claim = self._by_hash.get(hash)
        return None if claim is None or claim.at <= now - KEPT_MS else claim

    def apply(self, request_id: str, event: ClaimEvent, at: int) -> None:
        """Apply the next record of the topic."""
        self._expired = None
        self._forget_before(at - KEPT_MS)
        hash = key_hash_of(request_id)
        claim = self.get(hash, at)
        if isinstance(event, ClaimMade):
            self._claim(hash, claim, request_id, event, at)
        elif claim is None or claim.request_id != request_id:
            return
        elif isinstance(event, CommandSent):
            claim.sent = event
        else:
            claim.result = event
            if event.outcome in _CHANGED_NOTHING:
                self._forget(hash)  # the same request may succeed next time
                self._note_refused(claim.request_id, claim.owner)

    def _claim(self, hash: str, claim: Claim | None, request_id: str, made: ClaimMade, at: int) -> None:
        if request_id in self._refused:
            return  # a late renewal
        if claim is None:
            self._forget(hash)
            self._shares.take(made.tenant)
            self._by_hash[hash] = Claim(request_id, request_id, made.fingerprint, made.id, made.tenant, at)
        elif request_id == claim.owner or (claim.is_abandoned(at) and claim.fingerprint == made.fingerprint):
            claim.owner, claim.at = request_id, at
            self._by_hash.move_to_end(hash)

    def _note_refused(self, *request_ids: str) -> None:
        self._refused.update(dict.fromkeys(request_ids))
        while len(self._refused) > MOST_REFUSED:
            self._refused.popitem(last=False)

    def _forget_before(self, oldest: int) -> None:
        while self._by_hash:
            hash, claim = next(iter(self._by_hash.items()))
            if claim.at > oldest:
                return
            self._forget(hash)

    def _forget(self, hash: str) -> None:
        claim = self._by_hash.pop(hash, None)
        if claim is not None:
            self._shares.give_back(claim.tenant)
