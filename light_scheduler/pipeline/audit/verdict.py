"""One schedule's verdict: what was promised against what is in the target topics and among the dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from light_scheduler.engine import FiringRules

from .bounds import Bounds, Horizon
from .case import Case
from .comparison import Comparison
from .deliveries import Deliveries
from .faults import Fault
from .forwarding import NOWHERE, Forwarding
from .lane_order import CarriedOut, PassedOver
from .orders import AskedOf
from .owners import NO_OTHERS, OtherDialects
from .replay import Replay
from .standing import Course, Standing, standing_of
from .stops import NEVER_STOPPED, Stops
from .traced import Sought
from .traced_comparison import TracedComparison


class Verdict(NamedTuple):
    """The verdict on a schedule: faults, deliveries, counts, and the last command of its tenant in the lane that was
    surely handled.

    `standing` is all that the next audit needs of the schedule; None: it needs all records. `sought` are messages that
    should be in target topics, and do not tell of their schedule. `carried_out` and `passed_over` are those of
    `Explained`.
    """

    faults: Sequence[Fault]
    deliveries: Deliveries
    counts: Counter[str]
    handled: int | None
    standing: Standing | None = None
    sought: Sequence[Sought] = ()
    carried_out: Sequence[CarriedOut] = ()
    passed_over: Sequence[PassedOver] = ()


def judge(
    case: Case,
    rules: FiringRules,
    bounds: Bounds,
    horizon: Horizon,
    stops: Stops = NEVER_STOPPED,
    forwarding: Forwarding = NOWHERE,
    others: OtherDialects = NO_OTHERS,
) -> Verdict:
    """Judge one schedule: line by line of its history, and then what is left of the rest.

    `stops` are those of its tenant, `forwarding` is what delay rules do, `others` are dialects of other schedulers.
    """
    replay = _replay_of(case, rules)
    course = Course(case.asked, case.refused, case.series)
    comparison = (
        Comparison(case, bounds, horizon, stops, forwarding)
        if case.dialect is None and (case.traced is None or case.traced.is_empty)
        else TracedComparison(case, bounds, horizon, stops, forwarding, others, course)
    )
    for recorded in case.recorded:
        course.take(recorded.event)
        replay.take(recorded)
        comparison.take(replay.found())
    replay.end(bounds.end, bounds.patience, stops)
    comparison.take(replay.found())
    comparison.end(replay.endings)
    counts = comparison.counts + Counter(unreadable=case.unreadable + case.recorded.unreadable)
    last_at = max(course.last_at, case.dead_letters.last_at, comparison.last_at)
    is_open = bool(case.passed_on) or last_at > bounds.end
    standing = None if is_open else standing_of(replay, course)
    return Verdict(
        comparison.faults,
        comparison.deliveries,
        counts,
        replay.handled,
        standing,
        comparison.sought,
        comparison.carried_out,
        comparison.passed_over,
    )


def _replay_of(case: Case, rules: FiringRules) -> Replay:
    rejected = {letter.offset for letter in case.dead_letters.rejected}
    return Replay(
        AskedOf(
            case.commands_topic,
            case.asked,
            case.refused,
            rejected,
            case.passed_on,
            case.rejected_elsewhere,
            case.is_partial,
        ),
        rules,
        messages=case.messages,
        whole_since=case.whole_since,
        imported=case.imported,
    )
