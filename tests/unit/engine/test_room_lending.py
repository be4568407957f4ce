"""Lending room between partitions, as pure decisions: never more than the quota, and every search ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.engine.room_lending import (
    AGAIN_MS,
    CLOSED_MS,
    FIRST_ASKED,
    FORGET_MS,
    MOST_UNANSWERED,
    REPEAT_MS,
    ROUND_MS,
    SEARCH_MS,
    Others,
    Search,
    ahead,
    all_others,
    answered,
    given,
    is_waiting,
    less,
    search,
    share_with,
    under,
)
from light_scheduler.model.room_lending import Lending, QuotaVersion, RoomAsk, RoomGrant

AT = 1_767_225_600_000
FIRST = Others(0)


@dataclass
class Topic:
    """Partitions that lend to each other by rules alone. Messages are under way until somebody receives them."""

    version: QuotaVersion
    all: list[Lending] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    said: list[tuple[int, RoomAsk | RoomGrant]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.all = [Lending(self.version) for _ in range(self.version.partitions)]
        self.pending = [0] * self.version.partitions

    def spare(self, number: int) -> int:
        return share_with(self.all[number], number) - self.pending[number]

    def follow(self, number: int, step: Search, wanted: int) -> None:
        self.all[number] = step.lending
        spare = self.spare(number)
        for each in step.ask:
            ask = RoomAsk("t", number, step.lending.number, step.lending.version, spare, wanted)
            self.said.append((each, ask))

    def receive(self, index: int, now: int) -> None:
        """Deliver one of the messages to its partition."""
        number, said = self.said.pop(index)
        if isinstance(said, RoomGrant):
            following = answered(self.all[number], said, now)
            assert following is not None, "each answer is awaited, and comes once"
            self.all[number] = following
            return
        lending = self.all[number]
        amount = given(said, self.spare(number)) if said.version == lending.version else 0
        self.all[number] = lending = less(lending, amount)
        may_have_more = not amount and is_waiting(lending, now)
        self.said.append((said.partition, RoomGrant("t", number, said.number, lending.version, amount, may_have_more)))

    @property
    def shares(self) -> int:
        return sum(share_with(lending, number) for number, lending in enumerate(self.all))

    @property
    def under_way(self) -> int:
        return sum(said.amount for _, said in self.said if isinstance(said, RoomGrant))


STEPS = st.lists(
    st.tuples(st.sampled_from(("take", "end", "receive", "wait")), st.integers(0, 11), st.integers(0, 999)),
    max_size=150,
)


@drawn(st.integers(0, 60), st.integers(2, 12), STEPS)
@settings(max_examples=tries(300), deadline=None)
def test_shares_and_what_is_under_way_are_always_the_quota(quota: int, partitions: int, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    topic, now = Topic(QuotaVersion(5, quota, partitions)), AT
    for what, number, choice in steps:
        number %= partitions
        if what == "take" and topic.spare(number) > 0:
            topic.pending[number] += 1
            topic.follow(number, ahead(topic.all[number], Others(number), topic.spare(number), now), 0)
        elif what == "take":
            topic.follow(number, search(topic.all[number], Others(number), now), 1 + choice % 5)
        elif what == "end" and topic.pending[number]:
            topic.pending[number] -= 1
        elif what == "receive" and topic.said:
            topic.receive(choice % len(topic.said), now)
        elif what == "wait":
            now += choice
        assert topic.shares + topic.under_way == quota
        assert all(topic.spare(each) >= 0 for each in range(partitions))
        assert sum(topic.pending) <= quota


@drawn(st.integers(0, 60), st.integers(2, 40), st.randoms(use_true_random=False))
@settings(max_examples=tries(200), deadline=None)
def test_one_that_searches_alone_gets_everything_and_then_is_told_that_there_is_nothing(
    quota: int, partitions: int, random: object
) -> None:
    topic, now = Topic(QuotaVersion(5, quota, partitions)), AT
    for _ in range(quota):
        while topic.spare(0) == 0:
            step = search(topic.all[0], FIRST, now)
            assert step.goes_on_at is not None
            topic.follow(0, step, 1)
            while topic.said:
                topic.receive(0, now)
        topic.pending[0] += 1
    while (step := search(topic.all[0], FIRST, now)).goes_on_at is not None:
        topic.follow(0, step, 1)
        while topic.said:
            topic.receive(0, now)
    assert (topic.pending[0], step.lending.closed_until) == (quota, now + CLOSED_MS)


def test_the_others_are_asked_in_rounds_that_grow() -> None:
    topic = Topic(QuotaVersion(5, 0, 30))
    rounds = []
    while (step := search(topic.all[0], FIRST, AT)).goes_on_at is not None:
        rounds.append(len(step.ask))
        topic.follow(0, step, 1)
        while topic.said:
            topic.receive(0, AT)
    assert rounds == [FIRST_ASKED, 3, 6, 12, 5]
    assert search(step.lending, FIRST, AT + CLOSED_MS - 1) == (step.lending, (), None)
    assert len(search(step.lending, FIRST, AT + CLOSED_MS).ask) == FIRST_ASKED


def test_answers_that_do_not_come_hold_a_round_up_for_a_second_and_a_search_for_fifteen() -> None:
    topic, now, rounds = Topic(QuotaVersion(5, 0, 6)), AT, []
    while (step := search(topic.all[0], FIRST, now)).goes_on_at is not None:
        rounds.append((now - AT, len(step.ask)))
        topic.follow(0, step, 1)
        now = step.goes_on_at
    assert rounds == [(0, 3), (ROUND_MS, 2), (2 * ROUND_MS, 0)]
    assert now - AT == SEARCH_MS
    topic.all[0], now = step.lending, now + CLOSED_MS
    assert search(topic.all[0], FIRST, now).goes_on_at is None, "the next one waits for nobody who has not answered yet"


@pytest.mark.parametrize(("partitions", "down"), [(8, 1), (64, 16)])
def test_partitions_that_are_down_hold_searches_up_once_and_no_longer_than_one_search(
    partitions: int, down: int
) -> None:
    topic, now, took = Topic(QuotaVersion(5, 0, partitions)), AT, []
    while now < AT + 2 * REPEAT_MS:
        begun = now
        while (step := search(topic.all[0], FIRST, now)).goes_on_at is not None:
            topic.follow(0, step, 1)
            has_asked = bool(step.ask)
            while (
                said := next((n for n, (to, _) in enumerate(topic.said) if to < partitions - down), None)
            ) is not None:
                topic.receive(said, now)
            now = now if has_asked else step.goes_on_at
        topic.all[0] = step.lending
        took.append(now - begun)
        now += CLOSED_MS
    assert took[0] == SEARCH_MS
    assert sum(took[1:]) <= SEARCH_MS
    assert took[2:]
    assert not any(took[2:])


def test_one_that_never_answers_is_asked_again_after_a_minute_and_five_times_an_hour_at_most() -> None:
    lending, now = Lending(QuotaVersion(5, 0, 2)), AT
    asked: list[int] = []
    while now < AT + 20 * REPEAT_MS:
        step = search(lending, FIRST, now)
        asked += [now - AT] * len(step.ask)
        lending, now = step.lending, step.goes_on_at or now + CLOSED_MS
    assert len(asked) == len(lending.asked) == MOST_UNANSWERED
    assert all(REPEAT_MS <= later - earlier <= REPEAT_MS + CLOSED_MS for earlier, later in pairwise(asked))
    for each in lending.asked:
        following = answered(lending, RoomGrant("t", 1, each.number, lending.version, 2, False), now)
        assert following is not None
        lending = following
    assert lending.balance == 10


def test_one_that_has_not_answered_for_an_hour_is_asked_again_and_no_more_than_five_asks_are_kept() -> None:
    lending, now = Lending(QuotaVersion(5, 0, 2)), AT
    asked: list[int] = []
    while now < AT + 3 * FORGET_MS:
        step = search(lending, FIRST, now)
        asked += [now] * len(step.ask)
        lending, now = step.lending, step.goes_on_at or now + CLOSED_MS
        assert len(lending.asked) <= MOST_UNANSWERED
    assert len(asked) == 3 * MOST_UNANSWERED
    assert all(later - earlier >= FORGET_MS for earlier, later in zip(asked, asked[MOST_UNANSWERED:], strict=False))
    assert [each.at for each in lending.asked] == asked[-MOST_UNANSWERED:], "answers to these may still come"


def test_who_waits_for_room_itself_is_asked_once_more() -> None:
    version = QuotaVersion(5, 2, 2)
    first = search(Lending(version), FIRST, AT)
    (asked,) = first.lending.asked
    promised = answered(first.lending, RoomGrant("t", 1, asked.number, version, 0, True), AT + 20)
    assert promised is not None
    step = search(promised, FIRST, AT + 20)
    assert step == (promised, (), AT + 20 + AGAIN_MS)
    step = search(promised, FIRST, AT + 20 + AGAIN_MS)
    assert step.ask == (1,)
    promised = answered(step.lending, RoomGrant("t", 1, step.lending.number, version, 0, True), AT + 400)
    assert promised is not None
    assert search(promised, FIRST, AT + 400).goes_on_at is None


@pytest.mark.parametrize(
    ("spare", "wanted", "asker", "expected"),
    [
        (0, 1, 0, 0),
        (-3, 1, 0, 0),
        (1, 1, 0, 1),
        (5, 2, 0, 2),
        (5, 9, -9, 5),
        (100, 2, 0, 2 + (98 - 12) // 2),
        (5, 0, 1, 2),
        (5, 0, 4, 0),
        (4, 0, 9, 0),
    ],
)
def test_what_is_wanted_is_given_and_half_of_plenty_and_two_who_ask_ahead_come_to_have_the_same(
    spare: int, wanted: int, asker: int, expected: int
) -> None:
    assert given(RoomAsk("t", 0, 1, QuotaVersion(5, 1_200, 12), asker, wanted), spare) == expected


def test_another_version_of_the_quota_leaves_nothing_and_takes_nothing() -> None:
    old, new = QuotaVersion(5, 10, 2), QuotaVersion(6, 10, 2)
    lending = search(less(Lending(old), 3), FIRST, AT).lending
    assert under(lending, old) is lending
    changed = under(lending, new)
    assert changed == Lending(new, number=lending.number)
    assert answered(changed, RoomGrant("t", 1, lending.number, old, 4, False), AT) is None
    fresh = search(changed, FIRST, AT).lending
    assert fresh.number > lending.number
    told = answered(fresh, RoomGrant("t", 1, fresh.number, old, 4, False), AT)
    assert told is not None
    assert told.balance == 0


def test_lending_never_goes_back_to_an_older_version_of_the_quota() -> None:
    lending = less(Lending(QuotaVersion(6, 10, 2)), 3)
    assert under(lending, QuotaVersion(5, 99, 2)) is lending
    assert under(lending, QuotaVersion(5, 99, 4)) == Lending(QuotaVersion(6, 10, 4)), "a growth is not forgotten"


def test_an_answer_counts_once() -> None:
    version = QuotaVersion(5, 10, 2)
    lending = search(Lending(version), FIRST, AT).lending
    grant = RoomGrant("t", 1, lending.number, version, 4, False)
    once = answered(lending, grant, AT)
    assert once is not None
    assert (once.balance, once.search_until, answered(once, grant, AT)) == (4, 0, None)


def test_nobody_asks_ahead_while_enough_is_left_or_more_than_once_a_second() -> None:
    lending = Lending(QuotaVersion(5, 320, 4))
    assert ahead(lending, FIRST, 10, AT).ask == ()
    step = ahead(lending, FIRST, 9, AT)
    assert len(step.ask) == 2
    assert ahead(step.lending, FIRST, 9, AT + CLOSED_MS - 1).ask == ()
    assert len(ahead(step.lending, FIRST, 9, AT + CLOSED_MS).ask) == 1, "of three others, two have not answered"


def test_everybody_is_asked_for_what_is_pending_beyond_the_share() -> None:
    lending = Lending(QuotaVersion(5, 4, 5))
    step = all_others(lending, Others(2), AT)
    assert sorted(step.ask) == [0, 1, 3, 4]
    assert all_others(step.lending, Others(2), AT).ask == ()


def test_partitions_that_are_left_alone_are_asked_for_nothing_and_hold_no_search_up() -> None:
    version = QuotaVersion(0, 100, 4)
    others = Others(0, frozenset({1, 3}))
    assert all_others(Lending(version), others, AT).ask == (2,)
    assert ahead(Lending(version), others, 0, AT).ask == (2,)
    step = search(Lending(version), others, AT)
    assert step.ask == (2,)
    known = answered(step.lending, RoomGrant("t", 2, step.lending.number, version, 0, False), AT)
    assert known is not None
    assert search(known, others, AT).goes_on_at is None
    promised = answered(step.lending, RoomGrant("t", 2, step.lending.number, version, 0, True), AT)
    assert promised is not None
    assert search(promised, Others(0, frozenset({1, 2, 3})), AT).goes_on_at is None
