"""Requests that may be sent again: one with the same idempotency key is answered as the first was."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from light_scheduler.clock import Clock

KEPT_MS = 3_600_000
MOST_KEPT = 10_000


class KeyReusedError(Exception):
    """The same key came with another request."""


class StillRunningError(Exception):
    """A request with this key is being carried out."""


@dataclass(frozen=True)
class Answer:
    """A response, as far as it is to be repeated."""

    status: int
    body: bytes
    headers: dict[str, str]


@dataclass
class Claim:
    """One key while its request is carried out. `answer` is the earlier one, or is to be set."""

    digest: bytes
    at: int
    answer: Answer | None = None


class RecentAnswers:
    """The answers that this worker gave within the last hour, by tenant and key."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claims: OrderedDict[tuple[str, str], Claim] = OrderedDict()

    @contextmanager
    def claimed(self, tenant: str, key: str, content: bytes) -> Iterator[Claim]:
        """Claim a key for a request of some content; it is forgotten unless an answer is set.

        Raises KeyReusedError, StillRunningError.
        """
        self._forget_old()
        digest = hashlib.sha256(content).digest()
        claim = self._claims.get((tenant, key))
        if claim is not None:
            if claim.digest != digest:
                raise KeyReusedError
            if claim.answer is None:
                raise StillRunningError
            yield claim
            return
        claim = self._claims[tenant, key] = Claim(digest, self._clock.now())
        try:
            yield claim
        finally:
            if claim.answer is None:
                self._claims.pop((tenant, key), None)

    def _forget_old(self) -> None:
        oldest = self._clock.now() - KEPT_MS
        while self._claims:
            place, claim = next(iter(self._claims.items()))
            if claim.at > oldest and len(self._claims) < MOST_KEPT:
                return
            del self._claims[place]
