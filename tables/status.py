"""Status of a copy of a partition's state, for `/info`, `/ready` and `/metrics`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


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
