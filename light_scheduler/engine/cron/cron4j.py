"""The dialect `cron4j`: minute, hour, day of month, month, day of week; alternatives are separated by `|`.

Day of month and day of week must both match. `L` is the last day of the month, as a value or as the end of a range.
"""

from __future__ import annotations

from . import days
from .errors import fault
from .fields import MONTHS, WEEKDAYS, Field, Grammar, Part, expect_fields, is_plain, split
from .rule import CronRule, Times, make_rule

_GRAMMAR = Grammar(
    "cron4j", wraps=True, skips_empty=True, bare_step=False, value_step_runs_on=False, limits_range_steps=False
)
_LAST = 32
_MINUTE = Field("minute", 0, 59)
_HOUR = Field("hour", 0, 23)
_DAY = Field("day of month", 1, 31, {"L": _LAST})
_MONTH = Field("month", 1, 12, MONTHS)
_WEEKDAY = Field("day of week", 0, 7, WEEKDAYS, sunday_is_zero=frozenset({"single", "start", "end"}))
_ZERO_TO_SIX = 0b1111111


def parse(expression: str) -> list[CronRule]:
    """Parse an expression to a rule for each alternative. Raises CronError."""
    alternatives = split(Part(expression, 0), "|")
    if not alternatives:
        raise fault("cron4j", 0, "it is empty")
    return [_parse_alternative(alternative) for alternative in alternatives]


def _parse_alternative(alternative: Part) -> CronRule:
    fields = split(alternative, " \t")
    expect_fields("cron4j", " " * (alternative.at + len(alternative.text)), fields, 5, 5)
    minute, hour, day, month, weekday = fields
    return make_rule(
        times=Times(
            _GRAMMAR.values(minute, _MINUTE), _GRAMMAR.values(hour, _HOUR), is_plain(minute) and is_plain(hour)
        ),
        # Drop the 7 of ranges and steps, which is no day: Sunday is 0.
        day=days.both(_days(day), days.weekdays(_GRAMMAR.values(weekday, _WEEKDAY) & _ZERO_TO_SIX)),
        months=_GRAMMAR.values(month, _MONTH),
    )


def _days(part: Part) -> days.Days:
    values = _GRAMMAR.values(part, _DAY)
    return days.either((days.days(values), days.last())) if values >> _LAST & 1 else days.days(values)
