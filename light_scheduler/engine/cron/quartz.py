"""The dialect `quartz`: second, minute, hour, day of month, month, day of week [, year]; 1 is Sunday.

Exactly one of day of month and day of week must be `?`. Day of month supports `L`, `L-n`, `nW`, `LW`, `L-nW`; day of
week `L` (Saturday), `nL` and `n#k`. As in Quartz, a step after a name is ignored: `MON-FRI/2` is `MON-FRI`. Spaces and
tabs separate fields; line ends around a field, such as that of a file, do not count.
"""

from __future__ import annotations

import re
from dataclasses import replace

from . import days
from .errors import fault
from .fields import MONTHS, WEEKDAYS, Field, Grammar, Part, bits, expect_fields, is_plain, split, trimmed
from .rule import ALL_YEARS, CronRule, Times, make_rule

_GRAMMAR = Grammar(
    "quartz", wraps=True, skips_empty=True, bare_step=True, value_step_runs_on=True, limits_range_steps=False
)
_YEAR_GRAMMAR = replace(_GRAMMAR, wraps=False)
_SECOND = Field("second", 0, 59, largest_step=59)
_MINUTE = Field("minute", 0, 59, largest_step=59)
_HOUR = Field("hour", 0, 23, largest_step=23)
_DAY = Field("day of month", 1, 31, largest_step=31)
_MONTH = Field("month", 1, 12, MONTHS, largest_step=12)
_WEEKDAY = Field("day of week", 1, 7, {name: number % 7 + 1 for name, number in WEEKDAYS.items()}, largest_step=7)
_YEAR = Field("year", 1970, 9999)

_STEP_AFTER_NAME = re.compile(r"([A-Z]{3}(?:-[A-Z]{3})?)/[0-9]+")
_NAME_AND_NUMBER = re.compile(r"[A-Z]+-[0-9]|[0-9]+-[A-Z]")


def parse(expression: str) -> list[CronRule]:
    """Parse an expression. Raises CronError."""
    fields = list(map(trimmed, split(Part(expression.upper(), 0), " \t")))
    expect_fields("quartz", expression, fields, 6, 7)
    second, minute, hour, day, month, weekday = fields[:6]
    if (day.text == "?") == (weekday.text == "?"):
        raise fault("quartz", weekday.at, "exactly one of day of month and day of week must be ?")
    return [
        make_rule(
            seconds=_GRAMMAR.values(second, _SECOND),
            times=Times(
                _GRAMMAR.values(minute, _MINUTE), _GRAMMAR.values(hour, _HOUR), is_plain(minute) and is_plain(hour)
            ),
            day=_weekdays(weekday) if day.text == "?" else days.either(map(_day, _GRAMMAR.elements(day))),
            months=bits(value for element in _GRAMMAR.elements(month) for value in _named(element, _MONTH)),
            years=_years(fields[6]) if len(fields) > 6 else ALL_YEARS,
        )
    ]


def _day(element: Part) -> days.Days:
    text = element.text
    if text.startswith("L"):
        nominal = _last(element)
    elif text.endswith("W"):
        nominal = days.day(_GRAMMAR.value(Part(text[:-1], element.at), _DAY))
    else:
        return days.days(bits(_GRAMMAR.sequence(element, _DAY)))
    return days.nearest_weekday(nominal, sunday_at_the_end_goes_back=True) if text.endswith("W") else nominal


def _last(element: Part) -> days.Days:
    rest = Part(element.text.removesuffix("W"), element.at).from_(1)
    if not rest.text:
        return days.last()
    if not rest.text.startswith("-"):
        raise fault("quartz", rest.at, f"{rest.text!r} cannot follow L")
    before = _GRAMMAR.number(rest.from_(1), "number of days before the last")
    if before > 30:
        raise fault("quartz", rest.at + 1, f"{before} days before the last is more than 30")
    return days.last(before)


def _weekdays(part: Part) -> days.Days:
    elements = _GRAMMAR.elements(part)
    for element in elements:
        is_last = element.text.endswith("L")
        if (is_last and "," in part.text) or ("#" in element.text and len(elements) > 1):
            raise fault("quartz", element.at, f"{element.text} cannot be in a list")
    (text, at), *_ = elements
    if text == "L":
        return days.weekdays(1 << days.SATURDAY)
    if text.endswith("L"):
        return days.last_weekday(_GRAMMAR.value(Part(text[:-1], at), _WEEKDAY) - 1)
    if "#" in text:
        name, _, nth = text.partition("#")
        if nth not in ("1", "2", "3", "4", "5"):
            raise fault("quartz", at + len(name) + 1, "after # there has to be a number from 1 to 5")
        return days.nth_weekday(_GRAMMAR.value(Part(name, at), _WEEKDAY) - 1, int(nth))
    return days.weekdays(bits(value - 1 for element in elements for value in _named(element, _WEEKDAY)))


def _named(element: Part, field: Field) -> list[int]:
    """Return the values of an element, which may contain names."""
    if (mixed := _NAME_AND_NUMBER.match(element.text)) is not None:
        raise fault("quartz", element.at, f"{mixed[0]} mixes a name and a number")
    if (ignored := _STEP_AFTER_NAME.fullmatch(element.text)) is not None:
        element = Part(ignored[1], element.at)
    return list(_GRAMMAR.sequence(element, field))


def _years(part: Part) -> int:
    return ALL_YEARS if part.text == "*" else _YEAR_GRAMMAR.values(part, _YEAR)
