"""What partitions earn of rates while their topic grows: together never more than the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from light_scheduler.model.partitioning import Partitioning


@pytest.mark.parametrize(
    ("partitioning", "shares", "new"),
    [
        pytest.param(Partitioning(4), [0.25] * 4, set(), id="it never grew"),
        pytest.param(Partitioning(4, 2), [0.25, 0.25, 0, 0], {2, 3}, id="it has just grown"),
        pytest.param(
            Partitioning(4, 2, frozenset({1, 2, 3})), [0.25, 0.25, 0.125, 0.125], {2, 3}, id="one of the former knows"
        ),
        pytest.param(Partitioning(4, 2, frozenset({0, 1})), [0.25] * 4, {2, 3}, id="both know"),
        pytest.param(Partitioning(4, 2, frozenset(), frozenset(range(4))), [0.25] * 4, set(), id="all have moved"),
    ],
)
def test_partitions_that_were_added_earn_what_the_others_are_known_to_earn_less(
    partitioning: Partitioning, shares: list[float], new: set[int]
) -> None:
    parts = [partitioning.rate_part(number) for number in range(4)]
    assert [part.share for part in parts] == shares
    assert {number for number, part in enumerate(parts) if part.is_new} == new


@given(former=st.integers(1, 12), added=st.integers(1, 24), data=st.data())
def test_all_together_never_earn_more_than_the_whole_in_whatever_order_they_learn_of_it(
    former: int, added: int, data: st.DataObject
) -> None:
    partitions = former + added
    knows = data.draw(st.sets(st.integers(0, former - 1)))
    total = 0.0
    for number in range(partitions):
        if number < former and number not in knows:
            total += Partitioning(former).rate_part(number).share
            continue
        heard_of = data.draw(st.sets(st.sampled_from(sorted(knows))) if knows else st.just(set()))
        total += Partitioning(partitions, former, frozenset(heard_of)).rate_part(number).share
    assert total <= 1 + 1e-9


def test_a_lane_goes_on_while_it_is_not_known_how_many_partitions_its_topic_has() -> None:
    assert Partitioning(0).rate_part(0).share == 1
