"""Counts the firings of rules between two instants with sets, without visiting each time.

Wall time is counted as if it ran evenly, and what `daylight_saving` says of skipped and repeated local time is added
for each transition of the zone. There are only 14 calendars of a year, and the numbers of years, months and transitions
are kept, so decades cost little more than a day.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import compress

from . import days
from .rule import ALL_YEARS, DAY, EPOCH, LAST_DAY, CronRule
from .zones import Transition, Zone

_LONGEST_PASS = 2 * DAY
"""How long a transition matters afterwards. It is longer than any repeated local time."""


class TimesCount:
    """Counts the times of some rules in a zone. All rules fire at the same seconds of their minutes."""

    def __init__(self, rules: Sequence[CronRule], zone: Zone) -> None:
        fixed, elapsed = ([rule for rule in rules if rule.fixed is kind] for kind in (True, False))
        self._zone = zone
        self._every = _Walls(rules)
        self._skipped = _Walls(fixed)
        self._repeated = _Walls(elapsed)
        self._known: dict[Transition, int] = {}

    def between(self, after: int, until: int) -> int:
        """Return at how many instants after one, and at or before another, any of the rules fires (epoch s)."""
        if until <= after:
            return 0
        first, stop = after + 1, until + 1
        number = self._every.number(first + self._zone.offset_at(first), stop + self._zone.offset_at(until))
        for transition in self._zone.transitions(first - _LONGEST_PASS, stop):
            if first < transition.instant and transition.passed_again_until <= stop:
                number += self._whole(transition)
            else:
                number += self._at(transition, first, stop)
        return number

    def _whole(self, transition: Transition) -> int:
        known = self._known.get(transition)
        if known is None:
            ends = transition.passed_again_until
            known = self._known[transition] = self._at(transition, transition.instant - 1, ends + 1)
        return known

    def _at(self, transition: Transition, first: int, stop: int) -> int:
        """Return how many more there are from an instant on and before another, since the clock is changed."""
        instant, before, after = transition
        ends = transition.passed_again_until
        number = 0
        if ends == instant:
            number -= self._every.number(instant + before, instant + after) if first < instant else 0  # are skipped
        elif first < instant and ends <= stop:
            number += self._repeated.number(instant + after, instant + before)
        elif (low := max(first, instant) + after) < (high := min(stop, ends) + after):
            number += self._every.number(instant + after, instant + before) if first < instant else 0
            number += self._repeated.number(low, high) - self._every.number(low, high)
        here = instant + after
        if first <= instant and self._skipped.has(instant + before, here) and not self._every.has(here, here + 1):
            number += 1
        return number


class _Walls:
    """Counts the wall seconds that match any of some rules."""

    def __init__(self, rules: Sequence[CronRule]) -> None:
        self._rules = list(dict.fromkeys(rules))
        self._seconds = rules[0].seconds if rules else 0
        assert all(rule.seconds == self._seconds for rule in self._rules), "only a dialect without them has more rules"
        self._minutes = [rule.minutes_of_day() for rule in self._rules]
        self._of_some_years = [rule.years for rule in self._rules if rule.years != ALL_YEARS]
        self._months: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self._years: dict[tuple[int, int, tuple[int, ...]], int] = {}

    def has(self, low: int, high: int) -> bool:
        """Return whether there is one from a wall second on, and before another one."""
        return low < high and self.number(low, high) > 0

    def number(self, low: int, high: int) -> int:
        """Return how many there are from a wall second on, and before another one; negative if that is earlier."""
        if not self._rules or low == high:
            return 0
        if low > high:
            return -self.number(high, low)
        last = (LAST_DAY + 1) * DAY
        if low >= last:
            return 0
        (first, begin), (day, end) = divmod(low, DAY), divmod(min(high, last), DAY)
        if first == day:
            minutes = self._minutes_on(day)
            return self._before(minutes, end) - self._before(minutes, begin)
        number = self._on_days(first, day)
        number -= self._before(self._minutes_on(first), begin) if begin else 0
        return number + self._before(self._minutes_on(day), end) if end else number

    def _minutes_on(self, day: int) -> int:
        """Return the set of the minutes of a day (days since 1970)."""
        of = date.fromordinal(day + EPOCH)
        fitting = (rule.days_of(of.year, of.month) >> of.day & 1 for rule in self._rules)
        return _union(compress(self._minutes, fitting))

    def _before(self, minutes: int, second: int) -> int:
        """Return how many there are with some minutes of a day before a second of the day."""
        minute, rest = divmod(second, 60)
        number = (minutes & (1 << minute) - 1).bit_count() * self._seconds.bit_count()
        return number + (self._seconds & (1 << rest) - 1).bit_count() * (minutes >> minute & 1)

    def _on_days(self, day: int, stop: int) -> int:
        """Return how many there are on days, the last one not included: by whole months and years where it can."""
        begin, end = date.fromordinal(day + EPOCH), date.fromordinal(stop - 1 + EPOCH)
        number = -self._in_month(begin.year, begin.month, (1 << begin.day) - 1) if begin.day > 1 else 0
        number -= sum(self._in_whole_month(begin.year, month) for month in range(1, begin.month))
        number += sum(self._in_year(year) for year in range(begin.year, end.year))
        number += sum(self._in_whole_month(end.year, month) for month in range(1, end.month))
        return number + self._in_month(end.year, end.month, (2 << end.day) - 1)

    def _in_year(self, year: int) -> int:
        """Return how many there are in a year. Years with the same calendar are alike."""
        kind = days.shape_index(year, 1), days.shape_index(year, 2), self._fitting(year)
        known = self._years.get(kind)
        if known is None:
            known = self._years[kind] = sum(self._in_whole_month(year, month) for month in range(1, 13))
        return known

    def _in_whole_month(self, year: int, month: int) -> int:
        kind = month, days.shape_index(year, month), self._fitting(year)
        known = self._months.get(kind)
        if known is None:
            known = self._months[kind] = self._in_month(year, month, -1)
        return known

    def _fitting(self, year: int) -> tuple[int, ...]:
        """Return which of the rules that do not fire in all years fire in one."""
        return tuple(years >> year & 1 for years in self._of_some_years)

    def _in_month(self, year: int, month: int, some: int) -> int:
        """Return how many there are on some days of a month. Days with the same rules are alike."""
        fitting = [
            (picked, minutes)
            for rule, minutes in zip(self._rules, self._minutes, strict=True)
            if (picked := rule.days_of(year, month) & some)
        ]
        alike = Counter(zip(*(map(_IS_ONE, f"{picked:032b}") for picked, _ in fitting), strict=True))
        of_day = [minutes for _, minutes in fitting]
        number = sum(count * _union(compress(of_day, each)).bit_count() for each, count in alike.items())
        return number * self._seconds.bit_count()


def _union(sets: Iterable[int]) -> int:
    union = 0
    for each in sets:
        union |= each
    return union


_IS_ONE = "1".__eq__
