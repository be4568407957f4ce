"""Counts the firings of rules between two instants with sets, without visiting each time.

Between two transitions of a zone, wall time runs evenly, so the number of times in a stretch is computed from its days.
The rules for skipped and repeated local time in `daylight_saving` are applied at the transitions.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator, Sequence
from datetime import date

from .rule import DAY, EPOCH, LAST_DAY, CronRule
from .zones import Transition, Zone

_LONGEST_PASS = 2 * DAY
"""How long a transition matters afterwards. It is longer than any repeated local time."""


def count_between(rules: Sequence[CronRule], zone: Zone, after: int, until: int) -> int:
    """Return the number of instants after `after` and up to `until` (epoch s) at which any of the rules fires."""
    if until <= after:
        return 0
    every = _Walls(rules)
    fixed, elapsed = ([rule for rule in rules if rule.fixed is kind] for kind in (True, False))
    skipped, repeated = _Walls(fixed), _Walls(elapsed)
    number = 0
    for begin, stop in _stretches(zone, after + 1 - _LONGEST_PASS, until + 1):
        first = max(begin.instant, after + 1)
        if first >= stop:
            continue
        low, high = first + begin.after, stop + begin.after
        passed_again = min(high, max(low, begin.instant + begin.before))  # earlier wall times are repeated ones
        number += repeated.number(low, passed_again) + every.number(passed_again, high)
        if (
            first == begin.instant
            and skipped.number(begin.instant + begin.before, low)
            and not every.number(low, low + 1)
        ):
            number += 1
    return number


def _stretches(zone: Zone, begin: int, stop: int) -> Iterator[tuple[Transition, int]]:
    """Yield the stretches with one offset: the transition at the beginning of each, and the instant of its end."""
    offset = zone.offset_at(begin)
    last = Transition(begin, offset, offset)
    for transition in zone.transitions(begin, stop):
        yield last, transition.instant
        last = transition
    yield last, stop


class _Walls:
    """Counts the wall seconds that match any of some rules."""

    def __init__(self, rules: Sequence[CronRule]) -> None:
        self._rules = rules
        self._known: dict[int, int] = {}

    def number(self, low: int, high: int) -> int:
        """Return the number of matching wall seconds from `low` (inclusive) to `high` (exclusive)."""
        high = min(high, (LAST_DAY + 1) * DAY)
        if high <= low or not self._rules:
            return 0
        (first, begin), (last, end) = divmod(low, DAY), divmod(high, DAY)
        if first == last:
            return (self._on(first) >> begin & (1 << end - begin) - 1).bit_count()
        number = (self._on(first) >> begin).bit_count() + self._on_days(first + 1, last)
        return number + (self._on(last) & (1 << end) - 1).bit_count() if end else number

    def _on(self, day: int) -> int:
        """Return the set of matching seconds of a day (days since 1970)."""
        of = date.fromordinal(day + EPOCH)
        days = 1 << of.day
        return self._times(sum(1 << n for n, rule in enumerate(self._rules) if rule.days_of(of.year, of.month) & days))

    def _on_days(self, day: int, stop: int) -> int:
        """Return the number of matching seconds from `day` (inclusive) to `stop` (exclusive), by month."""
        number = 0
        while day < stop:
            of = date.fromordinal(day + EPOCH)
            left = calendar.monthrange(of.year, of.month)[1] - of.day + 1
            length = min(left, stop - day)
            number += self._in_month(of.year, of.month, (1 << length) - 1 << of.day)
            day += length
        return number

    def _in_month(self, year: int, month: int, days: int) -> int:
        """Return the number of matching seconds on some days of a month. Groups days with the same matching rules."""
        alike = {0: days}
        for number, rule in enumerate(self._rules):
            if picked := rule.days_of(year, month) & days:
                alike = {
                    fitting | is_picked << number: part
                    for fitting, of in alike.items()
                    for is_picked, part in ((0, of & ~picked), (1, of & picked))
                    if part
                }
        return sum(part.bit_count() * self._times(fitting).bit_count() for fitting, part in alike.items() if fitting)

    def _times(self, fitting: int) -> int:
        """Return the set of seconds of a day that match any of the rules in the set `fitting`."""
        times = self._known.get(fitting)
        if times is None:
            times = 0
            for number, rule in enumerate(self._rules):
                if fitting >> number & 1:
                    times |= rule.times_of_day()
            self._known[fitting] = times
        return times
