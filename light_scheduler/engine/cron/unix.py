"""The dialect `unix`: minute, hour, day of month, month, day of week [, second [, year]].

The five fields are as in cron-utils' `CronType.UNIX`. Second and year follow, as in croniter. If both day of month and
day of week are restricted, it is enough that one of them matches; `*` and `*/1` do not restrict.
"""

from __future__ import annotations

from . import days
from .fields import MONTHS, WEEKDAYS, Field, Grammar, Part, bits, expect_fields, is_plain, replace_name, split
from .rule import ALL_YEARS, ONCE_A_MINUTE, CronRule, Times, make_rule

NAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_GRAMMAR = Grammar(
    "unix", wraps=False, skips_empty=False, bare_step=True, value_step_runs_on=True, limits_range_steps=True
)
_MINUTE = Field("minute", 0, 59, largest_step=59)
_HOUR = Field("hour", 0, 23, largest_step=23)
_DAY = Field("day of month", 1, 31, largest_step=31)
_MONTH = Field("month", 1, 12, MONTHS, largest_step=12)
_WEEKDAY = Field("day of week", 0, 7, WEEKDAYS, largest_step=7, sunday_is_zero=frozenset({"single"}))
_SECOND = Field("second", 0, 59, largest_step=59)
_YEAR = Field("year", 1970, 2099)


def parse(expression: str) -> list[CronRule]:
    """Parse an expression. Raises CronError."""
    text = replace_name("unix", expression, NAMES)
    fields = split(Part(text, 0), " \t\n\r\f\v")
    expect_fields("unix", text, fields, 5, 7)
    minute, hour, day, month, weekday = fields[:5]
    return [
        make_rule(
            times=Times(
                _GRAMMAR.values(minute, _MINUTE), _GRAMMAR.values(hour, _HOUR), is_plain(minute) and is_plain(hour)
            ),
            day=_days(day, weekday),
            months=_GRAMMAR.values(month, _MONTH),
            seconds=_GRAMMAR.values(fields[5], _SECOND) if len(fields) > 5 else ONCE_A_MINUTE,
            years=_years(fields[6]) if len(fields) > 6 else ALL_YEARS,
        )
    ]


def _days(day: Part, weekday: Part) -> days.Days:
    of_month = days.days(_GRAMMAR.values(day, _DAY))
    of_week = days.weekdays(
        bits(value % 7 for element in _GRAMMAR.elements(weekday) for value in _GRAMMAR.sequence(element, _WEEKDAY))
    )
    if _is_star(day) or _is_star(weekday):
        return days.both(of_month, of_week)
    return days.either((of_month, of_week))


def _years(year: Part) -> int:
    return ALL_YEARS if _is_star(year) else _GRAMMAR.values(year, _YEAR)


def _is_star(part: Part) -> bool:
    return part.text in ("*", "*/1")
