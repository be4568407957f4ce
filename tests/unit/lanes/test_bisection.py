"""How little a lane does at a time after failures, and how it finds the one piece of work that is to blame."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.lanes.bisection import BREAKS, EVERYTHING, FULL, NOTHING, STRIKES, Bisection, Kind, Share, Work

MOST = 2_500
BAD = Work(Kind.FIRING, ("acme", "bad", 1, 1))
GOOD = Work(Kind.FIRING, ("acme", "good", 1, 1))
COMMAND = Work(Kind.COMMAND, 7)


def alone() -> Bisection:
    """Return the bisection of a lane that is down to one piece of work at a time."""
    bisection = Bisection()
    bisection.failed(4, [])
    assert bisection.share(MOST).limit == 1
    return bisection


def live(bisection: Bisection, queue: list[Work], fails: Callable[[list[Work]], bool], cycles: int) -> Work | None:
    """Run cycles as a lane does, on work that waits; return what is blamed."""
    for _ in range(cycles):
        limit, kinds = bisection.share(MOST)
        works = [work for work in queue if work.kind in kinds][:limit]
        if not works and kinds:
            if bisection.is_active:
                bisection.rested(is_caught_up=True)
            continue
        if fails(works):
            bisection.failed(len(works), works if len(works) <= 1 else [])
            continue
        blamed = bisection.succeeded(works)
        if blamed is not None:
            return blamed
        for work in works:
            queue.remove(work)
    return None


# -- how much ---------------------------------------------------------------------------------------------------------


def test_without_failures_a_cycle_holds_all_there_may_be() -> None:
    bisection = Bisection()
    assert (bisection.share(MOST), bisection.bytes_of(1_000), bisection.is_active) == (
        Share(MOST, EVERYTHING),
        1_000,
        False,
    )


@pytest.mark.parametrize(
    ("size", "failures", "limit"), [(1_000, 1, 250), (1_000, 2, 62), (3, 1, 1), (0, 1, 1), (1_000, 9, 1)]
)
def test_a_cycle_holds_a_quarter_after_each_failure(size: int, failures: int, limit: int) -> None:
    bisection = Bisection()
    for _ in range(failures):
        bisection.failed(min(size, bisection.share(MOST).limit), [])
    assert bisection.share(MOST).limit == limit


def test_each_success_doubles_what_a_cycle_may_hold_until_it_is_everything() -> None:
    bisection = Bisection()
    bisection.failed(1_300, [])
    limits = []
    while bisection.is_active:
        limits.append(bisection.share(FULL).limit)
        bisection.succeeded([])
    assert limits == [325, 650, 1_300, 2_500]
    assert bisection.share(FULL) == Share(FULL, EVERYTHING)


def test_bytes_shrink_as_the_limit_does_and_never_to_nothing() -> None:
    bisection = Bisection()
    bisection.failed(1_000, [])
    assert bisection.bytes_of(25_000) == 25_000 * 250 // FULL
    assert alone().bytes_of(10) == 1


def test_a_lane_never_holds_more_than_it_would_without_failures() -> None:
    bisection = Bisection()
    bisection.failed(2_000, [])
    assert bisection.share(10).limit == 10


# -- one at a time ----------------------------------------------------------------------------------------------------


def test_alone_each_kind_of_work_has_its_turn() -> None:
    bisection, seen = alone(), []
    for _ in Kind:
        (kind,) = bisection.share(MOST).kinds
        seen.append(kind)
        bisection.failed(1, [Work(kind, 1)])
        assert bisection.share(MOST) == Share(1, NOTHING), "a failure is checked by a cycle that holds nothing"
        bisection.succeeded([])
        bisection.rested(is_caught_up=True)
    assert set(seen) == EVERYTHING


def test_a_lane_with_nothing_of_any_kind_left_is_cautious_no_more() -> None:
    bisection = alone()
    for _ in Kind:
        assert bisection.is_active
        bisection.rested(is_caught_up=True)
    assert not bisection.is_active


@pytest.mark.parametrize("size", [1_000, 1])
def test_a_lane_that_waits_for_its_commands_after_a_failure_is_as_cautious_as_before(size: int) -> None:
    bisection = Bisection()
    bisection.failed(size, [])
    before, kinds = bisection.share(MOST), set[Kind]()
    for _ in Kind:
        followed = bisection.rested(is_caught_up=False)
        kinds |= (share := bisection.share(MOST)).kinds
        assert share.limit == before.limit
        assert followed or Kind.COMMAND in share.kinds, "it is commands that it waits for"
    assert Kind.COMMAND in kinds
    assert bisection.is_active


def test_work_that_fails_alone_while_empty_cycles_pass_is_to_blame_after_its_strikes() -> None:
    bisection = alone()
    for strike in range(1, STRIKES + 1):
        bisection.failed(1, [BAD])
        assert bisection.share(MOST) == Share(1, NOTHING)
        assert bisection.succeeded([]) == (BAD if strike == STRIKES else None)


def test_a_broken_connection_says_little_of_what_was_sent_over_it() -> None:
    bisection = alone()
    for strike in range(1, BREAKS + 1):
        bisection.failed(1, [BAD], is_break=True)
        assert bisection.share(MOST) == Share(1, NOTHING)
        assert bisection.succeeded([]) == (BAD if strike == BREAKS else None)


def test_nothing_is_to_blame_while_empty_cycles_fail_too() -> None:
    bisection = alone()
    for _ in range(5 * STRIKES):
        bisection.failed(1, [BAD])
        bisection.failed(0, [])
        assert not bisection.is_getting_on
    bisection.failed(1, [BAD])
    assert bisection.succeeded([]) is None, "what failed before counts no more"
    assert bisection.is_getting_on


def test_work_that_succeeds_after_all_has_no_strikes_left() -> None:
    bisection = alone()
    for _ in range(STRIKES - 1):
        bisection.failed(1, [BAD])
        bisection.succeeded([])
    bisection.succeeded([BAD])
    for _ in range(2):
        bisection.failed(1, [BAD])
    while bisection.share(MOST).limit > 1:
        bisection.failed(1, [BAD])
    assert bisection.succeeded([]) is None


def test_strikes_of_one_piece_of_work_are_not_anothers() -> None:
    bisection = alone()
    for work in [BAD, GOOD] * STRIKES:
        bisection.failed(1, [work])
        assert bisection.succeeded([]) is None


def test_a_cycle_of_several_pieces_gives_none_of_them_a_strike() -> None:
    bisection = alone()
    for _ in range(2 * STRIKES):
        bisection.failed(2, [BAD, GOOD])
        assert bisection.succeeded([]) is None


def test_condemned_work_is_refused_until_a_cycle_has_dealt_with_it() -> None:
    bisection = Bisection()
    bisection.condemn(BAD, "why")
    bisection.met([GOOD])
    assert bisection.condemned == {BAD: "why"}
    bisection.met([BAD])
    assert bisection.condemned == {}


def test_a_condemned_bulk_command_whose_refusal_is_to_blame_too_is_refused_in_silence() -> None:
    bisection = Bisection()
    bisection.condemn(BAD, "why")
    assert not bisection.silenced
    bisection.condemn(BAD, "why its refusal fails")
    assert not bisection.silenced, "commands and firings are refused as they are"
    bulk = Work(Kind.BULK, 7)
    bisection.condemn(bulk, "why")
    assert not bisection.silenced
    bisection.condemn(bulk, "why its refusal fails")
    assert bisection.silenced == {bulk}
    bisection.met([bulk])
    bisection.condemn(bulk, "why")
    assert not bisection.silenced


@given(
    queue=st.lists(st.builds(Work, st.sampled_from(Kind), st.integers(0, 999)), min_size=1, max_size=60, unique=True),
    data=st.data(),
)
def test_whichever_piece_of_work_fails_it_is_found_and_no_other_is_blamed(
    queue: list[Work], data: st.DataObject
) -> None:
    bad = data.draw(st.sampled_from(queue))
    assert live(Bisection(), list(queue), lambda works: bad in works, cycles=2_000) == bad


@given(queue=st.lists(st.builds(Work, st.sampled_from(Kind), st.integers(0, 999)), max_size=20, unique=True))
def test_an_outage_of_everything_blames_nobody(queue: list[Work]) -> None:
    left = list(queue)
    bisection = Bisection()
    assert live(bisection, left, lambda works: True, cycles=200) is None
    assert live(bisection, left, lambda works: False, cycles=2_000) is None
    assert left == []
