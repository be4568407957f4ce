"""Triggers: the time rule of a schedule. Instants are UTC epoch ms, durations ms.

Every trigger is a tagged value, so that a stored union of them can grow without changing what is stored already.
"""

from __future__ import annotations

from typing import Literal

import msgspec

LATEST_INSTANT = 253_402_300_799_999
"""The last ms of the year 9999: no instant lies after it."""

NEVER = LATEST_INSTANT + 1
"""Stands for an instant that does not come, and sorts after all that do."""

CronDialect = Literal["unix", "cron4j", "quartz", "spring"]


class Once(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="once", gc=False):
    """Fires one time, at an instant.

    `late` tells that the instant had passed when the command was recorded, and that the sender wants it to fire all the
    same: then no lookback leaves it out. Commands leave it out.
    """

    at: int
    late: bool = False


class After(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="after", gc=False):
    """Fires one time, a while after the command was recorded. 0 is "now".

    Commands carry it; a schedule holds the `Once` it resolves to.
    """

    delay: int


class FixedRate(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="every", gc=False):
    """Fires at `anchor + k * interval`, for all whole k: from start to start, without drift.

    A command leaves the anchor out (None) unless it gives a start; a schedule always has one.
    """

    interval: int
    anchor: int | None = None


class FixedDelay(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="delay", gc=False):
    """Fires, waits for the firing's completion, and fires again a while after it: from end to start."""

    delay: int


class Cron(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="cron", gc=False):
    """Fires when the wall clock of a time zone (IANA) matches an expression of a dialect."""

    expression: str
    dialect: CronDialect = "unix"
    timezone: str = "UTC"


class Backoff(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="backoff", gc=False):
    """Fires at growing intervals until it is completed.

    Either `intervals` are given, one for each attempt, or the n-th interval is `initial * factor ** (n - 1)`, at most
    `longest`, for `attempts` attempts (None: without end). `spread`, of 0 to 1, is the share of an interval by which
    it may be longer.
    """

    intervals: tuple[int, ...] = ()
    initial: int = 0
    factor: float = 2.0
    longest: int | None = None
    attempts: int | None = None
    spread: float = 0.0


NOW = After(0)

Series = FixedRate | FixedDelay | Cron | Backoff
"""Triggers that may fire more than once."""

Trigger = Once | FixedRate | FixedDelay | Cron | Backoff
"""A schedule's trigger."""

Timing = Once | After | FixedRate | FixedDelay | Cron | Backoff
"""A trigger as a command may give it: `After` becomes `Once` on arrival."""
