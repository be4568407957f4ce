"""How many partitions of each topic each member of a group gets, and how many copies it keeps. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Holdings(NamedTuple):
    """What the members that read a topic have of its `partitions` (a number), by member; members without any as well.

    `owned` is how many partitions each has, and `leaning` how many copies speak for its having one more than others:
    those that it keeps of what nobody has, less those of its own partitions that others keep who have too few.
    """

    partitions: int
    owned: Mapping[str, int]
    leaning: Mapping[str, int]


class _Swap(NamedTuple):
    """Moves the one partition more than others have of a topic; the least is the best."""

    cost: int
    gain: int
    topic: str
    giver: str
    taker: str


def even_counts(topics: Mapping[str, Holdings]) -> dict[str, dict[str, int]]:
    """Return topic -> member -> partitions: of each topic, and of all together, as many for each, give or take one.

    All together only if all read the same topics. Members that have one partition more than others keep it if they can.
    """
    counts = {topic: dict.fromkeys(has.owned, has.partitions // len(has.owned)) for topic, has in topics.items()}
    totals: Counter[str] = Counter()
    for each in counts.values():
        totals.update(each)
    more: dict[str, set[str]] = {}
    for topic, has in sorted(topics.items()):
        wishes = sorted(
            has.owned, key=lambda member: (-_keeps(has, member), totals[member], -has.leaning[member], member)
        )
        more[topic] = set(wishes[: has.partitions % len(has.owned)])
        totals.update(more[topic])
    while swap := min(_swaps(topics, more, totals), default=None):
        more[swap.topic].remove(swap.giver)
        more[swap.topic].add(swap.taker)
        totals.update({swap.giver: -1, swap.taker: 1})
    return {
        topic: {member: count + (member in more[topic]) for member, count in each.items()}
        for topic, each in counts.items()
    }


def standby_counts(copies: int, actives: Mapping[str, int], kept: Mapping[str, int]) -> dict[str, int]:
    """Return how many of so many `copies` each member keeps: as many for each, give or take one.

    Those with fewer partitions of their own (`actives`) keep one more, then those that have more copies (`kept`).
    """
    least, more = divmod(copies, len(actives))
    order = sorted(actives, key=lambda member: (actives[member], -kept[member], member))
    return {member: least + (place < more) for place, member in enumerate(order)}


def _keeps(has: Holdings, member: str) -> bool:
    """Return whether a member keeps a partition by having one more than the least."""
    return has.owned[member] > has.partitions // len(has.owned)


def _swaps(topics: Mapping[str, Holdings], more: Mapping[str, set[str]], totals: Mapping[str, int]) -> Iterator[_Swap]:
    """Yield the ways to even totals out that differ by two or more."""
    for topic, has in topics.items():
        for giver in more[topic]:
            for taker in has.owned.keys() - more[topic]:
                if (gain := totals[giver] - totals[taker]) > 1:
                    yield _Swap(_keeps(has, giver) - _keeps(has, taker), -gain, topic, giver, taker)
