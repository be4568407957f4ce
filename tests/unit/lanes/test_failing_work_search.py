"""How little a lane does at a time after failures, and how it finds the one piece of work that is to blame."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.lanes.failing_work_search import (
    BREAKS,
    EVERYTHING,
    FULL,
    NOTHING,
    STRIKES,
    FailingWorkSearch,
    Kind,
    Share,
    Work,
)

MOST = 2_500
BAD = Work(Kind.FIRING, ("acme", "bad", 1, 1))
GOOD = Work(Kind.FIRING, ("acme", "good", 1, 1))
COMMAND = Work(Kind.COMMAND, 7)


def alone() -> FailingWorkSearch:
    """Return the search of a lane that is down to one piece of work at a time."""
    search = FailingWorkSearch()
    search.failed(4, [])
    assert search.share(MOST).limit == 1
    return search


def live(search: FailingWorkSearch, queue: list[Work], fails: Callable[[list[Work]], bool], cycles: int) -> Work | None:
    """Run cycles as a lane does, on work that waits; return what is blamed."""
    for _ in range(cycles):
        limit, kinds = search.share(MOST)
        works = [work for work in queue if work.kind in kinds][:limit]
        if not works and kinds:
            if search.is_active:
                search.rested(is_caught_up=True)
            continue
        if fails(works):
            search.failed(len(works), works if len(works) <= 1 else [])
            continue
        blamed = search.succeeded(works)
        if blamed is not None:
            return blamed
        for work in works:
            queue.remove(work)
    return None


# -- how much ---------------------------------------------------------------------------------------------------------


def test_without_failures_a_cycle_holds_all_there_may_be() -> None:
    search = FailingWorkSearch()
    assert (search.share(MOST), search.bytes_of(1_000), search.is_active) == (
        Share(MOST, EVERYTHING),
        1_000,
        False,
    )


@pytest.mark.parametrize(
    ("size", "failures", "limit"), [(1_000, 1, 250), (1_000, 2, 62), (3, 1, 1), (0, 1, 1), (1_000, 9, 1)]
)
def test_a_cycle_holds_a_quarter_after_each_failure(size: int, failures: int, limit: int) -> None:
    search = FailingWorkSearch()
    for _ in range(failures):
        search.failed(min(size, search.share(MOST).limit), [])
    assert search.share(MOST).limit == limit


def test_each_success_doubles_what_a_cycle_may_hold_until_it_is_everything() -> None:
    search = FailingWorkSearch()
    search.failed(1_300, [])
    limits = []
    while search.is_active:
        limits.append(search.share(FULL).limit)
        search.succeeded([])
    assert limits == [325, 650, 1_300, 2_500]
    assert search.share(FULL) == Share(FULL, EVERYTHING)


def test_bytes_shrink_as_the_limit_does_and_never_to_nothing() -> None:
    search = FailingWorkSearch()
    search.failed(1_000, [])
    assert search.bytes_of(25_000) == 25_000 * 250 // FULL
    assert alone().bytes_of(10) == 1


def test_a_lane_never_holds_more_than_it_would_without_failures() -> None:
    search = FailingWorkSearch()
    search.failed(2_000, [])
    assert search.share(10).limit == 10


# -- one at a time ----------------------------------------------------------------------------------------------------


def test_alone_each_kind_of_work_has_its_turn() -> None:
    search, seen = alone(), []
    for _ in Kind:
        (kind,) = search.share(MOST).kinds
        seen.append(kind)
        search.failed(1, [Work(kind, 1)])
        assert search.share(MOST) == Share(1, NOTHING), "a failure is checked by a cycle that holds nothing"
        search.succeeded([])
        search.rested(is_caught_up=True)
    assert set(seen) == EVERYTHING


def test_a_lane_with_nothing_of_any_kind_left_is_cautious_no_more() -> None:
    search = alone()
    for _ in Kind:
        assert search.is_active
        search.rested(is_caught_up=True)
    assert not search.is_active


@pytest.mark.parametrize("size", [1_000, 1])
def test_a_lane_that_waits_for_its_commands_after_a_failure_is_as_cautious_as_before(size: int) -> None:
    search = FailingWorkSearch()
    search.failed(size, [])
    before, kinds = search.share(MOST), set[Kind]()
    for _ in Kind:
        followed = search.rested(is_caught_up=False)
        kinds |= (share := search.share(MOST)).kinds
        assert share.limit == before.limit
        assert followed or Kind.COMMAND in share.kinds, "it is commands that it waits for"
    assert Kind.COMMAND in kinds
    assert search.is_active


def test_work_that_fails_alone_while_empty_cycles_pass_is_to_blame_after_its_strikes() -> None:
    search = alone()
    for strike in range(1, STRIKES + 1):
        search.failed(1, [BAD])
        assert search.share(MOST) == Share(1, NOTHING)
        assert search.succeeded([]) == (BAD if strike == STRIKES else None)


def test_a_broken_connection_says_little_of_what_was_sent_over_it() -> None:
    search = alone()
    for strike in range(1, BREAKS + 1):
        search.failed(1, [BAD], is_break=True)
        assert search.share(MOST) == Share(1, NOTHING)
        assert search.succeeded([]) == (BAD if strike == BREAKS else None)


def test_nothing_is_to_blame_while_empty_cycles_fail_too() -> None:
    search = alone()
    for _ in range(5 * STRIKES):
        search.failed(1, [BAD])
        search.failed(0, [])
        assert not search.is_getting_on
    search.failed(1, [BAD])
    assert search.succeeded([]) is None, "what failed before counts no more"
    assert search.is_getting_on


def test_work_that_succeeds_after_all_has_no_strikes_left() -> None:
    search = alone()
    for _ in range(STRIKES - 1):
        search.failed(1, [BAD])
        search.succeeded([])
    search.succeeded([BAD])
    for _ in range(2):
        search.failed(1, [BAD])
    while search.share(MOST).limit > 1:
        search.failed(1, [BAD])
    assert search.succeeded([]) is None


def test_strikes_of_one_piece_of_work_are_not_anothers() -> None:
    search = alone()
    for work in [BAD, GOOD] * STRIKES:
        search.failed(1, [work])
        assert search.succeeded([]) is None


def test_a_cycle_of_several_pieces_gives_none_of_them_a_strike() -> None:
    search = alone()
    for _ in range(2 * STRIKES):
        search.failed(2, [BAD, GOOD])
        assert search.succeeded([]) is None


def test_condemned_work_is_refused_until_a_cycle_has_dealt_with_it() -> None:
    search = FailingWorkSearch()
    search.condemn(BAD, "why")
    search.met([GOOD])
    assert search.condemned == {BAD: "why"}
    search.met([BAD])
    assert search.condemned == {}


def test_a_condemned_bulk_command_whose_refusal_is_to_blame_too_is_refused_in_silence() -> None:
    search = FailingWorkSearch()
    search.condemn(BAD, "why")
    assert not search.silenced
    search.condemn(BAD, "why its refusal fails")
    assert not search.silenced, "commands and firings are refused as they are"
    bulk = Work(Kind.BULK, 7)
    search.condemn(bulk, "why")
    assert not search.silenced
    search.condemn(bulk, "why its refusal fails")
    assert search.silenced == {bulk}
    search.met([bulk])
    search.condemn(bulk, "why")
    assert not search.silenced


@given(
    queue=st.lists(st.builds(Work, st.sampled_from(Kind), st.integers(0, 999)), min_size=1, max_size=60, unique=True),
    data=st.data(),
)
def test_whichever_piece_of_work_fails_it_is_found_and_no_other_is_blamed(
    queue: list[Work], data: st.DataObject
) -> None:
    bad = data.draw(st.sampled_from(queue))
    assert live(FailingWorkSearch(), list(queue), lambda works: bad in works, cycles=2_000) == bad


@given(queue=st.lists(st.builds(Work, st.sampled_from(Kind), st.integers(0, 999)), max_size=20, unique=True))
def test_an_outage_of_everything_blames_nobody(queue: list[Work]) -> None:
    left = list(queue)
    search = FailingWorkSearch()
    assert live(search, left, lambda works: True, cycles=200) is None
    assert live(search, left, lambda works: False, cycles=2_000) is None
    assert left == []
