"""Compiled expressions: when they fire next in their time zone.

Where the clock skips or repeats local time, an expression is one of two kinds:

- *Fixed*: minutes and hours are plain values (`0`, `0,30`), without `*`, range or step. It runs once for each local
  time that it names: a skipped one at the first instant after the gap, a repeated one at its first pass. What comes to
  the same instant this way runs once.
- Any other follows elapsed time: it fires at every instant whose local time fits, so in both passes of a repeated
  hour, and not in a gap.

Each alternative of a cron4j expression is of its own kind. Seconds, days, months and years play no part in it.
"""

from __future__ import annotations

from functools import lru_cache

from light_scheduler.model import LATEST_INSTANT

from . import cron4j, quartz, spring, unix
from .errors import CronDialect, CronError
from .rule import CronRule
from .zones import Zone, load_zone

PARSERS = {"unix": unix.parse, "cron4j": cron4j.parse, "quartz": quartz.parse, "spring": spring.parse}

_HALF_DAY = 43_200


class CompiledCron:
    """An expression in a time zone. Made by `compile_cron`."""

    __slots__ = ("_rules", "_zone")

    def __init__(self, rules: list[CronRule], zone: Zone) -> None:
        self._rules = rules
        self._zone = zone

    def next_after(self, instant_ms: int) -> int | None:
        """Return the first firing strictly after an instant (both UTC epoch ms; firings are whole seconds).

        None if there is none up to the end of the year 9999.
        """
        after = instant_ms // 1000
        if len(self._rules) == 1:
            first = self._next(self._rules[0], after)
        else:
            candidates = [self._next(rule, after) for rule in self._rules]
            first = min((candidate for candidate in candidates if candidate is not None), default=None)
        return None if first is None or first * 1000 > LATEST_INSTANT else first * 1000

    def _next(self, rule: CronRule, after: int) -> int | None:
        return self._next_fixed(rule, after) if rule.fixed else self._next_elapsed(rule, after)

    def _next_fixed(self, rule: CronRule, after: int) -> int | None:
        zone = self._zone
        offset, is_second_pass = zone.local_at(after)
        here = after + offset
        if is_second_pass:  # what is still to come of it has run in the first
            here = zone.transition(here) + zone.offsets_of(here)[0] - 1
        wall = rule.next_wall(here + 1)
        if wall is None:
            return None
        first, second = zone.offsets_of(wall)
        return zone.transition(wall) if first < second else wall - first

    def _next_elapsed(self, rule: CronRule, after: int) -> int | None:
        zone = self._zone
        offset = zone.offset_at(after)
        wall = rule.next_wall(after + offset + 1)
        if wall is not None and wall - offset - after < _HALF_DAY:
            first, second = zone.offsets_of(wall)
            if first == offset and second <= first:
                return wall - offset  # no transition comes before it
        here = after + offset
        first, second = zone.offsets_of(here)
        if offset == first > second:
            # In the first pass: the second one starts over.
            transition = zone.transition(here)
            if wall is None or wall >= transition + first:
                again = rule.next_wall(transition + second)
                if again is not None and again < transition + first:
                    return again - second
        while wall is not None:
            first, second = zone.offsets_of(wall)
            if first < second:
                wall = rule.next_wall(zone.transition(wall) + second)
            else:
                return wall - first if wall - first > after else wall - second
        return None


def compile_cron(expression: str, dialect: CronDialect = "unix", timezone: str = "UTC") -> CompiledCron:
    """Return a compiled expression (cached).

    Raises CronError: with `field` = `cron` and a `position` for what the dialect does not allow, with `field` =
    `timezone` for a zone that is none.
    """
    return _compile(expression, dialect, timezone)


@lru_cache(maxsize=10_000)
def _compile(expression: str, dialect: CronDialect, timezone: str) -> CompiledCron:
    parse = PARSERS.get(dialect)
    if parse is None:
        raise CronError(f"{dialect!r} is not a cron dialect: use one of {', '.join(PARSERS)}")
    return CompiledCron(parse(expression), load_zone(timezone))
