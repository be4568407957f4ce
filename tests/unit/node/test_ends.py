"""What follows when a process of a node ends, or says nothing."""

from __future__ import annotations

import pytest

from light_scheduler.host.restarts import Restarts, how_it_ended
from light_scheduler.node.ends import MOST_EARLY_ENDS, Again, GiveUp, exit_code, what_follows
from light_scheduler.node.job import CANNOT_RUN, WRONG_SETTINGS
from light_scheduler.node.silence import MOST_MISSES, Silence


def fates(*ends: tuple[int, float]) -> list[float | str]:
    """Return, for (exit code, seconds that it ran) one after another, pauses and reasons to give up."""
    restarts = Restarts()
    follow = (what_follows(code, ran, restarts) for code, ran in ends)
    return [fate.pause_s if isinstance(fate, Again) else fate.reason for fate in follow]


def test_a_process_that_ends_is_started_again_after_pauses_that_grow() -> None:
    assert fates((-9, 100), (1, 3), (1, 3), (1, 3)) == [1, 2, 4, 8]


def test_a_process_that_ran_for_a_minute_has_all_its_chances_again() -> None:
    assert fates((1, 3), (1, 3), (1, 3), (-9, 60), (1, 3), (1, 3), (1, 3)) == [1, 2, 4, 1, 2, 4, 8]


def test_a_process_that_keeps_ending_at_its_start_is_given_up() -> None:
    *pauses, last = fates(*[(3, 2.0)] * MOST_EARLY_ENDS)
    assert pauses == [1, 2, 4, 8]
    assert last == "it ended with exit code 3, for the 5th time in a row within 60 s of its start"


def test_an_end_after_a_minute_is_none_of_the_early_ones() -> None:
    *pauses, last = fates((-9, 7_200.0), *[(3, 2.0)] * MOST_EARLY_ENDS)
    assert pauses == [1, 2, 4, 8, 16]
    assert last == "it ended with exit code 3, for the 5th time in a row within 60 s of its start"


@pytest.mark.parametrize("code", [WRONG_SETTINGS, CANNOT_RUN])
@pytest.mark.parametrize("ran_s", [0.5, 100_000])
def test_a_process_that_would_end_the_same_way_again_is_given_up_at_once(ran_s: float, code: int) -> None:
    assert isinstance(what_follows(code, ran_s, Restarts()), GiveUp)


def test_pauses_do_not_grow_beyond_half_a_minute() -> None:
    restarts = Restarts()
    assert [restarts.pause_after(0) for _ in range(8)] == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    ("return_codes", "was_asked", "code"),
    [
        ([0, 0], True, 0),
        ([0, -15], True, 0),
        ([0, None], True, 0),
        ([0, 1], True, 1),
        ([0, -9], True, 1),
        ([0, 0], False, 1),
        ([CANNOT_RUN, 0], False, 1),
        ([0, WRONG_SETTINGS], False, 2),
    ],
    ids=[
        "in order",
        "asked at its start",
        "asked before its start",
        "failed",
        "killed",
        "given up",
        "cannot run",
        "settings",
    ],
)
def test_a_node_ends_well_if_it_was_asked_to_and_all_did_so_in_order(
    return_codes: list[int | None], was_asked: bool, code: int
) -> None:
    assert exit_code(return_codes, was_asked=was_asked) == code


def test_how_a_process_ended_is_said_in_words() -> None:
    assert (how_it_ended(-9), how_it_ended(3)) == ("by signal 9", "with exit code 3")


def hangs_after(answers: list[bool]) -> int | None:
    """Return after how many questions a process counts as one that hangs; None: it does not."""
    silence = Silence()
    return next((number for number, each in enumerate(answers, 1) if silence.record(answered=each)), None)


def test_a_process_that_says_nothing_after_it_has_answered_hangs() -> None:
    assert hangs_after([False, False, True, *[False] * MOST_MISSES]) == 3 + MOST_MISSES


def test_a_process_that_has_not_come_up_yet_does_not_hang() -> None:
    assert hangs_after([False] * 100) is None


def test_an_answer_now_and_then_is_enough() -> None:
    assert hangs_after([True, *[False] * (MOST_MISSES - 1)] * 5) is None
