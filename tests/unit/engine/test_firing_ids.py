"""The firings of a schedule never share an id, which says when they are due.

A command counts from when it was recorded, and is carried out later. Clocks of senders differ, so a command may have an
earlier timestamp than the ones before it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.life import MIDNIGHT, SECOND, Life
from support.tries import tries

from light_scheduler.errors import InvalidCommand
from light_scheduler.model import Cron, FixedRate, Series

M = MIDNIGHT
EVERY = 5 * SECOND
BETWEEN = EVERY // 2
"""Ms after a time of each series: what is triggered then takes no time of a later series."""


class Rule(NamedTuple):
    """When a series fires: every 5 seconds at most, and up to 3 ms after them."""

    timing: Series
    bounds: dict[str, Any]


class Step(NamedTuple):
    """A command that is carried out `pause` ms after the one before it, and was recorded `late` ms before that.

    What is due is delivered before it, unless the lane `is_behind`.
    """

    name: Literal["schedule", "reschedule", "complete", "trigger"]
    pause: int
    late: int
    is_behind: bool
    rule: Rule


BOUNDS: list[dict[str, Any]] = [
    {},
    {},
    {"misfire": "all"},
    {"misfire": "skip"},
    {"jitter": 3},
    {"window": 2 * SECOND},
    {"end": M + 6 * EVERY},
]
WAITS: list[dict[str, Any]] = [
    {},
    {"timeout": 60 * SECOND, "max_attempts": 3, "overlap": "queue"},
    {"timeout": 7 * SECOND, "max_attempts": 3, "overlap": "queue"},
    {"timeout": 60 * SECOND, "max_attempts": 3, "overlap": "skip"},
    {"timeout": 7 * SECOND, "max_attempts": 3, "overlap": "allow"},
]

rules = st.builds(
    lambda timing, bounds: Rule(timing, {"start": M - 20 * EVERY} | bounds),
    st.sampled_from([Cron("* * * * * */5"), FixedRate(EVERY), Cron("* * * * * */10"), FixedRate(2 * EVERY)]),
    st.sampled_from(BOUNDS),
)
steps = st.builds(
    Step,
    st.sampled_from(["schedule", "reschedule", "reschedule", "complete", "complete", "trigger"]),
    st.sampled_from([0, 50, 900, EVERY, 2 * EVERY]),
    st.sampled_from([0, 400, 2_500, 7 * SECOND]),
    st.booleans(),
    rules,
)


@pytest.mark.parametrize("acknowledgement", WAITS)
@settings(max_examples=tries(1_000))
@given(rules, st.lists(steps, min_size=5, max_size=14))
def test_no_firing_is_delivered_twice_unless_as_another_attempt(
    acknowledgement: dict[str, Any], rule: Rule, steps: list[Step]
) -> None:
    life = Life()
    now = M
    life.schedule(rule.timing, M, **rule.bounds, **acknowledgement)
    for step in steps:
        now += step.pause
        if step.name == "trigger":
            now += EVERY - (now - BETWEEN) % EVERY
        if not step.is_behind:
            life.tick(now)
        if life.entry is None:
            break
        with suppress(InvalidCommand):  # its series has ended
            carry_out(life, step, now, acknowledgement)
    come_to_rest(life, now)
    firings = [firing.due for firing in life.delivered if firing.attempt == 1]
    assert len(set(firings)) == len(firings)


def carry_out(life: Life, step: Step, now: int, acknowledgement: dict[str, Any]) -> None:
    assert life.entry is not None
    timing, bounds = step.rule
    match step.name:
        case "schedule":
            life.schedule(timing, now, recorded_at=now - step.late, **bounds, **acknowledgement)
        case "reschedule":
            life.reschedule(timing, now, recorded_at=now - step.late, **bounds)
        case "complete":
            for firing in life.entry.progress.awaited[:1]:
                life.complete(firing.due, now, firing.attempt, recorded_at=now - step.late)
        case "trigger":
            life.control("trigger", now)


def come_to_rest(life: Life, now: int) -> None:
    """Complete all that waits for it, time after time."""
    for at in range(now, now + 4 * EVERY, EVERY // 5):
        life.tick(at)
        for firing in () if life.entry is None else life.entry.progress.awaited:
            life.complete(firing.due, at, firing.attempt)
