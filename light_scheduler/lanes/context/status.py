"""Status of a lane, for `/info`, `/ready` and `/metrics`. Times are UTC epoch ms, durations ms."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from light_scheduler.model.lateness import Lateness
from light_scheduler.tables.status import RestoreStatus

RULES_UNREAD = "the rules of the tenants have not been read yet"
NOT_YET_USED = "it was added: it is used when its changelog has it too, and earlier moves are over"
NO_CHANGELOG = "it was added: it is used when its changelog has it too, see `light-scheduler topics check`"
TOLD_TO_ALL = (RULES_UNREAD, NOT_YET_USED, NO_CHANGELOG)
"""Reasons for a lane not to run that reveal nothing about tenants."""


class TargetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A target topic of which all or some partitions are unavailable now. Firings for them wait."""

    topic: str
    partitions: Annotated[list[int], Meta(description="Those that are unavailable; empty: the whole topic.")]
    unavailable_since: Annotated[
        int, Meta(description="When this worker noticed, UTC epoch ms. A break of less than 5 s ends no outage.")
    ]
    waiting: Annotated[
        int, Meta(description="Firings of this worker's lanes that are due and wait; some may be cancelled meanwhile.")
    ]
    reason: str


class ProbeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the probes of a partition since this worker took it over."""

    successes: Annotated[int, Meta(description="Probes that came back.")] = 0
    failures: Annotated[int, Meta(description="Probes that were not sent, or not back in time.")] = 0
    last_success: Annotated[int | None, Meta(description="When a probe last came back, UTC epoch ms.")] = None
    latency_ms: Annotated[
        int | None,
        Meta(
            description="Time that the last one took: from sending to the commit that stored it, and from its due time "
            "until its firing was read."
        ),
    ] = None
    last_failure: Annotated[int | None, Meta(description="When a probe last failed, UTC epoch ms.")] = None
    reason: Annotated[str | None, Meta(description="Why it failed.")] = None


class LaneStatus(msgspec.Struct, kw_only=True):
    """The status of a lane. Counters start when this worker takes over the partition."""

    topic: Annotated[str, Meta(description="The commands topic.")]
    partition: int
    state: Annotated[str, Meta(description="created, fenced, restoring, running, closing, closed or failed.")]
    reason: Annotated[
        str | None, Meta(description="Why it is not running, or last started again, or what its commands wait for.")
    ] = None
    restore: Annotated[
        RestoreStatus | None, Meta(description="How its state was brought up to date, or is being; null: not yet.")
    ] = None
    pending: Annotated[int, Meta(description="Schedules held, of all tenants.")] = 0
    position: Annotated[int | None, Meta(description="Offset of the next command to read.")] = None
    lag: Annotated[
        int | None, Meta(description="Offsets with or after a command that waits to be read; null: not known.")
    ] = None
    oldest_due: Annotated[int | None, Meta(description="Due time of the next pending firing, UTC epoch ms.")] = None
    outcomes: Annotated[dict[str, int], Meta(description="Commands carried out, by outcome.")] = {}
    firings: Annotated[int, Meta(description="Firings delivered.")] = 0
    expired: Annotated[int, Meta(description="Firings not delivered, because their time to live was over.")] = 0
    dead_letters: Annotated[int, Meta(description="Commands and firings that became dead letters.")] = 0
    throttled: Annotated[int, Meta(description="Firings delivered that had waited for a rate cap.")] = 0
    over_quota: Annotated[int, Meta(description="Commands rejected for a quota of their tenant.")] = 0
    delayed: Annotated[int, Meta(description="Commands delayed for a quota of their tenant.")] = 0
    waiting: Annotated[int, Meta(description="Commands that are delayed and wait, as of the last transaction.")] = 0
    lost_results: Annotated[int, Meta(description="Answers whose reply topic could not take them.")] = 0
    forwarded: Annotated[int, Meta(description="Commands passed on to the partition of their key.")] = 0
    unsent: Annotated[
        int,
        Meta(
            description="Commands, and reports of bulk commands, that wait for another partition of the commands topic "
            "that cannot be written to, as of the last transaction."
        ),
    ] = 0
    dropped: Annotated[
        int,
        Meta(
            description="Reports, copies of bulk commands and other records of workers that waited for another "
            "partition of the commands topic and could not be sent any more."
        ),
    ] = 0
    partitions: Annotated[
        int | None, Meta(description="Number of partitions that keys are distributed over; null: not known yet.")
    ] = None
    settled: Annotated[
        bool, Meta(description="False while schedules move since partitions were added: from here, or to here.")
    ] = True
    moved: Annotated[int, Meta(description="Schedules handed over to partitions that were added.")] = 0
    adopted: Annotated[int, Meta(description="Schedules taken over from other partitions.")] = 0
    relayed: Annotated[int, Meta(description="Commands passed on while schedules move.")] = 0
    unreported: Annotated[
        int, Meta(description="Bulk commands that ended though partitions had not reported for a day.")
    ] = 0
    transactions: Annotated[int, Meta(description="Transactions committed.")] = 0
    staged: Annotated[int, Meta(description="Transactions prepared ahead of time and committed at it.")] = 0
    unstaged: Annotated[int, Meta(description="Transactions prepared ahead of time and dropped for a command.")] = 0
    clock_skew: Annotated[
        int | None,
        Meta(description="How far this worker's clock is ahead of the broker's at least, ms; null: not known."),
    ] = None
    rebuilds: Annotated[int, Meta(description="Times that its local copy was deleted and rebuilt.")] = 0
    restarts: Annotated[int, Meta(description="Times the lane started again after a failure.")] = 0
    jumps: Annotated[
        int, Meta(description="Times that reading could not continue at its position, because the log had changed.")
    ] = 0
    expired_commands: Annotated[
        int, Meta(description="Offsets of commands that were deleted before they were read.")
    ] = 0
    jump: Annotated[str | None, Meta(description="What was wrong with the log when that happened last.")] = None
    lateness: Lateness = msgspec.field(default_factory=Lateness)
    probe: Annotated[ProbeStatus | None, Meta(description="Its probes; null: none was sent.")] = None
