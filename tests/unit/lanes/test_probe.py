"""What a worker knows of the probes of a partition."""

from __future__ import annotations

from itertools import count

import pytest

from light_scheduler.lanes.context.probe import HOLD_MS, TIMEOUT_MS, LaneProbe

AT = 1_767_225_600_100


@pytest.fixture
def probe() -> LaneProbe:
    numbers = count(1)
    return LaneProbe(lambda: f"{next(numbers):032x}")


def begun(probe: LaneProbe, now: int = AT) -> str:
    number = probe.begin(now)
    assert number is not None
    return number


def test_a_probe_that_is_back_is_a_success_with_the_time_that_it_took(probe: LaneProbe) -> None:
    number = begun(probe)
    probe.stored([number], AT + 30)
    probe.read(number, AT + HOLD_MS + 25)
    assert probe.status is not None
    assert (probe.status.successes, probe.status.failures) == (1, 0)
    assert probe.status.last_success == AT + HOLD_MS + 25
    assert probe.status.latency_ms == 30 + 25


def test_a_probe_that_is_stored_after_it_was_due_is_measured_from_then_on(probe: LaneProbe) -> None:
    number = begun(probe)
    probe.stored([number], AT + 4_000)
    probe.read(number, AT + 4_100)
    assert probe.status is not None
    assert probe.status.latency_ms == 4_100


def test_a_firing_that_is_read_counts_though_the_answer_to_a_commit_was_lost(probe: LaneProbe) -> None:
    probe.read(begun(probe), AT + HOLD_MS + 70)
    assert probe.status is not None
    assert (probe.status.successes, probe.status.latency_ms) == (1, 70)


def test_no_probe_begins_while_another_one_is_under_way(probe: LaneProbe) -> None:
    begun(probe)
    assert probe.begin(AT + TIMEOUT_MS - 1) is None
    assert probe.status is not None
    assert probe.status.failures == 0


@pytest.mark.parametrize(("stored", "reason"), [(False, "no transaction stored"), (True, "was not read")])
def test_a_probe_that_is_not_back_in_time_is_a_failure_and_another_one_begins(
    probe: LaneProbe, stored: bool, reason: str
) -> None:
    number = begun(probe)
    if stored:
        probe.stored([number], AT)
    assert begun(probe, AT + TIMEOUT_MS) != number
    assert probe.status is not None
    assert (probe.status.failures, probe.status.last_failure) == (1, AT + TIMEOUT_MS)
    assert reason in (probe.status.reason or "")


def test_a_probe_that_comes_back_after_its_time_counts_as_nothing_more(probe: LaneProbe) -> None:
    late = begun(probe)
    probe.stored([late], AT)
    begun(probe, AT + TIMEOUT_MS)
    probe.read(late, AT + TIMEOUT_MS)
    assert probe.status is not None
    assert (probe.status.successes, probe.status.failures) == (0, 1)


def test_a_probe_that_cannot_be_sent_is_a_failure_and_the_next_one_may_begin(probe: LaneProbe) -> None:
    probe.not_sent(begun(probe), AT + 5, "nobody answers")
    assert probe.status is not None
    assert (probe.status.failures, probe.status.reason) == (1, "nobody answers")
    assert probe.begin(AT + 6) is not None


def test_only_the_probe_under_way_has_a_due_time(probe: LaneProbe) -> None:
    number = begun(probe)
    assert probe.due_of(number) == AT + HOLD_MS
    assert probe.due_of("f" * 32) is None


def test_a_probe_is_never_due_at_a_full_second(probe: LaneProbe) -> None:
    number = begun(probe, AT - AT % 1_000 + 1_000 - HOLD_MS)
    due = probe.due_of(number)
    assert due is not None
    assert due % 1_000 == 1
