"""The days of a month that a rule selects.

A rule only depends on a month's shape, of which there are 28. So its days are computed once for each shape, when an
expression is compiled. A set of days is an integer with bit n set for day n; a set of weekdays has bit 0 for Sunday.

A list can contain the same day hundreds of times. So functions for single days are cached, and called once by `either`.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from typing import NamedTuple

SUNDAY, SATURDAY = 0, 6

_EVERY_WEEK = sum(1 << 7 * week for week in range(6))


class Shape(NamedTuple):
    """The calendar of a month: the weekday of its first day (Sunday is 0), and its number of days."""

    first: int
    length: int

    @property
    def days(self) -> int:
        """All days."""
        return (1 << self.length + 1) - 2

    def weekday(self, day: int) -> int:
        return (self.first + day - 1) % 7


Days = Callable[[Shape], int]

SHAPES = [Shape(first, length) for length in (28, 29, 30, 31) for first in range(7)]


@lru_cache(maxsize=10_000)
def shape_index(year: int, month: int) -> int:
    """Return the index in SHAPES of a month's shape."""
    monday_first, length = calendar.monthrange(year, month)
    return (length - 28) * 7 + (monday_first + 1) % 7


def days(of_month: int) -> Days:
    """Select days by number."""
    return lambda shape: of_month & shape.days


@cache
def day(number: int) -> Days:
    """Select a day by number, 1 to 31."""
    return days(1 << number)


def weekdays(of_week: int) -> Days:
    """Select weekdays."""
    return lambda shape: (of_week * _EVERY_WEEK >> shape.first) << 1 & shape.days


@cache
def last(before: int = 0) -> Days:
    """Select the last day, or the day `before` days earlier; none if that is in another month."""
    return lambda shape: _day(shape.length - before)


@cache
def nearest_weekday(to: Days, *, sunday_at_the_end_goes_back: bool) -> Days:
    """Select the nearest day from Monday to Friday to a `day` or the `last` one, within the month.

    A Sunday at the end of the month becomes the Friday before it, or nothing.
    """

    def rule(shape: Shape) -> int:
        nominal = to(shape).bit_length() - 1
        if nominal < 1:
            return 0
        weekday = shape.weekday(nominal)
        if weekday == SATURDAY:
            return _day(nominal - 1 if nominal > 1 else 3)
        if weekday == SUNDAY:
            if nominal < shape.length:
                return _day(nominal + 1)
            return _day(nominal - 2) if sunday_at_the_end_goes_back else 0
        return _day(nominal)

    return rule


def nth_weekday(weekday: int, nth: int) -> Days:
    """Select the nth of a weekday; none if the month has fewer."""
    return _nth_weekday(weekday, min(nth, 6))


@cache
def _nth_weekday(weekday: int, nth: int) -> Days:
    return lambda shape: _day(1 + (weekday - shape.first) % 7 + 7 * (nth - 1)) & shape.days if nth <= 5 else 0


@cache
def last_weekday(weekday: int) -> Days:
    """Select the last of a weekday."""
    return lambda shape: _day(shape.length - (shape.weekday(shape.length) - weekday) % 7)


def either(rules: Iterable[Days]) -> Days:
    """Select the days that any of the rules selects."""
    rules = tuple(dict.fromkeys(rules))

    def union(shape: Shape) -> int:
        picked = 0
        for rule in rules:
            picked |= rule(shape)
        return picked

    return union


def both(one: Days, other: Days) -> Days:
    """Select the days that both rules select."""
    return lambda shape: one(shape) & other(shape)


def _day(day: int) -> int:
    return 1 << day if day > 0 else 0
