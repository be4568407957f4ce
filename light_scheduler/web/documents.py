"""The JSON documents of the HTTP API: the one source of their validation and of OpenAPI's schemas.

Times are UTC epoch ms, durations ms. Bytes are text where that loses nothing, base64 otherwise.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from light_scheduler.delays import DelayLaneStatus, DelayView
from light_scheduler.lanes.status import LaneStatus, TargetStatus
from light_scheduler.model import (
    NEVER,
    NO_BOUNDS,
    Acknowledgement,
    Awaited,
    Cron,
    Entry,
    FixedDelay,
    FixedRate,
    Once,
    Schedule,
    Trigger,
    firing_id,
)
from light_scheduler.tables.status import StandbyStatus
from light_scheduler.tables.views import State, state_of


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes in JSON: exactly one of the two is there."""

    text: Annotated[str, Meta(description="The bytes, if they are UTF-8.")] | UnsetType = UNSET
    base64: Annotated[str, Meta(description="The bytes, if they are not UTF-8.")] | UnsetType = UNSET

    @classmethod
    def of(cls, value: bytes) -> Content:
        """Show bytes as text where that loses nothing."""
        try:
            return cls(text=value.decode())
        except UnicodeDecodeError:
            return cls(base64=b64encode(value).decode())


class BackoffView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Growing intervals: either given one by one, or as a rule."""

    intervals: Annotated[list[int], Meta(description="Each interval, ms.")] | UnsetType = UNSET
    initial: Annotated[int, Meta(description="The first interval, ms.")] | UnsetType = UNSET
    factor: Annotated[float, Meta(description="How much longer each interval is.")] | UnsetType = UNSET
    max: Annotated[int, Meta(description="The longest interval, ms.")] | UnsetType = UNSET
    attempts: Annotated[int, Meta(description="How many attempts there are; absent: no end.")] | UnsetType = UNSET
    jitter: Annotated[float, Meta(description="Share of an interval by which it may be longer.")] | UnsetType = UNSET


class TriggerView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time rule, as the JSON form of a command writes it."""

    at: Annotated[int, Meta(description="One-shot: the instant, UTC epoch ms.")] | UnsetType = UNSET
    every: Annotated[int, Meta(description="Series: from one firing to the next, ms.")] | UnsetType = UNSET
    mode: Annotated[str, Meta(description="How every counts: fixed-rate or fixed-delay.")] | UnsetType = UNSET
    cron: Annotated[str, Meta(description="Series: the cron expression.")] | UnsetType = UNSET
    cron_dialect: Annotated[str, Meta(description="How cron is written.")] | UnsetType = UNSET
    timezone: Annotated[str, Meta(description="IANA time zone of cron.")] | UnsetType = UNSET
    backoff: Annotated[BackoffView, Meta(description="Series: growing intervals.")] | UnsetType = UNSET
    start: Annotated[int, Meta(description="A series does not fire before it, UTC epoch ms.")] | UnsetType = UNSET
    end: Annotated[int, Meta(description="A series does not fire after it, UTC epoch ms.")] | UnsetType = UNSET
    max_firings: Annotated[int, Meta(description="A series fires no oftener than that.")] | UnsetType = UNSET
    jitter: Annotated[int, Meta(description="A firing is due later by that at most, ms.")] | UnsetType = UNSET
    window: Annotated[int, Meta(description="A firing comes that long after due at most, ms.")] | UnsetType = UNSET


class AcknowledgementView(msgspec.Struct, frozen=True, kw_only=True):
    """How firings are to be completed."""

    timeout: Annotated[int, Meta(description="A firing that is not completed comes again after it, ms.")]
    max_attempts: Annotated[int, Meta(description="How often a firing is delivered at most.")]
    overlap: Annotated[str, Meta(description="What becomes of the next firing meanwhile: allow, skip or queue.")]


