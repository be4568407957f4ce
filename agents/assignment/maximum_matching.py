"""A maximum matching of partitions and members: as many partitions as possible get a preferred member. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from light_scheduler.model.place import Place


def matched(wishes: Mapping[Place, Collection[str]], room: Mapping[str, int]) -> dict[Place, str]:
    """Match partitions to the members in their `wishes`. `room` is the maximum number of partitions of each member.

    Matches as many partitions as possible, by augmenting paths (Kuhn's algorithm).
    """
    taken: dict[str, list[Place]] = {member: [] for member in room}

    def find(place: Place, tried: set[str]) -> bool:
        for member in wishes[place]:
            if member in tried or not room.get(member):
                continue
            tried.add(member)
            if len(taken[member]) < room[member]:
                taken[member].append(place)
                return True
            for number, other in enumerate(taken[member]):
                if find(other, tried):
                    taken[member][number] = place
                    return True
        return False

    for place in wishes:
        find(place, set())
    return {place: member for member, places in taken.items() for place in places}
