"""The dialect `spring`: second, minute, hour, day of month, month, day of week, as in Spring's CronExpression.

Day of month and day of week must both match. Day of month supports `L`, `L-n`, `nW`, `LW`; day of week `nL` and `n#k`.
Spaces separate fields; other blanks around a field, such as the line end of a file, do not count.
"""

from __future__ import annotations

import re

from . import days
from .errors import fault
from .fields import MONTHS, WEEKDAYS, Field, Grammar, Part, bits, expect_fields, is_plain, replace_name, split, trimmed
from .rule import CronRule, Times, make_rule

NAMES = {
    "@yearly": "0 0 0 1 1 *",
    "@annually": "0 0 0 1 1 *",
    "@monthly": "0 0 0 1 * *",
    "@weekly": "0 0 0 * * 0",
    "@daily": "0 0 0 * * *",
    "@midnight": "0 0 0 * * *",
    "@hourly": "0 0 * * * *",
}

_GRAMMAR = Grammar(
    "spring", wraps=False, skips_empty=False, bare_step=False, value_step_runs_on=True, limits_range_steps=False
)
_SECOND = Field("second", 0, 59)
_MINUTE = Field("minute", 0, 59)
_HOUR = Field("hour", 0, 23)
_DAY = Field("day of month", 1, 31)
_MONTH = Field("month", 1, 12, MONTHS)
_WEEKDAY = Field("day of week", 0, 7, WEEKDAYS, star_low=1, sunday_is_zero=frozenset({"start"}))


def parse(expression: str) -> list[CronRule]:
    """Parse an expression. Raises CronError."""
    text = replace_name("spring", expression, NAMES)
    fields = [field for field in map(trimmed, split(Part(text, 0), " ")) if field.text]
    expect_fields("spring", text, fields, 6, 6)
    second, minute, hour, day, month, weekday = fields
    return [
        make_rule(
            seconds=_GRAMMAR.values(second, _SECOND),
            times=Times(
                _GRAMMAR.values(minute, _MINUTE), _GRAMMAR.values(hour, _HOUR), is_plain(minute) and is_plain(hour)
            ),
            day=days.both(_days(day), _weekdays(weekday)),
            months=_GRAMMAR.values(month, _MONTH),
        )
    ]


def _days(part: Part) -> days.Days:
    if part.text == "?":
        return days.days(-1)
    special = re.search("[LW]", part.text) is not None
    return days.either(_day(element, special) for element in _GRAMMAR.elements(part))


def _day(element: Part, special: bool) -> days.Days:
    text = element.text
    if text == "L":
        return days.last()
    if text == "LW":
        return days.nearest_weekday(days.last(), sunday_at_the_end_goes_back=True)
    if text.startswith("L-"):
        before = _GRAMMAR.number(element.from_(2), "number of days before the last")
        if not 1 <= before <= 30:
            raise fault("spring", element.at + 2, f"{before} days before the last is not in 1-30")
        return days.last(before)
    if text.endswith("W"):
        nominal = _GRAMMAR.value(Part(text[:-1], element.at), _DAY)
        return days.nearest_weekday(days.day(nominal), sunday_at_the_end_goes_back=False)
    if text == "?" and special:
        return days.days(-1)
    return days.days(_GRAMMAR.values(element, _DAY))


def _weekdays(part: Part) -> days.Days:
    if part.text == "?":
        return days.weekdays(0b1111111)
    special = re.search("[Ll#]", part.text) is not None
    return days.either(_weekday(element, special) for element in _GRAMMAR.elements(part))


def _weekday(element: Part, special: bool) -> days.Days:
    text = element.text
    if text[-1] in "Ll":
        return days.last_weekday(_GRAMMAR.value(Part(text[:-1], element.at), _WEEKDAY) % 7)
    if "#" in text:
        name = text.partition("#")[0]
        weekday = _GRAMMAR.value(Part(name, element.at), _WEEKDAY) % 7
        ordinal = element.from_(len(name) + 1)
        nth = _GRAMMAR.number(ordinal, "number after #")
        if nth < 1:
            raise fault("spring", ordinal.at, "the number after # is not positive")
        return days.nth_weekday(weekday, nth)
    if text == "?" and special:
        return days.weekdays(0b1111111)
    return days.weekdays(bits(value % 7 for value in _GRAMMAR.sequence(element, _WEEKDAY)))
