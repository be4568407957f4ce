"""When a rule fires next where the clock skips or repeats local time: over daylight saving.

A rule is one of two kinds:

- *Fixed*: minutes and hours are plain values (`0`, `0,30`), without `*`, range or step. It runs once for each local
  time that it names: a skipped one at the first instant after the gap, a repeated one at its first pass. What comes to
  the same instant this way runs once.
- Any other follows elapsed time: it fires at every instant whose local time fits, so in both passes of a repeated
  hour, and not in a gap.

Each alternative of a cron4j expression is of its own kind. Seconds, days, months and years play no part in it.
"""

from __future__ import annotations

from .rule import CronRule
from .zones import Zone

_HALF_DAY = 43_200


def next_of(rule: CronRule, zone: Zone, after: int) -> int | None:
    """Return the first instant strictly after another at which a rule fires in a zone (epoch s); None: never again."""
    return _next_fixed(rule, zone, after) if rule.fixed else _next_elapsed(rule, zone, after)


def _next_fixed(rule: CronRule, zone: Zone, after: int) -> int | None:
    offset, is_second_pass = zone.local_at(after)
    here = after + offset
    if is_second_pass:  # what is still to come of it has run in the first
        here = zone.transition(here) + zone.offsets_of(here)[0] - 1
    wall = rule.next_wall(here + 1)
    if wall is None:
        return None
    first, second = zone.offsets_of(wall)
    return zone.transition(wall) if first < second else wall - first


def _next_elapsed(rule: CronRule, zone: Zone, after: int) -> int | None:
    offset = zone.offset_at(after)
    wall = rule.next_wall(after + offset + 1)
    if wall is not None and wall - offset - after < _HALF_DAY:
        first, second = zone.offsets_of(wall)
        if first == offset and second <= first:
            return wall - offset  # no transition comes before it
    here = after + offset
    first, second = zone.offsets_of(here)
    if offset == first > second:
        # In the first pass: the second one starts over.
        transition = zone.transition(here)
        if wall is None or wall >= transition + first:
            again = rule.next_wall(transition + second)
            if again is not None and again < transition + first:
                return again - second
    while wall is not None:
        first, second = zone.offsets_of(wall)
        if first < second:
            wall = rule.next_wall(zone.transition(wall) + second)
        else:
            return wall - first if wall - first > after else wall - second
    return None