class AwaitedView(msgspec.Struct, frozen=True, kw_only=True):
    """A firing that was delivered and is not completed."""

    firing_id: str
    attempt: int
    fired_at: Annotated[int, Meta(description="When it was delivered last, UTC epoch ms.")]
    until: Annotated[int | None, Meta(description="When it is delivered again, UTC epoch ms; null: never.")]


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """Where the firing goes."""

    topic: str
    key: Annotated[str | None, Meta(description="The key as text; null if there is none, or if it is not UTF-8.")]
    key_base64: Annotated[str, Meta(description="The key, only if it is not UTF-8.")] | UnsetType = UNSET
    partition: Annotated[int | None, Meta(description="The partition asked for; null: decided by the key.")]


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """The command record that defined the schedule."""

    topic: str
    partition: int
    offset: int


class ScheduleSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A pending schedule in a list."""

    tenant: str
    id: str
    version: Annotated[int, Meta(description="1 for the first definition, one more for each replacement.")]
    state: State
    due: Annotated[
        int | None,
        Meta(description="When its next firing is due, UTC epoch ms; null while that is open: paused, or awaiting."),
    ]
    sequence: Annotated[int, Meta(description="Number of its next firing, from 1.")]
    attempt: Annotated[int, Meta(description="Attempt of its next firing, from 1.")]
    trigger: TriggerView
    target: TargetView
    labels: dict[str, str]
    priority: Annotated[int, Meta(description="0 (first) to 255 (last) among those due in the same instant.")]
    ttl: Annotated[int | None, Meta(description="How long after due it may still be delivered, ms; null: for ever.")]
    source: SourceView
    accepted_at: Annotated[int, Meta(description="When this version was accepted, UTC epoch ms.")]
    payload_bytes: Annotated[int | None, Meta(description="Size of the payload; null if the payload is null.")]
    misfire: Annotated[str, Meta(description="What becomes of a series' firings that were missed.")]
    misfire_grace: Annotated[int, Meta(description="How late a firing may be before it counts as missed, ms.")]
    acknowledgement: Annotated[AcknowledgementView | None, Meta(description="null: firings are not completed.")]
    awaiting: Annotated[list[AwaitedView], Meta(description="Firings that were delivered and are not completed.")]


class HeaderView(msgspec.Struct, frozen=True):
    """A header of the user's."""

    name: str
    value: Content | None


class ScheduleDetail(ScheduleSummary, frozen=True, kw_only=True):
    """A pending schedule with what it will deliver."""

    headers: Annotated[list[HeaderView], Meta(description="The user's headers in order; names may repeat.")]
    payload: Annotated[Content | None, Meta(description="null is a null value: a tombstone for the target topic.")]


def summary(entry: Entry, topic: str) -> ScheduleSummary:
    """Show a schedule of the commands topic `topic` as a row of a list."""
    schedule, progress, target = entry.schedule, entry.progress, entry.schedule.target
    key = None if target.key is None else Content.of(target.key)
    return ScheduleSummary(
        tenant=schedule.tenant,
        id=schedule.id,
        version=schedule.version,
        state=state_of(entry),
        due=progress.next_due,
        sequence=progress.sequence,
        attempt=progress.attempt,
        trigger=_trigger(schedule),
        target=TargetView(
            topic=target.topic,
            key=None if key is None or key.text is UNSET else key.text,
            key_base64=UNSET if key is None else key.base64,
            partition=target.partition,
        ),
        labels=schedule.labels or {},
        priority=schedule.priority,
        ttl=schedule.ttl,
        source=SourceView(topic=topic, partition=schedule.source_partition, offset=schedule.source_offset),
        accepted_at=schedule.accepted_at,
        payload_bytes=None if schedule.payload is None else len(schedule.payload),
        misfire=(schedule.bounds or NO_BOUNDS).misfire,
        misfire_grace=(schedule.bounds or NO_BOUNDS).misfire_grace,
        acknowledgement=_acknowledgement(schedule.acknowledgement),
        awaiting=[_awaited(schedule.id, each) for each in progress.awaited],
    )


def _trigger(schedule: Schedule) -> TriggerView:
    bounds = schedule.bounds or NO_BOUNDS
    return TriggerView(
        **_rule(schedule.trigger),
        start=_given(bounds.start),
        end=_given(bounds.end),
        max_firings=_given(bounds.max_firings),
        jitter=bounds.jitter or UNSET,
        window=bounds.window or UNSET,
    )


