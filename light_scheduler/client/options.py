"""The arguments of the client's calls."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, Literal, TypedDict
from zoneinfo import ZoneInfo

from light_scheduler.model import CronDialect, Misfire, OnConflict, Overlap, Timing


class _Sentinel(Enum):
    SAME_AS_KEY = "same as key"
    FROM_CONTENT = "from content"


SAME_AS_KEY: Final = _Sentinel.SAME_AS_KEY
"""As `target_key`: the message's key is the entity key."""

FROM_CONTENT: Final = _Sentinel.FROM_CONTENT
"""As `id`: derive it from all other arguments, so that repeating a request creates one schedule."""

Key = str | bytes
"""A record's key. Text is encoded as UTF-8."""

Payload = Any
"""Bytes, None for a tombstone, or a value that the client's serializer accepts."""

Id = str | Literal[_Sentinel.FROM_CONTENT] | None
TargetKey = Key | Literal[_Sentinel.SAME_AS_KEY] | None

Instant = datetime | int | str
"""An aware datetime, UTC epoch ms, or text in the format of the header `schedule-at`."""

Span = timedelta | int | str
"""A timedelta, ms, or text such as `15m`."""

When = datetime | timedelta | int | str
"""An instant (aware datetime, UTC epoch ms, or RFC 3339 text) or a delay (timedelta, or text such as `15m`)."""

UserHeaders = Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]]


class TimeRule(TypedDict, total=False):
    """When a schedule fires: one trigger, its bounds, and how late firings are handled. Without a trigger: now.

    - `trigger`: the trigger as a value, such as `Cron("0 9 * * 1-5", timezone="Europe/Prague")`.
    - `at` or `after`: fire once.
    - `every` with `mode`: a fixed rate, or a fixed delay after each completion.
    - `cron` with `cron_dialect` and `timezone`.
    - `backoff`: intervals, or text such as `initial=5s factor=2 max=1h`.
    - `start`, `end`, `max_firings`: bounds of a series.
    - `jitter`: maximum delay that is added to each firing. `window`: spread firings over this time after due.
    - `misfire`: what to do with missed firings, which are those later than `misfire_grace`.
    - `on_past`: if `at` has passed: "fire" (default), "reject", or fire only within this duration.
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
    """The arguments of a schedule besides its id and payload.

    - `topic`: topic of the message. Default: the default target of the tenant. Without one, the scheduler rejects the
      command.
    - `key`: entity key. Commands with one key are carried out in order, so later commands need the same key. Default:
      the id.
    - `target_key`: key of the message. Default: `key`. None: a null key.
    - `ttl`: do not deliver the message later than this after due.
    - `paused`: do not fire until the schedule is resumed.
    - `priority`: order among firings that are due at the same instant, 0 (first) to 255. Default: 100.
    - `ack_timeout`, `max_attempts`: deliver a firing again until it is completed. `overlap`: what to do if the next
      firing is due before that.
    """

    topic: str | None
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
    """A request of `schedule_many`.

    - `id`: id within the tenant. Default: the key; without a key, a new time-ordered id.
    - `payload`: payload of the message. Default: empty. None: a tombstone.
    """

    id: Id
    payload: Payload


Requests = Iterable[ScheduleRequest] | AsyncIterable[ScheduleRequest]


class CommandOptions(TypedDict, total=False):
    """The arguments of commands for one schedule.

    - `key`: the key that the schedule was created with. Default: the id.
    - `expected_version`: change the schedule only if it has this version.
    - `timeout`: seconds to wait for the broker and the answer together.
    - `raise_on_refusal`: False returns `rejected` and `conflict` as results.
    """

    key: Key | None
    expected_version: int | None
    timeout: float
    raise_on_refusal: bool


class ManyOptions(TypedDict, total=False):
    """The schedules that a bulk command selects. Give at least one of the first three arguments.

    - `id_prefix`: schedules whose id begins with this text. An asterisk is part of the text: `order-`, not `order-*`.
    - `labels`: schedules with all these labels.
    - `everything`: True selects all schedules of the tenant.
    - `timeout`: seconds to wait for the broker and the answer together.
    - `raise_on_refusal`: False returns `rejected` as a result.
    """

    id_prefix: str | None
    labels: Mapping[str, str] | str | None
    everything: bool | None
    timeout: float
    raise_on_refusal: bool


class RescheduleManyOptions(TimeRule, ManyOptions, total=False):
    """The schedules that a bulk command selects, and their new trigger."""
