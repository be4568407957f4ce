"""What a lane tells about itself: for `/info`, `/ready` and `/metrics`. Times are UTC epoch ms, durations ms."""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated

import msgspec
from msgspec import Meta

RESTORING = "restoring"
RUNNING = "running"
"""The state of a lane that does its work; every other one is on the way there or away from it."""

LATENESS_BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 600_000)
"""Upper bounds, included, of the lateness histogram's buckets; one more bucket takes the rest."""


class Lateness(msgspec.Struct):
    """A histogram of how late firings were committed: commit time minus due."""

    counts: Annotated[list[int], Meta(description="Firings per bucket, not cumulative; the last has no bound.")] = (
        msgspec.field(default_factory=lambda: [0] * (len(LATENESS_BOUNDS_MS) + 1))
    )
    sum_ms: int = 0
    max_ms: int = 0

    def observe(self, ms: int, firings: int = 1) -> None:
        """Count firings that were this late."""
        self.counts[bisect_left(LATENESS_BOUNDS_MS, ms)] += firings
        self.sum_ms += ms * firings
        self.max_ms = max(self.max_ms, ms)


class RestoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a restore has come. It is counted in offsets of the changelog, some of which have no record any more."""

    done: Annotated[int, Meta(description="Offsets of the changelog that have been read.")]
    total: Annotated[int, Meta(description="Offsets that there are to read.")]
    records: Annotated[int, Meta(description="Records found there.")]
    seconds: Annotated[float, Meta(description="Since it began, s.")]
    per_s: Annotated[float, Meta(description="Offsets a second.")]
    seconds_left: Annotated[float | None, Meta(description="Estimate of what is left to wait; null: not known yet.")]

    def __str__(self) -> str:
        share = 100 * self.done // self.total if self.total else 100
        left = "" if self.seconds_left is None else f", {self.seconds_left:,.0f} s left"
        return f"{self.done:,} of {self.total:,} changelog offsets ({share} %), {self.per_s:,.0f}/s{left}"


class StandbyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A warm copy of a partition that another worker owns."""

    topic: Annotated[str, Meta(description="The commands topic.")]
    partition: int
    reason: Annotated[str | None, Meta(description="Why it is not kept up to date, or last started again.")] = None
    pending: Annotated[int, Meta(description="Schedules in the copy, of all tenants.")] = 0
    lag: Annotated[
        int | None, Meta(description="Changelog offsets that it has not read; null: it is not warm yet.")
    ] = None
    restore: Annotated[RestoreStatus | None, Meta(description="How it was, or is being, made; null: not yet.")] = None


class LaneStatus(msgspec.Struct, kw_only=True):
    """A lane at one moment. Counters run since this worker took the partition over."""

    topic: Annotated[str, Meta(description="The commands topic.")]
    partition: int
    state: Annotated[str, Meta(description="created, fenced, restoring, running, closing, closed or failed.")]
    reason: Annotated[str | None, Meta(description="Why it is not running, or last started again.")] = None
    restore: Annotated[
        RestoreStatus | None, Meta(description="How its state was brought up to date, or is being; null: not yet.")
    ] = None
    pending: Annotated[int, Meta(description="Schedules held, of all tenants.")] = 0
    position: Annotated[int | None, Meta(description="Offset of the next command to read.")] = None
    lag: Annotated[int | None, Meta(description="Commands that wait to be read; null: not known.")] = None
    oldest_due: Annotated[int | None, Meta(description="Due time of the next pending firing, UTC epoch ms.")] = None
    outcomes: Annotated[dict[str, int], Meta(description="Commands carried out, by outcome.")] = {}
    firings: Annotated[int, Meta(description="Firings delivered.")] = 0
    expired: Annotated[int, Meta(description="Firings not delivered, for their time to live was over.")] = 0
    dead_letters: Annotated[int, Meta(description="Commands and firings set aside as dead letters.")] = 0
    throttled: Annotated[int, Meta(description="Firings delivered that had waited for a rate cap.")] = 0
    lost_results: Annotated[int, Meta(description="Answers whose reply topic is missing or refuses them.")] = 0
    forwarded: Annotated[int, Meta(description="Commands passed on to the partition of their key.")] = 0
    transactions: Annotated[int, Meta(description="Transactions committed.")] = 0
    staged: Annotated[int, Meta(description="Transactions prepared ahead of time and committed at it.")] = 0
    unstaged: Annotated[int, Meta(description="Transactions prepared ahead of time and dropped for a command.")] = 0
    clock_skew: Annotated[
        int | None,
        Meta(description="How far this worker's clock is ahead of the broker's at least, ms; null: not known."),
    ] = None
    rebuilds: Annotated[int, Meta(description="Times its local copy was thrown away, to be built anew.")] = 0
    restarts: Annotated[int, Meta(description="Times the lane started again after a failure.")] = 0
    lateness: Lateness = msgspec.field(default_factory=Lateness)
