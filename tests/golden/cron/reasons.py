"""Why an answer differs from its original: rules that sort the differences, for `generate.py` to list them."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from light_scheduler.engine.cron import CronDialect

from .tables import Difference

REASONS = {
    "names": "cron-utils' UNIX has no @names; crontab and croniter have.",
    "seconds and years": "cron-utils' UNIX has five fields; ours may have second and year, as croniter does.",
    "step of 7": "cron-utils takes the step 7 of a range of weekdays for 0, as if it were Sunday.",
    "alternatives": "cron-utils reads `|` in any dialect; here it belongs to cron4j.",
    "ignored rest": "The original stops reading within the field and ignores the rest, or joins pieces.",
    "zero step": "Quartz takes a step of 0 for none.",
    "impossible value": "Quartz does not check this value; it fires never, or not when it says.",
    "list with #": "Quartz reads only the smallest day of a list with #.",
    "mixed ?": "Quartz takes a list with ? in it for ?.",
    "sign": "Java's Integer.parseInt takes a plus sign.",
    "stray separator": "cron4j drops empty pieces: -5, 5-, 5/ and 1--5 all pass.",
    "before the last day": "Spring counts L-n from a short month back into the one before, and repeats that day.",
    "endless": "cron4j's Predictor does not return for an alternative that never fires.",
    "lost day": "cron4j's Predictor counts on past the end of February or the like and loses the first days of the "
    "month after; its scheduler, which asks SchedulingPattern.match each minute, fires on them.",
    "nearest weekday": "Quartz 2.5 loses times with W: it looks for the day named, which may have passed while the "
    "nearest weekday has not, and keeps the time of day at which it began to look. Quartz 2.3 does neither, but reads "
    "only one W of a list.",
    "gap": "Local times are skipped. Ours: a fixed time runs at the first instant after the gap, others go on. "
    "cron-utils, Quartz and Spring leave a fixed time out; Spring leaves out or repeats others around a gap of 30 "
    "minutes; cron4j's Predictor moves skipped times of either kind by the length of the gap.",
    "overlap": "Local times are repeated. Ours: a fixed time runs at its first pass, others at both. "
    "cron-utils, Quartz and cron4j's Predictor often take the second pass only; Spring takes both for fixed times too.",
    "horizon": "The original gives up: Quartz after 100 years from today, cron-utils after 100 years without a time, "
    "Spring after 366 attempts.",
}

_ACCEPTANCE: list[tuple[CronDialect, str, str]] = [
    ("unix", r"\s*@", "names"),
    ("unix", r"\s*(\S+\s+){5,6}\S+\s*$", "seconds and years"),
    ("unix", r".*-\w+/7\b", "step of 7"),
    ("unix", r".*\|", "alternatives"),
    ("quartz", r".*(/0\b)", "zero step"),
    ("quartz", r".*[0-9A-Za-z]#[0-9].*,|.*,.*#", "list with #"),
    ("quartz", r".*(\?,|,\?)", "mixed ?"),
    ("quartz", r".*(\b[08]#|\b0W|-0\b|\b99\b|\b98\b|1969|99999)", "impossible value"),
    ("spring", r".*L-(3[1-9]|[4-9][0-9])", "before the last day"),
]  # fmt: skip


def reason(
    dialect: CronDialect, difference: Difference, theirs: list[int], ours: list[int], *, endless: bool
) -> str | None:
    """Return the key of the reason, or None if no rule explains the difference."""
    if difference.zone is None:
        return _acceptance_reason(dialect, difference.expression, endless=endless)
    if len(theirs) < len(ours) and ours[: len(theirs)] == theirs:
        return "horizon"
    differing = _differing(theirs, ours)
    kinds = {_transition_near(time, difference.zone) for time in differing}
    if None not in kinds:
        return _transition_near(differing[0], difference.zone)
    if dialect == "spring" and re.search(r"L-(2[89]|30)", difference.expression):
        return "before the last day"
    if dialect == "quartz" and "W" in difference.expression.upper().split()[3]:
        return "nearest weekday"
    lost = [time for time in differing if _transition_near(time, difference.zone) is None]
    if dialect == "cron4j" and not set(lost) & set(theirs) and all(_starts_month(t, difference.zone) for t in lost):
        return "lost day"
    return None


def _acceptance_reason(dialect: CronDialect, expression: str, *, endless: bool) -> str | None:
    if endless:
        return "endless"
    for of_dialect, pattern, key in _ACCEPTANCE:
        if of_dialect == dialect and re.match(pattern, expression):
            return key
    if "+" in expression and dialect != "quartz":
        return "sign"
    return "stray separator" if dialect == "cron4j" else "ignored rest"


def _differing(theirs: list[int], ours: list[int]) -> list[int]:
    """Return the times that only one has, up to where the shorter of the two ends."""
    end = min(theirs[-1], ours[-1]) if theirs and ours else 0
    counts = Counter(theirs)
    counts.subtract(Counter(ours))
    return sorted(time for time, count in counts.items() if count and time <= end)


def _transition_near(time: int, zone: str) -> str | None:
    """Return whether a gap or an overlap is within two hours of an instant, or neither."""
    at = datetime.fromtimestamp(time, UTC)
    before, after = (
        (at + timedelta(hours=hours)).astimezone(ZoneInfo(zone)).utcoffset() or timedelta() for hours in (-2, 2)
    )
    return None if before == after else "gap" if after > before else "overlap"


def _starts_month(time: int, zone: str) -> bool:
    return datetime.fromtimestamp(time, ZoneInfo(zone)).day <= 3
