"""Triggers, the time rules of schedules. Instants are UTC epoch ms, durations are ms.

Triggers are tagged, so that new kinds can be added without changing stored triggers.
"""

from __future__ import annotations

from typing import Literal

import msgspec

LATEST_INSTANT = 253_402_300_799_999
"""The last ms of the year 9999. No instant is later."""

NEVER = LATEST_INSTANT + 1
"""Stands for an instant that never comes. Sorts after all real instants."""

CronDialect = Literal["unix", "cron4j", "quartz", "spring"]


class Once(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="once", gc=False):
    """Fires once, at an instant.

    `late` means that the instant had passed when the command was recorded, and that the sender still wants it to fire:
    the lookback then does not apply. Commands do not set it.
    """

    at: int
    late: bool = False


class After(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="after", gc=False):
    """Fires once, `delay` ms after the command was recorded. 0 means now.

    Only commands have it: a schedule stores the resulting `Once`.
    """

    delay: int


class FixedRate(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="every", gc=False):
    """Fires at `anchor + k * interval`, for all integers k, without drift. The interval is from start to start.

    In a command, the anchor is None unless it has a start. A schedule always has an anchor.
    """

    interval: int
    anchor: int | None = None


class FixedDelay(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="delay", gc=False):
    """Fires, waits for completion, and fires again `delay` ms later. The delay is from end to start."""

    delay: int


class Cron(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="cron", gc=False):
    """Fires when the wall clock of an IANA time zone matches a cron expression in a dialect."""

    expression: str
    dialect: CronDialect = "unix"
    timezone: str = "UTC"


class Backoff(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, tag="backoff", gc=False):
    """Fires at growing intervals until it is completed.

    Either `intervals` has one interval for each attempt, or the n-th interval is `initial * factor ** (n - 1)`, at most
    `longest`, for `attempts` attempts (None: no limit). An interval can be longer by a share of up to `spread`, 0 to 1.
    """

    intervals: tuple[int, ...] = ()
    initial: int = 0
    factor: float = 2.0
    longest: int | None = None
    attempts: int | None = None
    spread: float = 0.0


NOW = After(0)

Series = FixedRate | FixedDelay | Cron | Backoff
"""Triggers that can fire more than once."""

Trigger = Once | FixedRate | FixedDelay | Cron | Backoff
"""A schedule's trigger."""

Timing = Once | After | FixedRate | FixedDelay | Cron | Backoff
"""A trigger in a command. `After` becomes `Once` on arrival."""
