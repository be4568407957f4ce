"""Status of a copy of a partition's state, for `/info`, `/ready` and `/metrics`."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class RestoreStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a restore, in changelog offsets. Some offsets have no record any more."""

    done: Annotated[int, Meta(description="Changelog offsets read so far.")]
    total: Annotated[int, Meta(description="Changelog offsets to read in total.")]
    records: Annotated[int, Meta(description="Records found in the offsets read.")]
    seconds: Annotated[float, Meta(description="Time since the restore began, s.")]
    per_s: Annotated[float, Meta(description="Offsets per second.")]
    seconds_left: Annotated[float | None, Meta(description="Estimated time left, s; null: not known yet.")]

    def __str__(self) -> str:
        share = 100 * self.done // self.total if self.total else 100
        left = "" if self.seconds_left is None else f", {self.seconds_left:,.0f} s left"
        return f"{self.done:,} of {self.total:,} changelog offsets ({share} %), {self.per_s:,.0f}/s{left}"


class StandbyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A warm copy of a partition that another worker owns."""

    topic: Annotated[str, Meta(description="The commands topic.")]
    partition: int
    reason: Annotated[str | None, Meta(description="Why the copy is not updated, or was last restarted.")] = None
    pending: Annotated[int, Meta(description="Schedules in the copy, of all tenants.")] = 0
    lag: Annotated[int | None, Meta(description="Changelog offsets that the copy lacks; null: it is not warm yet.")] = (
        None
    )
    restore: Annotated[
        RestoreStatus | None, Meta(description="Progress of building the copy; null: not started yet.")
    ] = None
