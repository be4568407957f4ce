"""What can be asked of the client, argument by argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Final, Literal, Required, TypedDict
from zoneinfo import ZoneInfo

from light_scheduler.model import CronDialect, Misfire, OnConflict, Overlap, Timing


class _Sentinel(Enum):
    SAME_AS_KEY = "same as key"
    FROM_CONTENT = "from content"


SAME_AS_KEY: Final = _Sentinel.SAME_AS_KEY
"""`target_key` of a message whose key is the entity key."""

FROM_CONTENT: Final = _Sentinel.FROM_CONTENT
"""`id` that is derived from all that is asked for: the same request twice is the same schedule."""

Key = str | bytes
"""A record's key; text counts as its UTF-8."""

Id = str | Literal[_Sentinel.FROM_CONTENT] | None
TargetKey = Key | Literal[_Sentinel.SAME_AS_KEY] | None

Instant = datetime | int | str
"""An aware datetime, UTC epoch ms, or text as the header `schedule-at` takes it."""

Span = timedelta | int | str
"""A timedelta, ms, or text such as `15m`."""

UserHeaders = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


class TimeRule(TypedDict, total=False):
    """When: one trigger, and what bounds and spreads its firings. No trigger at all: now.

    `trigger`: the trigger as a value, such as `Cron("0 9 * * 1-5", timezone="Europe/Prague")`, in place of the next.
    `at` or `after`: fires once. `every` with `mode`: at a fixed rate, or with a fixed delay after each completion.
    `cron` with `cron_dialect` and `timezone`. `backoff`: intervals, or text such as `initial=5s factor=2 max=1h`.
    `start`, `end`, `max_firings`: bounds of a series. `jitter`: due later by that at most; `window`: delivered within
    it after due. `misfire`: what becomes of missed firings, which are those later than `misfire_grace`.
    `on_past`: if `at` has passed on arrival: "fire" (default), "reject", or a grace.
    """

    trigger: Timing | None
    at: Instant | None
    after: Span | None
    every: Span | None
    mode: Literal["fixed-rate", "fixed-delay"] | None
    cron: str | None
    cron_dialect: CronDialect | None
    timezone: str | ZoneInfo | None
    backoff: str | Sequence[Span] | None
    start: Instant | None
    end: Instant | None
    max_firings: int | None
    jitter: Span | None
    window: Span | None
    misfire: Misfire | None
    misfire_grace: Span | None
    on_past: Span | None


class ScheduleOptions(TimeRule, total=False):
    """What can be asked of a schedule besides its id and payload: everything but the topic is optional.

    `key`: entity key, which decides order and partition; default: the id. Later commands need the same key.
    `target_key`: key of the delivered message; default: `key`. None: a null key.
    `ttl`: not delivered later than that after due. `paused`: does not fire before it is resumed.
    `priority`: 0 (first) to 255 among what is due in the same instant; default 100.
    `ack_timeout`, `max_attempts`, `overlap`: delivered again until completed, and what becomes of the next meanwhile.
    """

    topic: Required[str]
    key: Key | None
    target_key: TargetKey
    target_partition: int | None
    target_partition_key: str | None
    headers: UserHeaders | None
    ttl: Span | None
    priority: int | None
    labels: Mapping[str, str] | str | None
    paused: bool | None
    ack_timeout: Span | None
    max_attempts: int | None
    overlap: Overlap | None
    on_conflict: OnConflict | None
    expected_version: int | None


class ScheduleRequest(ScheduleOptions, total=False):
    """One whole request, as `schedule_many` takes it.

    `id`: identity within the tenant; default: the key, or a new time-ordered id if there is no key either.
    `payload`: the message's value; default: no bytes. None: a tombstone.
    """

    id: Id
    payload: bytes | None


class CommandOptions(TypedDict, total=False):
    """What every command about a schedule that is there takes.

    `key`: the one it was scheduled with; default: the id. `expected_version`: only if it has this version.
    `timeout`: seconds for the broker's acknowledgement and the answer together. `raise_on_refusal`: False returns a
    `rejected` or `conflict` as a result.
    """

    key: Key | None
    expected_version: int | None
    timeout: float
    raise_on_refusal: bool


class ManyOptions(TypedDict, total=False):
    """Which of the tenant's schedules a bulk command is for: one of the first three has to be given.

    `id_prefix`: those whose id begins so. `labels`: those that have all of these. `everything`: True for all there are.
    `timeout`: seconds for the broker's acknowledgement and the answer together. `raise_on_refusal`: False returns a
    `rejected` as a result.
    """

    id_prefix: str
    labels: Mapping[str, str] | str | None
    everything: bool
    timeout: float
    raise_on_refusal: bool


class RescheduleManyOptions(TimeRule, ManyOptions, total=False):
    """Which schedules, and their new time rule."""
