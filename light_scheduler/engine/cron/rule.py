"""The common form of all dialects, and the search for its next time, without a time zone.

Times are wall seconds: the time on a wall clock, in seconds since it showed 1970-01-01 00:00:00.
"""

from __future__ import annotations

from calendar import isleap
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from . import days
from .fields import bits

ALL_YEARS = (1 << 10_000) - 2
_FEBRUARY = 1 << 2
_LEAP_YEARS = bits(year for year in range(1, 10_000) if isleap(year))

ONCE_A_MINUTE = 1
"""The set of seconds for dialects without seconds: only 0."""

DAY = 86_400
EPOCH = date(1970, 1, 1).toordinal()
LAST_DAY = date.max.toordinal() - EPOCH
"""The last day of the year 9999, in days since 1970."""


@dataclass(frozen=True, slots=True)
class CronRule:
    """A rule for firing times. Sets are integers with bit n set for value n. Only `months` and `years` can be empty."""

    seconds: int
    minutes: int
    hours: int
    days: tuple[int, ...]
    """The days for each of `days.SHAPES`."""
    months: int
    years: int
    fixed: bool
    """Hours and minutes are plain values, so the rule follows the wall clock, not elapsed time."""

    def next_wall(self, wall: int) -> int | None:
        """Return the first matching wall second from `wall` on; None if there is none until the year 9999."""
        day, second = divmod(wall, DAY)
        time = self._first_time(second)
        found = self._first_day(day + 1 if time is None else day)
        if found is None:
            return None
        if found != day:
            time = self._first_time(0)
        assert time is not None
        return found * DAY + time

    def days_of(self, year: int, month: int) -> int:
        """Return the matching days of a month."""
        fits = self.years >> year & self.months >> month & 1
        return self.days[days.shape_index(year, month)] if fits else 0

    def minutes_of_day(self) -> int:
        """Return the minutes of a day that fit, if the day does: a set."""
        union, hour = 0, _first(self.hours, 0)
        while hour >= 0:
            union |= self.minutes << hour * 60
            hour = _first(self.hours, hour + 1)
        return union

    def _first_time(self, second_of_day: int) -> int | None:
        minute_of_day, second = divmod(second_of_day, 60)
        hour, minute = divmod(minute_of_day, 60)
        if self.hours >> hour & 1:
            if self.minutes >> minute & 1:
                found = _first(self.seconds, second)
                if found >= 0:
                    return hour * 3600 + minute * 60 + found
            found = _first(self.minutes, minute + 1)
            if found >= 0:
                return hour * 3600 + found * 60 + _first(self.seconds, 0)
        found = _first(self.hours, hour + 1)
        if found < 0:
            return None
        return found * 3600 + _first(self.minutes, 0) * 60 + _first(self.seconds, 0)

    def _first_day(self, day: int) -> int | None:
        """Return the first matching day from `day` on (days since 1970)."""
        if day > LAST_DAY or not self.months:
            return None
        start = date.fromordinal(day + EPOCH)
        year, month, day_of_month = start.year, start.month, start.day
        while (fitting := _first(self.years, year)) >= 0:
            if fitting != year:
                year, month, day_of_month = fitting, 1, 1
            while (fitting := _first(self.months, month)) >= 0:
                if fitting != month:
                    month, day_of_month = fitting, 1
                found = _first(self.days[days.shape_index(year, month)], day_of_month)
                if found >= 0:
                    return date(year, month, found).toordinal() - EPOCH
                month, day_of_month = month + 1, 1
            year, month, day_of_month = year + 1, 1, 1
        return None


class Times(NamedTuple):
    """Minutes and hours of a rule, which are `fixed` if both are plain values. Sets are as in `CronRule`."""

    minutes: int
    hours: int
    fixed: bool


def make_rule(
    *, times: Times, day: days.Days, months: int, seconds: int = ONCE_A_MINUTE, years: int = ALL_YEARS
) -> CronRule:
    """Create a rule. Leaves out months and years that have none of the days, so that they are not searched."""
    by_shape = tuple(map(day, days.SHAPES))
    lengths = dict.fromkeys(range(1, 13), (31,)) | dict.fromkeys((4, 6, 9, 11), (30,)) | {2: (28, 29)}
    possible = bits(
        month
        for month, of_length in lengths.items()
        if any(picked for shape, picked in zip(days.SHAPES, by_shape, strict=True) if shape.length in of_length)
    )
    months &= possible
    by_length = zip((shape.length for shape in days.SHAPES), by_shape, strict=True)
    if months == _FEBRUARY and not any(picked for length, picked in by_length if length == 28):
        years &= _LEAP_YEARS
    return CronRule(seconds, times.minutes, times.hours, by_shape, months, years, times.fixed)


def _first(values: int, least: int) -> int:
    """Return the first value of a set that is at least `least`, or -1."""
    rest = values >> least
    return least + (rest & -rest).bit_length() - 1 if rest else -1
