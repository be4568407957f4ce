"""How a group shares partitions out: evenly, with few moves, and to those that keep a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.tries import tries

from light_scheduler.agents.assignment.shares import Claim, Share, shared_out
from light_scheduler.model.place import Place

TOPIC = "commands"
MOST_MEMBERS, MOST_PARTITIONS = 6, 14


def topics_of(partitions: Mapping[str, int]) -> dict[str, range]:
    return {topic: range(count) for topic, count in partitions.items()}


def claim(actives: str = "", standbys: str = "") -> Claim:
    """Return what a member of one topic says that has the partitions of a text, like `0 2`."""
    return Claim(
        [TOPIC], {(TOPIC, int(each)) for each in actives.split()}, {(TOPIC, int(each)) for each in standbys.split()}
    )


def numbers(shares: Mapping[str, Share]) -> dict[str, list[int]]:
    return {member: sorted(number for _, number in share.actives) for member, share in shares.items()}


def claims_of(shares: Mapping[str, Share], topics: Mapping[str, int]) -> dict[str, Claim]:
    return {member: Claim([*topics], share.actives, share.standbys) for member, share in shares.items()}


def owners(claims: Mapping[str, Claim] | Mapping[str, Share]) -> dict[Place, str]:
    return {place: member for member, each in claims.items() for place in each.actives}


def differ(counts: Counter[str], members: Mapping[str, object]) -> int:
    return max(counts[member] for member in members) - min(counts[member] for member in members)


def check_valid(shares: Mapping[str, Share], topics: Mapping[str, int], replicas: int) -> None:
    """Each partition has one member and its copies, which no member has beside the partition; all evenly spread."""
    places = [(topic, number) for topic, count in topics.items() for number in range(count)]
    assert sorted(place for share in shares.values() for place in share.actives) == sorted(places)
    standbys = Counter(place for share in shares.values() for place in share.standbys)
    assert standbys == Counter(dict.fromkeys(places, min(replicas, len(shares) - 1))) + Counter()
    assert not any(share.actives & share.standbys for share in shares.values())
    for topic in topics:
        each = Counter(member for (name, _), member in owners(shares).items() if name == topic)
        assert differ(each, shares) <= 1
    assert differ(Counter({member: len(share.actives) for member, share in shares.items()}), shares) <= 1
    assert differ(Counter({member: len(share.standbys) for member, share in shares.items()}), shares) <= 1


def moves(before: Mapping[str, Claim], after: Mapping[str, Share]) -> int:
    """Return how many partitions leave a member that is there."""
    return sum(member in after and owners(after).get(place) != member for place, member in owners(before).items())


def fewest_moves(before: Mapping[str, Claim], partitions: int) -> int:
    """Return how many partitions have to leave their members for an even share of one topic."""
    least, more = divmod(partitions, len(before))
    owned = [len({number for _, number in each.actives if number < partitions}) for each in before.values()]
    return sum(max(0, count - least) for count in owned) - min(more, sum(count > least for count in owned))


def test_a_member_that_joins_two_with_two_of_four_gets_one() -> None:
    shares = shared_out({TOPIC: range(4)}, {"a": claim("0 1"), "b": claim("2 3"), "c": claim()}, 1)
    assert sorted(map(len, numbers(shares).values())) == [1, 1, 2]
    assert len(numbers(shares)["c"]) == 1


def test_a_partition_that_moves_goes_to_a_member_with_a_copy() -> None:
    claims = {"a": claim("0 1", "2 3"), "b": claim("2 3", "0"), "c": claim("", "1")}
    assert numbers(shared_out({TOPIC: range(4)}, claims, 1)) == {"a": [0], "b": [2, 3], "c": [1]}


@pytest.mark.parametrize("number", range(4))
def test_the_partition_with_a_copy_at_the_member_that_joins_is_the_one_to_move(number: int) -> None:
    claims = {"a": claim("0 1"), "b": claim("2 3"), "c": claim("", str(number))}
    assert numbers(shared_out({TOPIC: range(4)}, claims, 1))["c"] == [number]


def test_copies_take_over_from_a_member_that_has_left() -> None:
    claims = {"b": claim("2 3", "0"), "c": claim("4 5", "1")}
    assert numbers(shared_out({TOPIC: range(6)}, claims, 1)) == {"b": [0, 2, 3], "c": [1, 4, 5]}


def test_who_has_copies_of_what_nobody_has_gets_the_one_more() -> None:
    claims = {"b": claim("2"), "c": claim("3", "0 1")}
    assert numbers(shared_out({TOPIC: [0, 1, 2, 3, 4]}, claims, 1)) == {"b": [2, 4], "c": [0, 1, 3]}


def test_who_gives_a_partition_up_keeps_a_copy_of_it() -> None:
    shares = shared_out({TOPIC: range(2)}, {"a": claim("0 1"), "b": claim("", "0 1")}, 1)
    assert numbers(shares) == {"a": [0], "b": [1]}
    assert shares["a"].standbys == {(TOPIC, 1)}


def test_copies_of_an_owners_partitions_are_spread_over_the_others() -> None:
    claims = {"a": claim("0 1"), "b": claim("2 3"), "c": claim("4 5")}
    shares = shared_out({TOPIC: range(6)}, claims, 1)
    for owner, other in ((each, other) for each in shares for other in shares if each != other):
        assert len(shares[owner].actives & shares[other].standbys) == 1


def test_topics_are_even_together_though_they_have_the_same_partitions() -> None:
    topics = {"a": 4, "b": 4, "c": 1}
    shares = shared_out(topics_of(topics), {each: Claim([*topics]) for each in "xyz"}, 1)
    check_valid(shares, topics, 1)
    assert {len(share.actives) for share in shares.values()} == {3}


def test_members_that_do_not_read_a_topic_get_none_of_it() -> None:
    claims = {"old": Claim(["a"]), "new": Claim(["a", "b"])}
    shares = shared_out(topics_of({"a": 4, "b": 2, "unread": 3}), claims, 1)
    assert {topic for topic, _ in shares["old"].actives | shares["old"].standbys} == {"a"}
    assert {place for place in shares["new"].actives if place[0] == "b"} == {("b", 0), ("b", 1)}
    assert {place for share in shares.values() for place in share.actives if place[0] == "unread"} == set()


def test_without_members_or_topics_there_is_nothing_to_share_out() -> None:
    assert shared_out({TOPIC: range(4)}, {}, 1) == {}
    assert shared_out({}, {"a": Claim([])}, 1) == {"a": Share(set(), set())}


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Claim], int]:
    """Return what members may say, however it came about: also what others say as well, or what is gone."""
    partitions = draw(st.integers(1, MOST_PARTITIONS))
    places = st.sets(st.tuples(st.just(TOPIC), st.integers(0, MOST_PARTITIONS)))
    claims = {
        f"member-{number}": Claim([TOPIC], draw(places), draw(places))
        for number in range(draw(st.integers(1, MOST_MEMBERS)))
    }
    return claims, partitions


@given(groups(), st.integers(0, 3))
@settings(max_examples=tries(1_000))
def test_whatever_members_claim_the_shares_are_even_and_stay_as_they_are(
    group: tuple[dict[str, Claim], int], replicas: int
) -> None:
    claims, partitions = group
    topics = {TOPIC: partitions}
    shares = shared_out(topics_of(topics), claims, replicas)
    check_valid(shares, topics, replicas)
    assert shared_out(topics_of(topics), claims_of(shares, topics), replicas) == shares


EVENTS = st.sampled_from(["join", "leave", "return", "grow", "add"])


@given(st.lists(EVENTS, max_size=12), st.integers(0, 2), st.data())
@settings(max_examples=tries(400), deadline=None)
@example(["join", "join", "leave", "return"], 1, None)
def test_whatever_joins_leaves_or_grows_few_partitions_move(
    events: list[str], replicas: int, data: st.DataObject
) -> None:
    topics = {TOPIC: 4}
    claims = {"member-0": Claim([*topics])}
    for number, event in enumerate(["join", *events], start=1):
        match event:
            case "join" if len(claims) < MOST_MEMBERS:
                claims[f"member-{number}"] = Claim([*topics])
            case "leave" if len(claims) > 1:
                del claims[min(claims) if data is None else data.draw(st.sampled_from(sorted(claims)))]
            case "return":  # a restarted worker that the group has not missed, and that claims nothing
                claims[min(claims)] = Claim([*topics])
            case "grow":
                topics[TOPIC] += 1 if data is None else data.draw(st.integers(1, 5))
            case "add" if len(topics) < 3:
                topics[f"topic-{number}"] = 1 if data is None else data.draw(st.integers(1, 5))
                claims = {member: each._replace(topics=[*topics]) for member, each in claims.items()}
        shares = shared_out(topics_of(topics), claims, replicas)
        check_valid(shares, topics, replicas)
        if len(topics) == 1:
            assert moves(claims, shares) == fewest_moves(claims, topics[TOPIC])
        claims = claims_of(shares, topics)


@given(st.lists(st.integers(1, 7), min_size=2, max_size=4), st.integers(2, 5))
@settings(max_examples=tries(200))
def test_with_several_topics_a_member_that_leaves_moves_few_partitions_of_others(
    counts: list[int], members: int
) -> None:
    topics = {f"topic-{number}": count for number, count in enumerate(counts)}
    shares = shared_out(topics_of(topics), {f"member-{number}": Claim([*topics]) for number in range(members)}, 1)
    rest = {member: each for member, each in claims_of(shares, topics).items() if member != "member-0"}
    after = shared_out(topics_of(topics), rest, 1)
    check_valid(after, topics, 1)
    assert moves(rest, after) <= len(topics)


def test_as_many_partitions_as_can_go_to_a_member_with_a_copy() -> None:
    for copies in combinations(["0 1", "0", "1 2", "2 3", "3"], 2):
        claims = {"b": claim("4 5", copies[0]), "c": claim("6 7", copies[1])}
        shares = shared_out({TOPIC: range(8)}, claims, 1)
        warm = sum(len(shares[member].actives & set(claims[member].standbys)) for member in claims)
        assert warm == min(4, len({*copies[0].split(), *copies[1].split()})), copies
