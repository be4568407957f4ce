"""How little a lane does at a time after failures, and how it finds the one piece of work that is to blame."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.lanes.caution import BREAKS, EVERYTHING, FULL, NOTHING, STRIKES, Caution, Kind, Share, Work

MOST = 2_500
BAD = Work(Kind.FIRING, ("acme", "bad", 1, 1))
GOOD = Work(Kind.FIRING, ("acme", "good", 1, 1))
COMMAND = Work(Kind.COMMAND, 7)


def alone() -> Caution:
    """Return the caution of a lane that is down to one piece of work at a time."""
    caution = Caution()
    caution.failed(4, [])
    assert caution.share(MOST).limit == 1
    return caution


def live(caution: Caution, queue: list[Work], fails: Callable[[list[Work]], bool], cycles: int) -> Work | None:
    """Run cycles as a lane does, on work that waits; return what is blamed."""
    for _ in range(cycles):
        limit, kinds = caution.share(MOST)
        works = [work for work in queue if work.kind in kinds][:limit]
        if not works and kinds:
            if caution.is_active:
                caution.rested(is_caught_up=True)
            continue
        if fails(works):
            caution.failed(len(works), works if len(works) <= 1 else [])
            continue
        blamed = caution.succeeded(works)
        if blamed is not None:
            return blamed
        for work in works:
            queue.remove(work)
    return None


# -- how much ---------------------------------------------------------------------------------------------------------


def test_without_failures_a_cycle_holds_all_there_may_be() -> None:
    caution = Caution()
    assert (caution.share(MOST), caution.bytes_of(1_000), caution.is_active) == (Share(MOST, EVERYTHING), 1_000, False)


@pytest.mark.parametrize(
    ("size", "failures", "limit"), [(1_000, 1, 250), (1_000, 2, 62), (3, 1, 1), (0, 1, 1), (1_000, 9, 1)]
)
def test_a_cycle_holds_a_quarter_after_each_failure(size: int, failures: int, limit: int) -> None:
    caution = Caution()
    for _ in range(failures):
        caution.failed(min(size, caution.share(MOST).limit), [])
    assert caution.share(MOST).limit == limit


def test_each_success_doubles_what_a_cycle_may_hold_until_it_is_everything() -> None:
    caution = Caution()
    caution.failed(1_300, [])
    limits = []
    while caution.is_active:
        limits.append(caution.share(FULL).limit)
        caution.succeeded([])
    assert limits == [325, 650, 1_300, 2_500]
    assert caution.share(FULL) == Share(FULL, EVERYTHING)


def test_bytes_shrink_as_the_limit_does_and_never_to_nothing() -> None:
    caution = Caution()
    caution.failed(1_000, [])
    assert caution.bytes_of(25_000) == 25_000 * 250 // FULL
    assert alone().bytes_of(10) == 1


def test_a_lane_never_holds_more_than_it_would_without_failures() -> None:
    caution = Caution()
    caution.failed(2_000, [])
    assert caution.share(10).limit == 10


# -- one at a time ----------------------------------------------------------------------------------------------------


def test_alone_each_kind_of_work_has_its_turn() -> None:
    caution, seen = alone(), []
    for _ in Kind:
        (kind,) = caution.share(MOST).kinds
        seen.append(kind)
        caution.failed(1, [Work(kind, 1)])
        assert caution.share(MOST) == Share(1, NOTHING), "a failure is checked by a cycle that holds nothing"
        caution.succeeded([])
        caution.rested(is_caught_up=True)
    assert set(seen) == EVERYTHING


def test_a_lane_with_nothing_of_any_kind_left_is_cautious_no_more() -> None:
    caution = alone()
    for _ in Kind:
        assert caution.is_active
        caution.rested(is_caught_up=True)
    assert not caution.is_active


@pytest.mark.parametrize("size", [1_000, 1])
def test_a_lane_that_waits_for_its_commands_after_a_failure_is_as_cautious_as_before(size: int) -> None:
    caution = Caution()
    caution.failed(size, [])
    before, kinds = caution.share(MOST), set[Kind]()
    for _ in Kind:
        followed = caution.rested(is_caught_up=False)
        kinds |= (share := caution.share(MOST)).kinds
        assert share.limit == before.limit
        assert followed or Kind.COMMAND in share.kinds, "it is commands that it waits for"
    assert Kind.COMMAND in kinds
    assert caution.is_active


def test_work_that_fails_alone_while_empty_cycles_pass_is_to_blame_after_its_strikes() -> None:
    caution = alone()
    for strike in range(1, STRIKES + 1):
        caution.failed(1, [BAD])
        assert caution.share(MOST) == Share(1, NOTHING)
        assert caution.succeeded([]) == (BAD if strike == STRIKES else None)


def test_a_broken_connection_says_little_of_what_was_sent_over_it() -> None:
    caution = alone()
    for strike in range(1, BREAKS + 1):
        caution.failed(1, [BAD], is_break=True)
        assert caution.share(MOST) == Share(1, NOTHING)
        assert caution.succeeded([]) == (BAD if strike == BREAKS else None)


def test_nothing_is_to_blame_while_empty_cycles_fail_too() -> None:
    caution = alone()
    for _ in range(5 * STRIKES):
        caution.failed(1, [BAD])
        caution.failed(0, [])
        assert not caution.is_getting_on
    caution.failed(1, [BAD])
    assert caution.succeeded([]) is None, "what failed before counts no more"
    assert caution.is_getting_on


def test_work_that_succeeds_after_all_has_no_strikes_left() -> None:
    caution = alone()
    for _ in range(STRIKES - 1):
        caution.failed(1, [BAD])
        caution.succeeded([])
    caution.succeeded([BAD])
    for _ in range(2):
        caution.failed(1, [BAD])
    while caution.share(MOST).limit > 1:
        caution.failed(1, [BAD])
    assert caution.succeeded([]) is None


def test_strikes_of_one_piece_of_work_are_not_anothers() -> None:
    caution = alone()
    for work in [BAD, GOOD] * STRIKES:
        caution.failed(1, [work])
        assert caution.succeeded([]) is None


def test_a_cycle_of_several_pieces_gives_none_of_them_a_strike() -> None:
    caution = alone()
    for _ in range(2 * STRIKES):
        caution.failed(2, [BAD, GOOD])
        assert caution.succeeded([]) is None


def test_condemned_work_is_refused_until_a_cycle_has_dealt_with_it() -> None:
    caution = Caution()
    caution.condemn(BAD, "why")
    caution.met([GOOD])
    assert caution.condemned == {BAD: "why"}
    caution.met([BAD])
    assert caution.condemned == {}


@given(
    queue=st.lists(st.builds(Work, st.sampled_from(Kind), st.integers(0, 999)), min_size=1, max_size=60, unique=True),
    data=st.data(),
)
def test_whichever_piece_of_work_fails_it_is_found_and_no_other_is_blamed(
    queue: list[Work], data: st.DataObject
) -> None:
    bad = data.draw(st.sampled_from(queue))
    assert live(Caution(), list(queue), lambda works: bad in works, cycles=2_000) == bad


@given(queue=st.lists(st.builds(Work, st.sampled_from(Kind), st.integers(0, 999)), max_size=20, unique=True))
def test_an_outage_of_everything_blames_nobody(queue: list[Work]) -> None:
    left = list(queue)
    caution = Caution()
    assert live(caution, left, lambda works: True, cycles=200) is None
    assert live(caution, left, lambda works: False, cycles=2_000) is None
    assert left == []
