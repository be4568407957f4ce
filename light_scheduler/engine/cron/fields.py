"""Lists of values, ranges and steps, which the fields of all dialects have in common.

A set of values is an integer with bit n set for value n.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from .errors import CronDialect, fault

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
MONTHS = {name: number for number, name in enumerate(_MONTHS, start=1)}
WEEKDAYS = {name: number for number, name in enumerate(_WEEKDAYS, start=1)}
"""Monday = 1 to Sunday = 7, as in all dialects except Quartz."""

_NUMBER = re.compile("[0-9]{1,9}")
_PLAIN_VALUES = re.compile("[0-9,]+")

_BLANKS = "".join(map(chr, range(33)))
"""The characters that Java's `String.trim` removes."""

RangeEnd = Literal["single", "start", "end"]


class Part(NamedTuple):
    """A part of an expression, and its 0-based position."""

    text: str
    at: int

    def from_(self, index: int) -> Part:
        """Return the rest of this part from an index of its text."""
        return Part(self.text[index:], self.at + index)


def split(part: Part, separators: str) -> list[Part]:
    """Split a part at runs of any of the characters. Parts are never empty."""
    return [Part(match[0], part.at + match.start()) for match in re.finditer(f"[^{re.escape(separators)}]+", part.text)]


def trimmed(part: Part) -> Part:
    """Return a part without line ends and other blanks around it. It can be empty."""
    text = part.text.rstrip(_BLANKS)
    return Part(text.lstrip(_BLANKS), part.at + len(text) - len(text.lstrip(_BLANKS)))


def is_plain(part: Part) -> bool:
    """Return whether a field has only values, without wildcard, range or step."""
    return _PLAIN_VALUES.fullmatch(part.text) is not None


@dataclass(frozen=True)
class Field:
    """The allowed values of a field."""

    name: str
    low: int
    high: int
    names: Mapping[str, int] = field(default_factory=dict)
    star_low: int | None = None
    """The first value of `*`, if not `low`."""
    largest_step: int | None = None
    """Maximum step without a range; None if there is none."""
    sunday_is_zero: frozenset[RangeEnd] = frozenset()
    """The places in which 7 means 0."""


@dataclass(frozen=True)
class Grammar:
    """The rules of a dialect for the elements of a list."""

    dialect: CronDialect
    wraps: bool
    """`22-2` wraps around; otherwise it is refused."""
    skips_empty: bool
    """`1,,2` is `1,2`; otherwise it is refused."""
    bare_step: bool
    """`/5` is `*/5`; otherwise it is refused."""
    value_step_runs_on: bool
    """`5/10` is 5, 15, 25, ... to the end; otherwise it is 5."""
    limits_range_steps: bool
    """A step of a range is at most the field's maximum; otherwise it is not limited."""

    def elements(self, part: Part) -> list[Part]:
        """Return the elements of a comma-separated list. Raises CronError for an empty list or element."""
        elements = []
        at = part.at
        for text in part.text.split(","):
            if text:
                elements.append(Part(text, at))
            elif not self.skips_empty:
                raise fault(self.dialect, at, "a value is missing")
            at += len(text) + 1
        if not elements:
            raise fault(self.dialect, part.at, "a value is missing")
        return elements

    def values(self, part: Part, field: Field) -> int:
        """Return the set of values of a list. Raises CronError."""
        values = 0
        for element in self.elements(part):
            values |= bits(self.sequence(element, field))
        return values

    def sequence(self, element: Part, field: Field) -> Sequence[int]:
        """Return the values of an element, in its order. Raises CronError."""
        span, slash, _ = element.text.partition("/")
        low, dash, _ = span.partition("-")
        step = self._step(element.from_(len(span) + 1), field, is_range=bool(dash)) if slash else 1
        if span == "*" or (not span and slash and self.bare_step):
            return range(field.low if field.star_low is None else field.star_low, field.high + 1)[::step]
        if not dash:
            value = self.value(Part(span, element.at), field, "single")
            return range(value, field.high + 1)[::step] if slash and self.value_step_runs_on else (value,)
        start = self.value(Part(low, element.at), field, "start")
        end = self.value(Part(span, element.at).from_(len(low) + 1), field, "end")
        if start <= end:
            return range(start, end + 1)[::step]
        if not self.wraps:
            raise fault(self.dialect, element.at, f"{field.name} range {span} ends before it begins")
        return [*range(start, field.high + 1), *range(field.low, end + 1)][::step]

    def value(self, part: Part, field: Field, place: RangeEnd = "single") -> int:
        """Return the value of a number or a name. Raises CronError."""
        value = field.names.get(part.text.upper())
        if value is None:
            value = self.number(part, f"{field.name} value")
            if not field.low <= value <= field.high:
                raise fault(self.dialect, part.at, f"{field.name} {value} is not in {field.low}-{field.high}")
        return 0 if value == 7 and place in field.sunday_is_zero else value

    def number(self, part: Part, what: str) -> int:
        """Parse a number. Raises CronError, in which `what` describes the number."""
        if not part.text:
            raise fault(self.dialect, part.at, f"the {what} is missing")
        if not _NUMBER.fullmatch(part.text):
            raise fault(self.dialect, part.at, f"the {what} cannot be {part.text!r}")
        return int(part.text)

    def _step(self, part: Part, field: Field, *, is_range: bool) -> int:
        step = self.number(part, f"{field.name} step")
        if step < 1:
            raise fault(self.dialect, part.at, f"{field.name} step {step} is not positive")
        limited = field.largest_step is not None and (self.limits_range_steps or not is_range)
        if limited and field.largest_step is not None and step > field.largest_step:
            raise fault(self.dialect, part.at, f"{field.name} step {step} is over {field.largest_step}")
        return step


def bits(values: Iterable[int]) -> int:
    """Return a set of values. Does not iterate over ranges: that of all years is long, and a list can repeat it."""
    if isinstance(values, range):
        return _bits_of_range(values)
    result = 0
    for value in values:
        result |= 1 << value
    return result


def _bits_of_range(values: range) -> int:
    if len(values) < 2:
        return 1 << values.start if values else 0
    # For n values and a step of s, it is 1 + 2^s + 2^2s + ... + 2^(n-1)s.
    return ((1 << len(values) * values.step) - 1) // ((1 << values.step) - 1) << values.start


def expect_fields(dialect: CronDialect, expression: str, fields: list[Part], least: int, most: int) -> None:
    """Raise CronError if there are too few or too many fields."""
    wanted = str(least) if least == most else f"{least} to {most}"
    if len(fields) < least:
        raise fault(dialect, len(expression), f"it has {len(fields)} fields, not {wanted}")
    if len(fields) > most:
        raise fault(dialect, fields[most].at, f"it has {len(fields)} fields, not {wanted}")


def replace_name(dialect: CronDialect, expression: str, names: Mapping[str, str]) -> str:
    """Return the expression for an @name; other expressions unchanged. Raises CronError for an unknown name."""
    name = expression.strip().lower()
    if not name.startswith("@"):
        return expression
    if name not in names:
        raise fault(dialect, expression.index("@"), f"{name} is none of {', '.join(sorted(names))}")
    return names[name]
