"""Refuses requests, so that no tenant keeps all connections of a worker busy.

A connection is counted for its token's tenants while its request is in progress. Nothing is refused until three
quarters of the worker's connections are busy. From then on, a holder may have at most as many connections as are still
free (`shares`), so that others find room. The last few are reserved for connections whose owner is not known yet.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from http import HTTPStatus

from light_scheduler.access import Identity
from light_scheduler.web.forms.problems import RETRY_AFTER_S, ProblemError

from .shares import Holder, Shares, holder_for

MOST_TENANTS = 100
"""Number of tenants with a count of refusals of their own: the first ones that are refused."""


class BusyConnections:
    """Connections of a worker, up to `most`, with a request in progress, counted by the holder of the token."""

    def __init__(self, most: int) -> None:
        self._for_anybody = most * 3 // 4
        self._shares = Shares(max(1, most - max(1, most // 16)))
        self.refused: Counter[str] = Counter()
        """Number of refused requests, by tenant."""
        self.others_refused = 0

    @property
    def count(self) -> int:
        return self._shares.used

    def has_room(self, holder: Holder) -> bool:
        """Return whether a holder may keep one more connection busy."""
        return self.count < self._for_anybody or self._shares.has_room(holder)

    def hold(self, identity: Identity, request: asyncio.Future[None]) -> None:
        """Count a connection until its request is done. Raises ProblemError if there is no room."""
        holder = holder_for(identity, None)
        if not self.has_room(holder):
            self._count_refusal("*" if identity.tenants is None else ",".join(sorted(identity.tenants)))
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "Most connections of this worker are busy, and this tenant or token has its share of them. Wait for "
                "some of its requests to end.",
                retry_after_s=RETRY_AFTER_S,
            )
        self._shares.take(holder)
        request.add_done_callback(lambda _: self._shares.give_back(holder))

    def _count_refusal(self, tenant: str) -> None:
        if tenant in self.refused or len(self.refused) < MOST_TENANTS:
            self.refused[tenant] += 1
        else:
            self.others_refused += 1
