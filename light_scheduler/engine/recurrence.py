"""Computes when a trigger fires next. Instants are UTC epoch ms.

These are planned times. Other modules handle jitter, misfires and completions.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal, localcontext
from functools import lru_cache

from light_scheduler.model import (
    LATEST_INSTANT,
    NEVER,
    Backoff,
    Bounds,
    Cron,
    CronDialect,
    FixedDelay,
    FixedRate,
    Once,
    Schedule,
    Series,
    Trigger,
)

from .cron import compile_cron
from .spread import offset_of

_EXACTLY = Context(prec=60, traps=[])
"""For powers of factors: a product that is a whole number of ms is exact, while floats can be just below it."""


def first_planned(trigger: Series, bounds: Bounds, accepted: int, tenant: str, id: str) -> int | None:
    """Return the first firing of a series with this id that is accepted at an instant; None if it never fires.

    It is at the series' start or later. A series without a start, or whose start has passed, fires only after it was
    accepted, since firings before that were not missed.
    """
    start = bounds.start
    from_start = start is not None and start >= accepted
    if isinstance(trigger, FixedRate):
        first = start if from_start else _at_rate(trigger, accepted)
    elif isinstance(trigger, FixedDelay):
        first = start if from_start else accepted + (trigger.delay if start is None else 0)
    elif isinstance(trigger, Cron):
        first = _matching(trigger, start - 1 if start is not None and from_start else accepted)
    else:
        first = _attempt(trigger, start if start is not None and from_start else accepted, 1, tenant, id)
    return within(bounds, first)


def next_planned(schedule: Schedule, planned: int, attempt: int) -> int | None:
    """Return the planned time of the firing after `planned`; None if that was the last one.

    NEVER means that the next firing is planned later, after this one is completed, as in fixed-delay series.
    """
    trigger = schedule.trigger
    if isinstance(trigger, Once):
        return None
    if isinstance(trigger, FixedDelay):
        return NEVER
    if isinstance(trigger, FixedRate | Cron):
        following = next_of(trigger, planned)
    elif is_last_attempt(trigger, attempt):
        return None
    else:
        following = _attempt(trigger, planned, attempt + 1, schedule.tenant, schedule.id)
    return within(schedule.bounds, following)


def next_of(trigger: FixedRate | Cron, after: int) -> int | None:
    """Return the first firing of a trigger after an instant, ignoring bounds; None if there is none."""
    return _at_rate(trigger, after) if isinstance(trigger, FixedRate) else _matching(trigger, after)


def times_between(trigger: Cron, after: int, until: int) -> int:
    """Return the number of times of an expression after `after`, and up to `until`."""
    return compile_cron(trigger.expression, trigger.dialect, trigger.timezone).count_between(after, until)


def is_planned(trigger: Trigger, instant: int) -> bool:
    """Return whether a trigger has a time at an instant, ignoring bounds. Always False for an interval of 1 ms."""
    if isinstance(trigger, Cron):
        return _matching(trigger, instant - 1) == instant
    if not isinstance(trigger, FixedRate) or trigger.interval == 1:
        return False
    return (instant - (trigger.anchor or 0)) % trigger.interval == 0


def within(bounds: Bounds | None, instant: int | None) -> int | None:
    """Return an instant if a series may fire then, otherwise None."""
    if instant is None or instant > LATEST_INSTANT:
        return None
    return None if bounds is not None and bounds.end is not None and instant > bounds.end else instant


def anchored(trigger: Series, bounds: Bounds, accepted: int) -> Series:
    """Return a trigger as stored in a schedule: a fixed rate is anchored at its start, or at `accepted`."""
    if isinstance(trigger, FixedRate) and trigger.anchor is None:
        return FixedRate(trigger.interval, accepted if bounds.start is None else bounds.start)
    return trigger


def backoff_interval(trigger: Backoff, attempt: int) -> int:
    """Return the interval (ms) before an attempt, which is counted from 1."""
    if trigger.intervals:
        return trigger.intervals[attempt - 1]
    longest = LATEST_INSTANT if trigger.longest is None else trigger.longest
    with localcontext(_EXACTLY):
        interval = trigger.initial * Decimal(str(trigger.factor)) ** (attempt - 1)
        return int(min(interval, Decimal(longest)).to_integral_value(ROUND_CEILING))


def is_last_attempt(trigger: Backoff, attempt: int) -> bool:
    """Return whether an attempt is the last one."""
    attempts = len(trigger.intervals) or trigger.attempts
    return attempts is not None and attempt >= attempts


def _attempt(trigger: Backoff, before: int, attempt: int, tenant: str, id: str) -> int:
    interval = backoff_interval(trigger, attempt)
    return before + interval + offset_of("backoff", tenant, id, before, int(interval * trigger.spread))


def _at_rate(trigger: FixedRate, after: int) -> int:
    # Count from the anchor each time, so that errors do not accumulate.
    anchor = after if trigger.anchor is None else trigger.anchor
    return anchor + ((after - anchor) // trigger.interval + 1) * trigger.interval


def _matching(trigger: Cron, after: int) -> int | None:
    return _cron_after(trigger.expression, trigger.dialect, trigger.timezone, after)


@lru_cache(maxsize=10_000)
def _cron_after(expression: str, dialect: CronDialect, timezone: str, after: int) -> int | None:
    """Return the first time of an expression after an instant. Cached, since many schedules have both in common."""
    return compile_cron(expression, dialect, timezone).next_after(after)
