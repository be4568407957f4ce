"""The next firing of a rule when the clock skips or repeats local time, because of daylight saving.

There are two kinds of rules:

- *Fixed*: minutes and hours are plain values (`0`, `0,30`), without `*`, range or step. It fires once for each matching
  local time: for a skipped time at the first instant after the gap, for a repeated time at its first pass. Several
  firings at the same instant count as one.
- Any other rule follows elapsed time: it fires at every instant whose local time matches, so in both passes of a
  repeated hour, and not in a gap.

The kind is determined separately for each alternative of a cron4j expression. Seconds, days, months and years do not
matter.
"""

from __future__ import annotations

from .rule import CronRule
from .zones import Zone

_HALF_DAY = 43_200


def next_of(rule: CronRule, zone: Zone, after: int) -> int | None:
    """Return the next firing of a rule in a zone, strictly after an instant (epoch s); None if there is none."""
    return _next_fixed(rule, zone, after) if rule.fixed else _next_elapsed(rule, zone, after)


def _next_fixed(rule: CronRule, zone: Zone, after: int) -> int | None:
    offset, is_second_pass = zone.local_at(after)
    here = after + offset
    if is_second_pass:  # the rest of it fired in the first pass
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
            return wall - offset  # there is no transition before it
    here = after + offset
    first, second = zone.offsets_of(here)
    if offset == first > second:
        # In the first pass: consider the second one too.
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
