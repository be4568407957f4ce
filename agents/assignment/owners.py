"""Assigns partitions evenly: preferably to their current owners, then to members with a standby. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from light_scheduler.model.place import Place

from .even_counts import Holdings, even_counts
from .maximum_matching import matched


def shared_actives(
    places: Sequence[Place],
    readers: Mapping[str, Sequence[str]],
    before: Mapping[Place, str],
    warm: Mapping[Place, Sequence[str]],
) -> dict[Place, str]:
    """Return the owner of each partition. `before` has the current owners, `warm` the members with standbys."""
    by_topic: dict[str, list[Place]] = defaultdict(list)
    for place in places:
        by_topic[place[0]].append(place)
    holdings = {topic: _holdings(each, readers[topic], before, warm) for topic, each in by_topic.items()}
    owners: dict[Place, str] = {}
    for topic, counts in even_counts(holdings).items():
        owners |= _owners_of_topic(by_topic[topic], counts, before, warm)
    return owners


def _holdings(
    places: Sequence[Place], readers: Sequence[str], before: Mapping[Place, str], warm: Mapping[Place, Sequence[str]]
) -> Holdings:
    owned = Counter(dict.fromkeys(readers, 0))
    owned.update(before[place] for place in places if place in before)
    lacking = {member for member, count in owned.items() if count < len(places) // len(readers)}
    leaning = Counter(dict.fromkeys(readers, 0))
    for place in places:
        if place not in before:
            leaning.update(warm[place])
        elif not lacking.isdisjoint(warm[place]):
            leaning[before[place]] -= 1
    return Holdings(len(places), owned, leaning)


def _owners_of_topic(
    places: Sequence[Place],
    counts: Mapping[str, int],
    before: Mapping[Place, str],
    warm: Mapping[Place, Sequence[str]],
) -> dict[Place, str]:
    """Keep partitions with their owners as far as their counts allow, and place the others."""
    kept: dict[str, list[Place]] = {member: [] for member in counts}
    for place in places:
        if place in before:
            kept[before[place]].append(place)
    room = {member: max(0, count - len(kept[member])) for member, count in counts.items()}
    free = [place for place in places if place not in before]
    for member, own in kept.items():
        own.sort(key=lambda place: any(room[each] for each in warm[place]))  # move those with a standby elsewhere
        free += own[counts[member] :]
        del own[counts[member] :]
    owners = {place: member for member, own in kept.items() for place in own}
    owners |= matched({place: warm[place] for place in free}, room)
    left = Counter(room) - Counter(owners[place] for place in free if place in owners)
    for place in free:
        if place not in owners:
            owners[place] = min(+left, key=lambda member: (-left[member], member))
            left[owners[place]] -= 1
    return owners
