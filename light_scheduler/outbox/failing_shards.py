"""Shards that could not be relayed. Each is retried after its own pauses, so that it does not delay others."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection
from typing import NamedTuple

log = logging.getLogger(__name__)


class _Failure(NamedTuple):
    error: Exception
    pause_s: float
    retry_at: float


class FailingShards:
    """The shards of a relay whose last attempt failed. Each pause of a shard is twice as long as its last.

    A failure is logged unless the shard's last failure had the same text. `monotonic` is in seconds.
    """

    def __init__(self, first_s: float, last_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._first_s, self._last_s, self._monotonic = first_s, last_s, monotonic
        self._failures: dict[int, _Failure] = {}

    def failed(self, shard: int, error: Exception) -> None:
        """Note that a shard could not be relayed."""
        known = self._failures.get(shard)
        pause_s = self._first_s if known is None else min(2 * known.pause_s, self._last_s)
        self._failures[shard] = _Failure(error, pause_s, self._monotonic() + pause_s)
        if known is None or str(known.error) != str(error):
            text = "shard %d of the outbox is not sent, and tried again after pauses of up to %g s: %s"
            log.warning(text, shard, self._last_s, error)

    def worked(self, shard: int) -> None:
        """Note that a shard was relayed."""
        if self._failures.pop(shard, None) is not None:
            log.info("shard %d of the outbox is sent again", shard)

    def keep(self, shards: Collection[int]) -> None:
        """Forget all other shards, which have nothing left to send."""
        self._failures = {shard: failure for shard, failure in self._failures.items() if shard in shards}

    def may_try(self, shard: int) -> bool:
        """Return whether a shard may be tried: it does not fail, or its pause is over."""
        failure = self._failures.get(shard)
        return failure is None or self._monotonic() >= failure.retry_at

    def try_at_once(self) -> None:
        """End all pauses."""
        self._failures = {shard: failure._replace(retry_at=-math.inf) for shard, failure in self._failures.items()}

    def wait_s(self, shards: Collection[int]) -> float:
        """Return the time (s) until the first pause of these shards is over; infinite if none of them fails."""
        first = min((failure.retry_at for failure in self._of(shards)), default=math.inf)
        return max(0.0, first - self._monotonic())

    def raise_first(self, shards: Collection[int]) -> None:
        """Raise the error of one of these shards, if any has failed."""
        for failure in self._of(shards):
            raise failure.error

    def _of(self, shards: Collection[int]) -> list[_Failure]:
        return [failure for shard, failure in self._failures.items() if shard in shards]
