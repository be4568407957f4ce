"""A trigger, written as fields and read back, is the same trigger."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.model import LATEST_INSTANT, After, Backoff, Cron, FixedDelay, FixedRate, Once, Timing
from light_scheduler.wire import trigger_fields
from light_scheduler.wire.durations import LONGEST_DURATION
from light_scheduler.wire.fields import RULES
from light_scheduler.wire.instants import FIRST_PLAUSIBLE
from light_scheduler.wire.native import header_name
from light_scheduler.wire.time_rule import timing

spans = st.integers(0, LONGEST_DURATION)
lengths = st.integers(1, LONGEST_DURATION)
decimals = st.integers(0, 10**9).map(lambda number: number / 10**9)
triggers: st.SearchStrategy[Timing] = st.one_of(
    st.builds(Once, st.integers(FIRST_PLAUSIBLE, LATEST_INSTANT)),
    st.builds(After, spans),
    st.builds(FixedRate, lengths),
    st.builds(FixedDelay, lengths),
    st.builds(
        Cron,
        st.sampled_from(["* * * * *", "@daily", "0 0 12 LW * ?"]),
        st.sampled_from(["unix", "cron4j", "quartz", "spring"]),
        st.sampled_from(["UTC", "Europe/Prague"]),
    ),
    st.builds(Backoff, st.lists(spans, min_size=1, max_size=20).map(tuple)),
    st.builds(
        Backoff,
        st.just(()),
        lengths,
        decimals.map(lambda part: 1 + part * 900),
        st.none() | lengths,
        st.none() | st.integers(1, 1_000_000),
        decimals,
    ),
)


def read(fields: Mapping[str, str]) -> Timing:
    return timing({field: RULES[field].parse(text) for field, text in fields.items()}, header_name)


@given(triggers)
def test_a_trigger_comes_back_as_it_was(trigger: Timing) -> None:
    back = read(trigger_fields(trigger))
    if isinstance(trigger, Backoff) and isinstance(back, Backoff):
        assert back.factor == pytest.approx(trigger.factor, abs=1e-9)
        assert back.spread == pytest.approx(trigger.spread, abs=1e-9)
        back = Backoff(back.intervals, back.initial, trigger.factor, back.longest, back.attempts, trigger.spread)
    assert back == trigger


def test_what_is_a_default_is_left_out() -> None:
    assert trigger_fields(Cron("@daily")) == {"cron": "@daily"}
    assert trigger_fields(FixedRate(5)) == {"every": "5"}


def test_an_anchored_rate_is_no_trigger_that_a_command_can_ask_for() -> None:
    with pytest.raises(ValueError, match="use start"):
        trigger_fields(FixedRate(5, anchor=7))
