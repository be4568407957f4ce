"""How little a lane does at a time after failures, and how it finds the one piece of work that is to blame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from light_scheduler.engine import FairQueue
from light_scheduler.lanes.failures.failing_work_search import (
    BREAKS,
    EVERYTHING,
    FULL,
    NOTHING,
    STRIKES,
    FailingWorkSearch,
    Kind,
    Share,
    Work,
    WorkFailedError,
)
from light_scheduler.model.arrival import arrival_in

MOST = 2_500
BAD = Work(Kind.FIRING, ("acme", "bad", 1, 1))
GOOD = Work(Kind.FIRING, ("acme", "good", 1, 1))
ANOTHER = Work(Kind.FIRING, ("zoe", "bad", 1, 1))
COMMAND = Work(Kind.COMMAND, 7)


def alone() -> FailingWorkSearch:
    """Return the search of a lane that is down to one piece of work at a time."""
    search = FailingWorkSearch()
    search.failed(4, [])
    assert search.share(MOST).limit == 1
    return search


def come_to(search: FailingWorkSearch, kind: Kind) -> None:
    """Let control cycles pass, and others have their turns in cycles that neither fail nor prove anything."""
    while kind not in (kinds := search.share(MOST).kinds):
        if kinds:
            search._end_turn()
        else:
            search.succeeded([])


def fail_alone(search: FailingWorkSearch, work: Work) -> Work | None:
    """Have a piece of work fail alone while a control cycle passes; return what is blamed."""
    come_to(search, work.kind)
    while (limit := search.share(MOST).limit) > 1:
        search.failed(limit, [])
        come_to(search, work.kind)
    search.failed(1, [work])
    assert search.share(MOST) == Share(1, NOTHING)
    return search.succeeded([])


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
    search.failed(size, [])
    for _ in range(failures - 1):
        come_to(search, Kind.FIRING)
        search.failed(min(size, search.share(MOST).limit), [])
    come_to(search, Kind.FIRING)
    assert search.share(MOST).limit == limit


def test_a_failure_takes_from_its_kind_of_work_only() -> None:
    search = FailingWorkSearch()
    search.failed(1_000, [])
    come_to(search, Kind.FIRING)
    search.failed(250, [])
    limits = {}
    for _ in Kind:
        limit, (kind,) = search.share(MOST)
        limits[kind] = limit
        search._end_turn()
    assert limits == {Kind.DELAYED: 250, Kind.COMMAND: 250, Kind.BULK: 250, Kind.FIRING: 62}


def test_each_success_doubles_what_a_cycle_may_hold_until_it_is_everything() -> None:
    search = FailingWorkSearch()
    search.failed(1_300, [])
    limits = []
    while search.is_active:
        limits.append(search.share(FULL).limit)
        search.succeeded([])
    assert limits == [each for limit in (325, 650, 1_300, 2_500) for each in len(Kind) * [limit]]
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
    assert set(seen) == EVERYTHING


def test_a_kind_of_which_nothing_is_left_has_no_limit() -> None:
    search = alone()
    come_to(search, Kind.FIRING)
    assert search.rested(is_caught_up=True)
    come_to(search, Kind.FIRING)
    assert search.share(MOST) == Share(MOST, frozenset({Kind.FIRING}))


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
    before = search.share(MOST)
    for _ in Kind:
        share = search.share(MOST, is_behind=True)
        assert share == Share(before.limit, frozenset({Kind.COMMAND})), "it is commands that it waits for"
        assert not search.rested(is_caught_up=False)
    assert search.share(MOST) == before
    assert search.is_active


def test_a_lane_that_reads_its_backlog_goes_on_where_it_was() -> None:
    search = alone()
    come_to(search, Kind.FIRING)
    for _ in range(3):
        assert search.share(MOST, is_behind=True).kinds == {Kind.COMMAND}
        search.succeeded([COMMAND])
    assert search.share(MOST) == Share(1, frozenset({Kind.FIRING}))
    assert search.share(MOST, is_behind=True).limit == 8


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
        assert fail_alone(search, BAD) is None
    come_to(search, Kind.FIRING)
    search.succeeded([BAD])
    for _ in range(STRIKES - 1):
        assert fail_alone(search, BAD) is None
    assert fail_alone(search, BAD) == BAD


def test_strikes_of_one_piece_of_work_are_not_anothers() -> None:
    search = alone()
    for _ in range(STRIKES - 1):
        assert [fail_alone(search, work) for work in (BAD, ANOTHER)] == [None, None]
    assert fail_alone(search, GOOD) is None
    assert [fail_alone(search, work) for work in (BAD, ANOTHER)] == [BAD, ANOTHER]


def test_a_piece_of_work_that_failed_and_is_gone_keeps_a_lane_cautious_no_longer_than_the_others_take() -> None:
    search, doublings = alone(), FULL.bit_length() + 1
    fail_alone(search, BAD)
    for _ in range(len(Kind) * doublings):
        assert search.is_active
        search.succeeded([COMMAND])
    assert not search.is_active


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


# -- work that never runs dry -----------------------------------------------------------------------------------------

TENANTS = ("acme", "bolt", "cone")
TURNS = {Kind.DELAYED: TENANTS, Kind.COMMAND: ("the log",), Kind.BULK: TENANTS, Kind.FIRING: TENANTS}
"""Who takes turns in each kind of work. Commands are in one log; a bulk command of a tenant goes on for ever."""
AT_ONCE = 40
"""Of each kind, in a cycle that nothing limits."""


class Flood:
    """A lane of which more is asked than it can do. `failing` is (kind, who, number of the piece) of what fails.

    After each failure it starts again, with a `backlog` of commands to read before it does anything else that is due.
    """

    def __init__(self, failing: set[tuple[Kind, str, int]], backlog: int) -> None:
        self.search = FailingWorkSearch()
        self.failing = {_piece(kind, who, number) for kind, who, number in failing}
        self.blamed: list[Work] = []
        self.done: Counter[Kind] = Counter()
        self.cycles = 0
        self._reached: Counter[tuple[Kind, str]] = Counter()
        self._fair = {kind: FairQueue() for kind in Kind}
        self._backlog = backlog
        self._behind = 0

    def cycle(self) -> None:
        self.cycles += 1
        limit, kinds = self.search.share(AT_ONCE, is_behind=self._behind > 0)
        taken = {kind: self._take(kind, limit) for kind in Kind if kind in kinds and self._may_do(kind)}
        works = [work for each in taken.values() for work in each]
        if not works and kinds:
            if self.search.is_active:
                self.search.rested(is_caught_up=not self._behind)
            return
        if any(work in self.failing and work not in self.search.condemned for work in works):
            size = sum(len(each) for kind, each in taken.items() if kind is not Kind.BULK)
            self.search.failed(size, works if self.search.is_active else [])
            self._behind = self._backlog
            return
        self.search.met([work for work in works if work in self.search.condemned])
        if (blamed := self.search.succeeded(works if self.search.is_active else [])) is not None:
            self.blamed.append(blamed)
            self.search.condemn(blamed, "why")
        for kind, each in taken.items():
            self._fair[kind].commit()
            self.done[kind] += 1 if kind is Kind.BULK else len(each)
            self._reached.update((kind, _who(work)) for work in each)
        self._behind = max(0, self._behind - len(taken.get(Kind.COMMAND, [])))

    def _may_do(self, kind: Kind) -> bool:
        return kind in (Kind.COMMAND, Kind.BULK) or not self._behind

    def _take(self, kind: Kind, limit: int) -> list[Work]:
        who = TURNS[kind]
        if kind is Kind.BULK:
            left = [work for work in (_piece(kind, each, 0) for each in who) if work not in self.blamed]
            first = self.done[kind] % max(1, len(left))
            return (left[first:] + left[:first])[:limit]
        taken: list[Work] = []

        def serve(tenant: str, most: float) -> float:
            reached = self._reached[kind, tenant]
            taken.extend(_piece(kind, tenant, number) for number in range(reached, reached + int(most)))
            return int(most)

        self._fair[kind].begin()
        self._fair[kind].share({each: partial(serve, each) for each in who}, limit)
        return taken


def _piece(kind: Kind, who: str, number: int) -> Work:
    number = 0 if kind is Kind.BULK else number
    return Work(Kind.COMMAND if kind is Kind.DELAYED else kind, (who, kind.name, number, 0))


def _who(work: Work) -> str:
    assert isinstance(work.key, tuple)
    return work.key[0]


failures_of_a_flood = st.sets(
    st.sampled_from(Kind).flatmap(
        lambda kind: st.tuples(st.just(kind), st.sampled_from(TURNS[kind]), st.integers(0, 60))
    ),
    min_size=1,
    max_size=8,
)


@given(failures_of_a_flood, st.sampled_from([0, 1, 50, 200]))
@example({(Kind.FIRING, "acme", 0)}, 50)
@example({(Kind.FIRING, "acme", 3), (Kind.FIRING, "bolt", 3)}, 1)
@example({(Kind.DELAYED, "acme", 0), (Kind.DELAYED, "bolt", 0), (Kind.BULK, "acme", 0), (Kind.BULK, "bolt", 0)}, 200)
def test_whatever_fails_in_work_that_never_runs_dry_is_blamed_soon_and_nothing_else_and_all_kinds_go_on(
    failing: set[tuple[Kind, str, int]], backlog: int
) -> None:
    flood = Flood(failing, backlog)
    went_on_at = dict.fromkeys(Kind, 0)
    patience = {kind: 100 + 100 * sum(each is kind for each, *_ in failing) for kind in Kind}
    if all(_piece(Kind.BULK, tenant, 0) in flood.failing for tenant in TENANTS):
        del patience[Kind.BULK]  # there is none that could go on
    while len(flood.blamed) < len(flood.failing):
        before = flood.done.copy()
        flood.cycle()
        went_on_at |= {kind: flood.cycles for kind in Kind if flood.done[kind] > before[kind]}
        assert all(flood.cycles - went_on_at[kind] <= most for kind, most in patience.items())
    assert set(flood.blamed) == flood.failing
    assert flood.cycles <= 100 + 100 * len(failing)


@pytest.mark.parametrize(
    ("states", "kind"),
    [({"is_behind": True, "is_catching_up": True}, Kind.COMMAND), ({"is_catching_up": True}, Kind.DELAYED)],
)
def test_what_comes_before_firings_has_every_turn_until_it_is_done(states: dict[str, bool], kind: Kind) -> None:
    search = FailingWorkSearch()
    search.failed(4_000, [])
    for _ in range(2 * len(Kind)):
        assert search.share(MOST, **states) == Share(1_000, frozenset({kind}))
        search._end_turn()
    assert {next(iter(turn(search))) for _ in Kind} == set(Kind)


def turn(search: FailingWorkSearch) -> frozenset[Kind]:
    """Return what one cycle may hold, and end it."""
    kinds = search.share(MOST).kinds
    search._end_turn()
    return kinds


@pytest.mark.parametrize(
    ("work", "named"),
    [
        (COMMAND, "command 7"),
        (Work(Kind.BULK, arrival_in(3, 7)), "bulk 7"),
        (Work(Kind.COMMAND, -8), "command -8"),
        (GOOD, "firing ('acme', 'good', 1, 1)"),
    ],
)
def test_work_is_named_by_what_people_find_it_by(work: Work, named: str) -> None:
    assert (str(work), str(WorkFailedError(work))) == (named, named)
