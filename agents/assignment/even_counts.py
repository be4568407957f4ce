"""Decides how many partitions of each topic a group member gets, and how many standbys it keeps. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Holdings(NamedTuple):
    """The partitions of a topic (a number), and what each of its readers has, including readers without any.

    `owned` is the number of partitions of each reader. `leaning` says how much standbys favour a reader for an extra
    partition: the number of its standbys for partitions without an owner, minus the number of its own partitions with
    a standby on a reader that has too few.
    """

    partitions: int
    owned: Mapping[str, int]
    leaning: Mapping[str, int]


class _Swap(NamedTuple):
    """Moves the extra partition of a topic to another member. The smallest swap is the best."""

    cost: int
    gain: int
    topic: str
    giver: str
    taker: str


def even_counts(topics: Mapping[str, Holdings]) -> dict[str, dict[str, int]]:
    """Return topic -> member -> number of partitions. Numbers of a topic differ by at most one.

    The totals of all topics also differ by at most one, if all members read the same topics. Members that have one
    partition more than others keep it if possible.
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
    """Distribute a number of `copies` over members. Return the number for each; they differ by at most one.

    Members with fewer own partitions (`actives`) keep one more, then members that already have more copies (`kept`).
    """
    least, more = divmod(copies, len(actives))
    order = sorted(actives, key=lambda member: (actives[member], -kept[member], member))
    return {member: least + (place < more) for place, member in enumerate(order)}


def _keeps(has: Holdings, member: str) -> bool:
    """Return whether a member has more than the minimum, so that it keeps a partition by getting the extra one."""
    return has.owned[member] > has.partitions // len(has.owned)


def _swaps(topics: Mapping[str, Holdings], more: Mapping[str, set[str]], totals: Mapping[str, int]) -> Iterator[_Swap]:
    """Yield swaps between members whose totals differ by two or more."""
    for topic, has in topics.items():
        for giver in more[topic]:
            for taker in has.owned.keys() - more[topic]:
                if (gain := totals[giver] - totals[taker]) > 1:
                    yield _Swap(_keeps(has, giver) - _keeps(has, taker), -gain, topic, giver, taker)
