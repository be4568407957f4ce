"""Assigns partitions and standbys to the members of a group. Pure.

    1. Each topic, and all topics together, are distributed evenly: no member has two partitions more than another. All
       together only if all members read the same topics, which is so unless a topic is being added or removed.
    2. A partition stays with its member unless that has too many. Partitions that move, or have lost their member, go
       to members with a standby, if these have room.
    3. Standbys are distributed evenly too, and stay where they are. A member that loses a partition is preferred for
       its standby.

Topics are assigned independently: no lane needs the same partition of another topic in its worker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from light_scheduler.model.place import Place

from .even_counts import standby_counts
from .owners import shared_actives
from .standbys import StandbyPartitions


class Claim(NamedTuple):
    """A member's metadata: topics it reads, partitions it owns, and partitions of which it has a standby."""

    topics: Collection[str]
    actives: Collection[Place] = frozenset()
    standbys: Collection[Place] = frozenset()


class Share(NamedTuple):
    """The partitions and standbys assigned to a member."""

    actives: set[Place]
    standbys: set[Place]


def shared_out(
    partitions: Mapping[str, Collection[int]], claims: Mapping[str, Claim], replicas: int
) -> dict[str, Share]:
    """Assign the partitions of topics to members, each with `replicas` standbys if there are enough members.

    Claims of missing partitions, or of partitions that others also claim, do no harm. Topics without readers are left
    out.
    """
    readers = {topic: sorted(each for each in claims if topic in claims[each].topics) for topic in sorted(partitions)}
    places = [(topic, number) for topic in readers if readers[topic] for number in sorted(partitions[topic])]
    before = _owners(places, readers, claims)
    warm = {place: [each for each in readers[place[0]] if place in claims[each].standbys] for place in places}
    owners = shared_actives(places, readers, before, warm)
    keepers = _shared_standbys(owners, readers, before, warm, replicas)
    shares = {member: Share(set(), set()) for member in claims}
    for place in places:
        shares[owners[place]].actives.add(place)
        for member in keepers[place]:
            shares[member].standbys.add(place)
    return shares


def _owners(
    places: Sequence[Place], readers: Mapping[str, Sequence[str]], claims: Mapping[str, Claim]
) -> dict[Place, str]:
    """Return the current owner of each partition. If several claim it, all but one lost it while they were away."""
    claimants = {place: [each for each in readers[place[0]] if place in claims[each].actives] for place in places}
    owners: dict[Place, str] = {}
    counts: Counter[str] = Counter()
    for place in sorted(places, key=lambda each: (len(claimants[each]), each)):
        if claimants[place]:
            owners[place] = min(claimants[place], key=lambda each: (counts[each], each))
            counts[owners[place]] += 1
    return owners


def _shared_standbys(
    owners: Mapping[Place, str],
    readers: Mapping[str, Sequence[str]],
    before: Mapping[Place, str],
    warm: Mapping[Place, Sequence[str]],
    replicas: int,
) -> Mapping[Place, Sequence[str]]:
    """3. Return the members that keep a standby of each partition."""
    copies = {place: min(replicas, len(readers[place[0]]) - 1) for place in owners}
    members = sorted({member for each in readers.values() for member in each})
    actives, kept = dict.fromkeys(members, 0), dict.fromkeys(members, 0)
    for place, owner in owners.items():
        actives[owner] += 1
        for member in warm[place]:
            kept[member] += member != owner
    if not members:
        return {}
    standbys = StandbyPartitions(owners, readers, standby_counts(sum(copies.values()), actives, kept))
    for place in owners:
        standbys.keep(place, warm[place], copies[place])
    for place in owners:
        standbys.keep(place, [before[place]] if place in before else [], copies[place])
    for place in owners:
        standbys.place(place, copies[place])
    return standbys.keepers
