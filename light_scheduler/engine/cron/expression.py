"""Compiled expressions: find the next firing in a time zone, and count firings between two instants."""

from __future__ import annotations

from functools import lru_cache

from light_scheduler.model import LATEST_INSTANT

from . import cron4j, quartz, spring, unix
from .counting import TimesCount
from .daylight_saving import next_of
from .errors import CronDialect, CronError
from .rule import CronRule
from .zones import Zone, load_zone

PARSERS = {"unix": unix.parse, "cron4j": cron4j.parse, "quartz": quartz.parse, "spring": spring.parse}


class CompiledCron:
    """An expression in a time zone. Created by `compile_cron`."""

    __slots__ = ("_count", "_rules", "_zone")

    def __init__(self, rules: list[CronRule], zone: Zone) -> None:
        self._rules = rules
        self._zone = zone
        self._count: TimesCount | None = None

    def next_after(self, instant_ms: int) -> int | None:
        """Return the first firing strictly after an instant (both UTC epoch ms; firings are whole seconds).

        None if there is none until the end of the year 9999.
        """
        after = instant_ms // 1000
        if len(self._rules) == 1:
            first = next_of(self._rules[0], self._zone, after)
        else:
            candidates = [next_of(rule, self._zone, after) for rule in self._rules]
            first = min((candidate for candidate in candidates if candidate is not None), default=None)
        return None if first is None or first * 1000 > LATEST_INSTANT else first * 1000

    def count_between(self, after_ms: int, until_ms: int) -> int:
        """Return the number of firings strictly after an instant, and at or before another one (UTC epoch ms)."""
        if self._count is None:
            self._count = TimesCount(self._rules, self._zone)
        return self._count.between(after_ms // 1000, min(until_ms, LATEST_INSTANT) // 1000)


def compile_cron(expression: str, dialect: CronDialect = "unix", timezone: str = "UTC") -> CompiledCron:
    """Return a compiled expression (cached).

    Raises CronError: with `field` = `cron` and a `position` if the dialect does not allow the expression, with
    `field` = `timezone` if the time zone is unknown.
    """
    return _compile(expression, dialect, timezone)


@lru_cache(maxsize=10_000)
def _compile(expression: str, dialect: CronDialect, timezone: str) -> CompiledCron:
    parse = PARSERS.get(dialect)
    if parse is None:
        raise CronError(f"{dialect!r} is not a cron dialect: use one of {', '.join(PARSERS)}")
    return CompiledCron(parse(expression), load_zone(timezone))
