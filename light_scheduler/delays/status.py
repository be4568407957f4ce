"""Status of delay rules, for HTTP, `/info` and `/metrics`. Times are UTC epoch ms, durations ms."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.model.lateness import Lateness


class DelayLaneStatus(msgspec.Struct, kw_only=True):
    """A rule's lane on one partition of its source. Counters begin when this worker takes the partition over."""

    rule: str
    source: str
    partition: int
    state: Annotated[str, Meta(description="created, fenced, restoring, running, closing, closed or failed.")]
    reason: Annotated[str | None, Meta(description="Why nothing is forwarded, or why it last started again.")]
    waiting: Annotated[bool, Meta(description="Records are due and cannot be forwarded: the reason says why.")]
    position: Annotated[int | None, Meta(description="Offset of the next record to forward.")]
    lag: Annotated[int | None, Meta(description="Offsets that wait in the source, due or not; null: not known.")]
    next_due: Annotated[int | None, Meta(description="When the next record is due, as far as one was read.")]
    forwarded: Annotated[int, Meta(description="Records forwarded.")]
    dead_letters: Annotated[int, Meta(description="Records that the target does not take.")]
    expired: Annotated[int, Meta(description="Offsets that the source's retention deleted before they were due.")]
    transactions: int
    restarts: Annotated[int, Meta(description="Times it started again after a failure.")]
    lateness: Lateness


class DelayView(msgspec.Struct, frozen=True, kw_only=True):
    """A rule: every record of `source` goes to `target`, `delay` ms after its timestamp."""

    name: str
    source: str
    delay: Annotated[int, Meta(description="Milliseconds.")]
    target: str
    origin: Annotated[str, Meta(description="configuration, or topic: added while workers ran.")]
    refused: Annotated[str | None, Meta(description="Why the rule is not in force; null: it is.")] = None
    warnings: Annotated[list[str], Meta(description="What may keep it from forwarding every record in time.")] = []
