"""The JSON documents of the HTTP API. Validation and the OpenAPI schemas both come from here.

Times are UTC epoch ms, durations ms. Bytes are text if they are UTF-8, otherwise base64.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

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
    State,
    Trigger,
    firing_id,
)


class Content(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bytes in JSON: exactly one of `text` and `base64` is there, or none if they are masked for this token."""

    text: Annotated[str, Meta(description="The bytes, if they are UTF-8.")] | UnsetType = UNSET
    base64: Annotated[str, Meta(description="The bytes, if they are not UTF-8.")] | UnsetType = UNSET
    masked: Annotated[
        bool,
        Meta(
            description="The bytes are to be shown on demand only (setting `masked_fields`); a token without the role "
            "`write` does not get them."
        ),
    ] = False

    @property
    def data(self) -> bytes:
        """The bytes; none if they are left out."""
        if self.text is not UNSET:
            return self.text.encode()
        return b64decode(self.base64 or b"")

    @classmethod
    def of(cls, value: bytes) -> Content:
        """Show bytes as text if they are UTF-8, otherwise as base64."""
        try:
            return cls(text=value.decode())
        except UnicodeDecodeError:
            return cls(base64=b64encode(value).decode())


class BackoffView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Growing intervals: a list, or a rule."""

    intervals: Annotated[list[int], Meta(description="Each interval, ms.")] | UnsetType = UNSET
    initial: Annotated[int, Meta(description="The first interval, ms.")] | UnsetType = UNSET
    factor: (
        Annotated[float, Meta(description="Factor by which each interval is longer than the one before.")] | UnsetType
    ) = UNSET
    max: Annotated[int, Meta(description="The longest interval, ms.")] | UnsetType = UNSET
    attempts: Annotated[int, Meta(description="Maximum number of attempts; absent: no limit.")] | UnsetType = UNSET
    jitter: (
        Annotated[float, Meta(description="Maximum random extension of each interval, as a part of it: 0.1 is 10 %.")]
        | UnsetType
    ) = UNSET


class TriggerView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The time rule, as the JSON form of a command writes it."""

    at: Annotated[int, Meta(description="One-shot: the instant, UTC epoch ms.")] | UnsetType = UNSET
    every: Annotated[int, Meta(description="Series: interval, ms.")] | UnsetType = UNSET
    mode: (
        Annotated[str, Meta(description="fixed-rate: from due to due. fixed-delay: from completion to due.")]
        | UnsetType
    ) = UNSET
    cron: Annotated[str, Meta(description="Series: the cron expression.")] | UnsetType = UNSET
    cron_dialect: Annotated[str, Meta(description="Syntax of the cron expression.")] | UnsetType = UNSET
    timezone: Annotated[str, Meta(description="IANA time zone of the cron expression.")] | UnsetType = UNSET
    backoff: Annotated[BackoffView, Meta(description="Series: growing intervals.")] | UnsetType = UNSET
    start: Annotated[int, Meta(description="A series does not fire before this instant, UTC epoch ms.")] | UnsetType = (
        UNSET
    )
    end: Annotated[int, Meta(description="A series does not fire after this instant, UTC epoch ms.")] | UnsetType = (
        UNSET
    )
    max_firings: Annotated[int, Meta(description="Maximum number of firings of a series.")] | UnsetType = UNSET
    jitter: Annotated[int, Meta(description="Maximum delay that is added to each firing, ms.")] | UnsetType = UNSET
    window: Annotated[int, Meta(description="Firings are spread over this time after due, ms.")] | UnsetType = UNSET


class AcknowledgementView(msgspec.Struct, frozen=True, kw_only=True):
    """How firings are to be completed."""

    timeout: Annotated[int, Meta(description="A firing that is not completed within this time is delivered again, ms.")]
    max_attempts: Annotated[int, Meta(description="Maximum number of deliveries of a firing.")]
    overlap: Annotated[
        str, Meta(description="If the next firing is due before this one is completed: allow, skip or queue.")
    ]


class AwaitedView(msgspec.Struct, frozen=True, kw_only=True):
    """A firing that was delivered and is not completed."""

    firing_id: str
    attempt: int
    fired_at: Annotated[int, Meta(description="When it was last delivered, UTC epoch ms.")]
    until: Annotated[int | None, Meta(description="When its time-out is over, UTC epoch ms; null: it has none.")]


class TargetView(msgspec.Struct, frozen=True, kw_only=True):
    """Where the firing goes."""

    topic: str
    key: Annotated[str | None, Meta(description="The key as text; null if there is none, or if it is not UTF-8.")]
    key_base64: Annotated[str, Meta(description="The key, only if it is not UTF-8.")] | UnsetType = UNSET
    partition: Annotated[
        int | None, Meta(description="Partition of the message; null: chosen by the partition key, else by the key.")
    ]
    partition_key: (
        Annotated[str, Meta(description="Chooses the partition in place of the key. Not in lists.")] | UnsetType
    ) = UNSET
    partition_key_base64: (
        Annotated[str, Meta(description="The partition key, only if it is not UTF-8.")] | UnsetType
    ) = UNSET


class SourceView(msgspec.Struct, frozen=True, kw_only=True):
    """The command record that defined the schedule."""

    topic: str
    partition: int
    offset: int


class ScheduleSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A pending schedule in a list."""

    tenant: str
    id: str
    version: Annotated[int, Meta(description="1 for the first definition. Each change of the definition adds 1.")]
    state: State
    due: Annotated[
        int | None,
        Meta(description="When the next firing is due, UTC epoch ms; null if it is paused or waits for a completion."),
    ]
    sequence: Annotated[int, Meta(description="Number of the next firing, from 1.")]
    attempt: Annotated[int, Meta(description="Attempt of the next firing, from 1.")]
    trigger: TriggerView
    target: TargetView
    labels: dict[str, str]
    priority: Annotated[
        int, Meta(description="Order among firings that are due at the same instant: 0 (first) to 255.")
    ]
    ttl: Annotated[int | None, Meta(description="How long after due the message can be delivered, ms; null: no limit.")]
    source: SourceView
    accepted_at: Annotated[int, Meta(description="When this version was accepted, UTC epoch ms.")]
    payload_bytes: Annotated[int | None, Meta(description="Size of the payload; null if the payload is null.")]
    misfire: Annotated[str, Meta(description="Misfire policy: coalesce, skip or all.")]
    misfire_grace: Annotated[int, Meta(description="How late a firing can be before it counts as missed, ms.")]
    acknowledgement: Annotated[AcknowledgementView | None, Meta(description="null: firings need no completion.")]
    awaiting: Annotated[list[AwaitedView], Meta(description="Firings that were delivered and are not completed.")]


class HeaderView(msgspec.Struct, frozen=True):
    """A header that the user gave."""

    name: str
    value: Content | None


class DecodedView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A decoded payload: exactly one of `json`, `text` and `error` is present."""

    by: Annotated[
        Literal["hook", "avro", "json"],
        Meta(description="By the setting `payload_decoder`, as Avro, or as JSON with masked fields."),
    ]
    json: Annotated[str, Meta(description="The value, as JSON.")] | UnsetType = UNSET
    text: Annotated[str, Meta(description="The text that the hook returned.")] | UnsetType = UNSET
    error: Annotated[str, Meta(description="Why it could not be decoded.")] | UnsetType = UNSET


Decoding = (
    Annotated[
        DecodedView | None,
        Meta(description="Only if `decoded` was asked for; null: there is nothing to decode, `payload` says it all."),
    ]
    | UnsetType
)


class DetailParameters(msgspec.Struct, frozen=True, kw_only=True):
    """The query string of one schedule or dead letter."""

    decoded: Annotated[bool, Meta(description="Decode the payload.")] = False


class ScheduleDetail(ScheduleSummary, frozen=True, kw_only=True):
    """A pending schedule with its payload and headers."""

    headers: Annotated[list[HeaderView], Meta(description="Headers of the message, in order. Names can repeat.")]
    payload: Annotated[Content | None, Meta(description="null: the message has a null value, a tombstone.")]
    partition: Annotated[
        int | None,
        Meta(
            description="Partition of the commands topic that it is pending in: that of `source`, unless it has been "
            "moved or imported."
        ),
    ] = None
    decoded: Decoding = UNSET
    triggered: (
        Annotated[
            list[int],
            Meta(description="Due times of firings by `trigger` that are not delivered yet, only if there are some."),
        ]
        | UnsetType
    ) = UNSET

    @property
    def place(self) -> tuple[str, int]:
        """Topic and partition in which the schedule is pending. Workers of earlier versions only give those of
        `source`."""
        return self.source.topic, self.source.partition if self.partition is None else self.partition


def summary(entry: Entry, topic: str) -> ScheduleSummary:
    """Show a schedule of the commands topic `topic` as a row of a list."""
    schedule, progress, target = entry.schedule, entry.progress, entry.schedule.target
    key = None if target.key is None else Content.of(target.key)
    return ScheduleSummary(
        tenant=schedule.tenant,
        id=schedule.id,
        version=schedule.version,
        state=progress.state,
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


def detail(entry: Entry, topic: str, partition: int) -> ScheduleDetail:
    """Show in full a schedule that is pending in a partition of the commands topic `topic`."""
    schedule = entry.schedule
    shown = summary(entry, topic)
    return ScheduleDetail(
        **{**msgspec.structs.asdict(shown), "target": _with_partition_key(shown.target, schedule.target.partition_key)},
        headers=[HeaderView(name, None if value is None else Content.of(value)) for name, value in schedule.headers],
        payload=None if schedule.payload is None else Content.of(schedule.payload),
        partition=partition,
        triggered=[*entry.progress.triggered] or UNSET,
    )


def _with_partition_key(target: TargetView, key: bytes | None) -> TargetView:
    """Add the partition key. It may be the value of a header, which not every identity may see."""
    if key is None:
        return target
    shown = Content.of(key)
    return msgspec.structs.replace(target, partition_key=shown.text, partition_key_base64=shown.base64)


class SchedulePage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list. A page can hold fewer rows than the limit, or none: follow `next_cursor` until it is null."""

    schedules: list[ScheduleSummary]
    next_cursor: Annotated[str | None, Meta(description="Cursor of the next page; null: this is the last page.")]
    total: Annotated[
        int | None,
        Meta(
            description="Number of all matches. Null if the list has more than one page and is filtered by more than "
            "target topic, partition and state."
        ),
    ]


class PreviewDocument(msgspec.Struct, frozen=True):
    """When a schedule would fire. If there are fewer than requested, it does not fire after them."""

    next: Annotated[list[int], Meta(description="Due times, UTC epoch ms.")]
