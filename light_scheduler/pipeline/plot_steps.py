"""Steps of time in plots, so that a plot has no more of them than pixels.

Steps divide an hour, a day or a week, and are aligned with hours, days or weeks. Otherwise a load that repeats every
hour would have one peak in some steps and two in others: a pattern that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

MOST_STEPS = 480
"""Maximum number of steps: a plot has about two pixels for each."""

_DAY, _WEEK = 1_440, 10_080
_DIVISORS = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60, 120, 180, 240, 360, 480, 720, _DAY, _WEEK)
"""Possible widths in minutes: divisors of an hour or a day, a day, a week."""

_NAMES = ((_WEEK, "a week", "weeks"), (_DAY, "a day", "days"), (60, "an hour", "hours"), (1, "a minute", "minutes"))

_MONDAY = 4 * _DAY
"""Weeks begin on the first Monday after 1970-01-01, a Thursday."""


class Steps(NamedTuple):
    """Steps of `width` minutes; `first` is the minute of the epoch at which the first one begins."""

    first: int
    width: int
    number: int

    @classmethod
    def of(cls, begin: int, end: int, most: int = MOST_STEPS) -> Steps:
        """Return the narrowest steps, at most `most`, from minute `begin` of the epoch to `end` (exclusive).

        The first and the last step may be only partly in the range.
        """
        for width in _widths():
            offset = _MONDAY if width % _WEEK == 0 else 0
            first = (begin - offset) // width * width + offset
            number = max(1, -(-(end - first) // width))
            if number <= most:
                return cls(first, width, number)
        raise AssertionError("some width is wide enough")

    def minutes(self, begin: int, end: int) -> list[int]:
        """Return how many minutes of each step are in a range."""
        starts = range(self.first, self.first + self.number * self.width, self.width)
        return [max(0, min(start + self.width, end) - max(start, begin)) for start in starts]

    def step(self, minute: int) -> int:
        """Return the number of the step that contains a minute."""
        return (minute - self.first) // self.width

    def words(self) -> str:
        """Describe the width of a step."""
        for minutes, one, more in _NAMES:
            if self.width % minutes == 0:
                number = self.width // minutes
                return one if number == 1 else f"{number} {more}"
        raise AssertionError("a step is of whole minutes")


def _widths() -> Iterator[int]:
    yield from _DIVISORS
    yield from (number * _WEEK for number in count(2))
