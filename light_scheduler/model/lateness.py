"""Lateness of committed firings, as a classic and a native histogram. Durations are in ms."""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, log2
from typing import Annotated

import msgspec
from msgspec import Meta

LATENESS_BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000)
"""Inclusive upper bounds of the lateness histogram's buckets. One more bucket has the rest."""

NATIVE_SCHEMA = 3
"""Schema of Prometheus' native histograms: bucket n ends at 2^(n/8) seconds, inclusive."""

NATIVE_FROM_MS = LATENESS_BOUNDS_MS[0]
"""Firings up to this late are in the native histogram's zero bucket."""


class Lateness(msgspec.Struct):
    """A histogram of how late firings were committed: commit time minus due."""

    counts: Annotated[list[int], Meta(description="Firings per bucket, not cumulative; the last has no bound.")] = (
        msgspec.field(default_factory=lambda: [0] * (len(LATENESS_BOUNDS_MS) + 1))
    )
    sum_ms: int = 0
    max_ms: int = 0
    native: Annotated[
        dict[int, int], Meta(description="Firings later than 1 ms per bucket of a native histogram with the schema 3.")
    ] = {}

    def observe(self, ms: int, firings: int = 1) -> None:
        """Count firings that were `ms` late."""
        self.counts[bisect_left(LATENESS_BOUNDS_MS, ms)] += firings
        self.sum_ms += ms * firings
        self.max_ms = max(self.max_ms, ms)
        if ms > NATIVE_FROM_MS:
            bucket = ceil(log2(ms / 1_000) * 2**NATIVE_SCHEMA)
            self.native[bucket] = self.native.get(bucket, 0) + firings
