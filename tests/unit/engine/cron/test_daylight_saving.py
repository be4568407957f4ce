"""Where local time is skipped or repeated: in every zone of the IANA database, and by hand where it is odd.

What is expected is worked out from the offsets before and after a transition alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.engine.cron import compile_cron

MINUTE, HOUR, DAY = 60, 3_600, 86_400
FROM = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp())
TO = int(datetime(2031, 1, 1, tzinfo=UTC).timestamp())
AROUND = 14 * HOUR


class Transition(NamedTuple):
    """An instant (epoch s) at which the offset of a zone changes (s)."""

    zone: str
    instant: int
    before: int
    after: int

    @property
    def walls(self) -> tuple[int, int]:
        """The wall seconds between which local times are skipped or repeated."""
        walls = (self.instant + self.before, self.instant + self.after)
        return min(walls), max(walls)


@cache
def transitions() -> list[Transition]:
    """Return all transitions of the years 2025 to 2030, once for zones that are the same."""
    folder = files("tzdata")
    names = {
        folder.joinpath("zoneinfo", *name.split("/")).read_bytes(): name
        for name in folder.joinpath("zones").read_text(encoding="utf-8").split()
    }
    return [transition for name in sorted(names.values()) for transition in transitions_of(name, FROM, TO)]


def transitions_of(name: str, start: int, end: int) -> Iterator[Transition]:
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        zone = ZoneInfo.from_file(file, name)

    def offset(instant: int) -> int:
        delta = datetime.fromtimestamp(instant, zone).utcoffset()
        assert delta is not None
        return int(delta.total_seconds())

    for low in range(start, end, 5 * DAY):
        high = low + 5 * DAY
        if offset(low) != offset(high):
            before, after = offset(low), offset(high)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            yield Transition(name, high, before, after)


def fired(expression: str, transition: Transition) -> list[int]:
    """Return what fires around a transition (epoch s)."""
    cron = compile_cron(expression, "unix", transition.zone)
    times = []
    at = cron.next_after((transition.instant - AROUND) * 1000)
    while at is not None and at < (transition.instant + AROUND) * 1000:
        times.append(at // 1000)
        at = cron.next_after(at)
    return times


def expected(minutes: set[int], hours: set[int], *, fixed: bool, transition: Transition) -> list[int]:
    """Return what the rule says: `minutes` and `hours` are those of the expression, its days are all."""
    instant, before, after = transition.instant, transition.before, transition.after
    days = range((instant - AROUND + before) // DAY - 1, (instant + AROUND + after) // DAY + 2)
    times: set[int] = set()
    for wall in (day * DAY + hour * HOUR + minute * MINUTE for day in days for hour in hours for minute in minutes):
        passes = [at for at in (wall - before,) if at < instant] + [at for at in (wall - after,) if at >= instant]
        times.update([min(passes, default=instant)] if fixed else passes)
    return sorted(at for at in times if abs(at - instant) < AROUND)


def describe(transition: Transition) -> str:
    return f"{transition.zone} {datetime.fromtimestamp(transition.instant, UTC)}"


def test_there_are_transitions_of_many_zones_and_sizes() -> None:
    found = transitions()
    assert len({transition.zone for transition in found}) > 40
    assert {abs(transition.after - transition.before) for transition in found} >= {30 * MINUTE, HOUR, 2 * HOUR}
    assert all(transition.instant % MINUTE == 0 for transition in found)


def test_fixed_times_run_once_for_each_local_time_in_every_zone() -> None:
    for transition in transitions():
        low, high = transition.walls
        for wall in (low - MINUTE, low, (low + high) // 2 // MINUTE * MINUTE, high - MINUTE, high):
            hour, minute = wall % DAY // HOUR, wall % HOUR // MINUTE
            times = fired(f"{minute} {hour} * * *", transition)
            assert times == expected({minute}, {hour}, fixed=True, transition=transition), describe(transition)
        hours = {low % DAY // HOUR, high % DAY // HOUR}
        times = fired(f"0,20,40 {','.join(map(str, hours))} * * *", transition)
        assert times == expected({0, 20, 40}, hours, fixed=True, transition=transition), describe(transition)


def test_wildcards_follow_elapsed_time_in_every_zone() -> None:
    every_hour = set(range(24))
    for transition in transitions():
        hour = transition.walls[0] % DAY // HOUR
        for expression, minutes, hours in (
            ("*/20 * * * *", {0, 20, 40}, every_hour),
            ("15 * * * *", {15}, every_hour),
            (f"30 {hour}-{hour} * * *", {30}, {hour}),
            (f"0-59/4 {hour} * * *", set(range(0, 60, 4)), {hour}),
        ):
            times = fired(expression, transition)
            wanted = expected(minutes, hours, fixed=False, transition=transition)
            assert times == wanted, f"{describe(transition)} {expression}"


@given(
    st.data(),
    st.sets(st.integers(0, 59), min_size=1, max_size=4),
    st.sets(st.integers(0, 23), min_size=1, max_size=6),
    st.booleans(),
)
def test_any_list_of_times_follows_its_rule(
    data: st.DataObject, minutes: set[int], hours: set[int], fixed: bool
) -> None:
    transition = data.draw(st.sampled_from(transitions()))
    spelled = [",".join(map(str, values)) for values in (minutes, hours)]
    if not fixed:
        one = next(iter(hours))
        spelled[1] += f",{one}-{one}"
    times = fired(f"{' '.join(spelled)} * * *", transition)
    assert times == expected(minutes, hours, fixed=fixed, transition=transition)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "local"),
    [
        # New York skips 02:00-03:00 on 2025-03-09 and repeats 01:00-02:00 on 2025-11-02.
        ("30 2 * * *", "America/New_York", "2025-03-09T00:00", ["09 03:00-0400", "10 02:30-0400"]),
        ("0,30 2,3 9 3 *", "America/New_York", "2025-03-09T00:00", ["09 03:00-0400", "09 03:30-0400"]),
        ("30 2-2 * * *", "America/New_York", "2025-03-09T00:00", ["10 02:30-0400"]),
        ("30 * * * *", "America/New_York", "2025-03-09T01:00", ["09 01:30-0500", "09 03:30-0400"]),
        ("30 1 * * *", "America/New_York", "2025-11-02T00:00", ["02 01:30-0400", "03 01:30-0500"]),
        ("30 * * * *", "America/New_York", "2025-11-02T01:00", ["02 01:30-0400", "02 01:30-0500", "02 02:30-0500"]),
        ("*/30 1 * * *", "America/New_York", "2025-11-02T01:10", ["02 01:30-0400", "02 01:00-0500", "02 01:30-0500"]),
        # Cairo skips 00:00-01:00 on 2025-04-25, Lord Howe 02:00-02:30 on 2025-10-05, Troll 01:00-03:00 on 2025-03-30.
        ("0 0 * * *", "Africa/Cairo", "2025-04-24T12:00", ["25 01:00+0300", "26 00:00+0300"]),
        ("15 2 * * *", "Australia/Lord_Howe", "2025-10-05T00:00", ["05 02:30+1100", "06 02:15+1100"]),
        ("0 1,2 * * *", "Antarctica/Troll", "2025-03-30T00:00", ["30 03:00+0200", "31 01:00+0200"]),
        # Apia had no 2011-12-30, Kiritimati no 1994-12-31.
        ("0 9 * * *", "Pacific/Apia", "2011-12-29T10:00", ["31 00:00+1400", "31 09:00+1400", "01 09:00+1400"]),
        ("0 9 * * 5", "Pacific/Apia", "2011-12-28T00:00", ["31 00:00+1400", "06 09:00+1400"]),
        ("0 */12 * * *", "Pacific/Apia", "2011-12-29T11:00", ["29 12:00-1000", "31 00:00+1400"]),
        ("0 12 31 * *", "Pacific/Kiritimati", "1994-12-30T00:00", ["01 00:00+1400", "31 12:00+1400"]),
        # Casablanca goes back for Ramadan, 2025-02-23 03:00 to 02:00.
        ("30 2 * * *", "Africa/Casablanca", "2025-02-23T00:00", ["23 02:30+0100", "24 02:30+0000"]),
    ],
)
def test_odd_days_go_by_the_same_rule(expression: str, zone: str, after: str, local: list[str]) -> None:
    at: int | None = int(datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)
    cron = compile_cron(expression, "unix", zone)
    found = []
    for _ in local:
        assert at is not None
        at = cron.next_after(at)
        assert at is not None
        found.append(datetime.fromtimestamp(at / 1000, ZoneInfo(zone)).strftime("%d %H:%M%z"))
    assert found == local


def test_seconds_of_a_skipped_minute_run_once_in_all() -> None:
    cron = compile_cron("*/20 30 2 * * ?", "quartz", "America/New_York")
    gap = int(datetime(2025, 3, 9, 7, tzinfo=UTC).timestamp() * 1000)
    assert cron.next_after(gap - 1) == gap
    assert cron.next_after(gap) == gap + int(23.5 * HOUR) * 1000


def test_each_alternative_goes_by_its_own_kind() -> None:
    # 02:30 does not exist that day: the fixed one moves, the other one does not fire.
    cron = compile_cron("30 2 * * *|15 1-2 * * *", "cron4j", "America/New_York")
    at = int(datetime(2025, 3, 9, 5, tzinfo=UTC).timestamp() * 1000)
    first = cron.next_after(at)
    assert first == at + 75 * MINUTE * 1000
    assert cron.next_after(first) == at + 2 * HOUR * 1000