def _rule(trigger: Trigger) -> dict[str, Any]:
    if isinstance(trigger, Once):
        return {"at": trigger.at}
    if isinstance(trigger, FixedRate):
        return {"every": trigger.interval, "mode": "fixed-rate"}
    if isinstance(trigger, FixedDelay):
        return {"every": trigger.delay, "mode": "fixed-delay"}
    if isinstance(trigger, Cron):
        return {"cron": trigger.expression, "cron_dialect": trigger.dialect, "timezone": trigger.timezone}
    if trigger.intervals:
        return {"backoff": BackoffView(intervals=list(trigger.intervals))}
    return {
        "backoff": BackoffView(
            initial=trigger.initial,
            factor=trigger.factor,
            max=_given(trigger.longest),
            attempts=_given(trigger.attempts),
            jitter=trigger.spread or UNSET,
        )
    }


def _given(value: int | None) -> int | UnsetType:
    return UNSET if value is None else value


def _acknowledgement(asked: Acknowledgement | None) -> AcknowledgementView | None:
    if asked is None:
        return None
    return AcknowledgementView(timeout=asked.timeout, max_attempts=asked.max_attempts, overlap=asked.overlap)


def _awaited(id: str, each: Awaited) -> AwaitedView:
    return AwaitedView(
        firing_id=firing_id(id, each.due),
        attempt=each.attempt,
        fired_at=each.fired_at,
        until=None if each.until == NEVER else each.until,
    )


def detail(entry: Entry, topic: str) -> ScheduleDetail:
    """Show a schedule of the commands topic `topic` in full."""
    schedule = entry.schedule
    return ScheduleDetail(
        **msgspec.structs.asdict(summary(entry, topic)),
        headers=[HeaderView(name, None if value is None else Content.of(value)) for name, value in schedule.headers],
        payload=None if schedule.payload is None else Content.of(schedule.payload),
    )


class SchedulePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list. It may be shorter than the limit, even empty, and still have a successor: follow the cursor."""

    schedules: list[ScheduleSummary]
    next_cursor: Annotated[str | None, Meta(description="Ask for the next page with it; null: this is the last one.")]
    total: Annotated[int | None, Meta(description="All that match, if that is known without reading further.")]


class PreviewDocument(msgspec.Struct, frozen=True):
    """When a schedule would fire. Fewer than were asked for: it would not fire after that."""

    next: Annotated[list[int], Meta(description="Due times, UTC epoch ms.")]


class DelayBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A delay rule as it is put."""

    source: Annotated[str, Meta(description="The topic that is read.")]
    delay: Annotated[str | int, Meta(description="Milliseconds, or 250ms, 90s, 15m, 2h, 7d, PT15M.")]
    target: Annotated[str, Meta(description="The topic that each record goes to, that long after its timestamp.")]


class DelayList(msgspec.Struct, frozen=True, kw_only=True):
    """All delay rules, and what the workers make of them."""

    delays: list[DelayView]
    lanes: Annotated[
        list[DelayLaneStatus], Meta(description="Rules at work on partitions, of all workers that answered.")
    ]
    unanswered: Annotated[list[str], Meta(description="Workers that did not answer: their lanes are not in the list.")]


class LiveDocument(msgspec.Struct, frozen=True):
    """The process answers."""

    status: str = "live"


class ReadyDocument(msgspec.Struct, frozen=True):
    """Every partition of this worker runs."""

    status: str = "ready"


class InfoDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What this worker is, what it runs, and who runs the rest."""

    version: str
    app_id: str
    url: Annotated[str, Meta(description="Where other workers reach this one.")]
    time: Annotated[int, Meta(description="This worker's clock, UTC epoch ms.")]
    commands_topics: dict[str, Annotated[str, Meta(description="The topic's dialect.")]]
    lanes: list[LaneStatus]
    standbys: Annotated[list[StandbyStatus], Meta(description="Warm copies of other workers' partitions.")]
    targets: Annotated[list[TargetStatus], Meta(description="Target topics that cannot be written to just now.")]
    delays: Annotated[list[DelayLaneStatus], Meta(description="Delay rules at work on this worker's partitions.")]
    peers: Annotated[
        dict[str, dict[str, list[int]]], Meta(description="Worker -> commands topic -> partitions, this one included.")
    ]
