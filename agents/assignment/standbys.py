"""Assigns standbys evenly to the members of a group, never to the owner of the partition. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from light_scheduler.model.place import Place


class StandbyPartitions:
    """Places standbys one after another.

    `owners` has the owner of each partition, `readers` the members that may keep standbys of a topic, and `most` the
    maximum number of standbys for each member.
    """

    def __init__(
        self, owners: Mapping[Place, str], readers: Mapping[str, Sequence[str]], most: Mapping[str, int]
    ) -> None:
        self.keepers: dict[Place, list[str]] = {place: [] for place in owners}
        self._owners = owners
        self._readers = readers
        self._most = most
        self._held: dict[str, set[Place]] = {member: set() for member in most}
        self._beside: Counter[tuple[str, str]] = Counter()

    def keep(self, place: Place, members: Iterable[str], copies: int) -> None:
        """Keep standbys on these members, up to `copies`."""
        for member in members:
            if len(self.keepers[place]) < copies and self._may_keep(place, member) and self._has_room(member):
                self._put(place, member)

    def place(self, place: Place, copies: int) -> None:
        """Place missing standbys, up to `copies`. Moves others if that is necessary to make room."""
        while len(self.keepers[place]) < copies:
            if not self._find(place, set()):  # not all members read the topic, so some must exceed their maximum
                members = [each for each in self._readers[place[0]] if self._may_keep(place, each)]
                self._put(place, min(members, key=lambda each: (len(self._held[each]), each)))

    def _find(self, place: Place, tried: set[str]) -> bool:
        """Find room for a standby along an augmenting path. Return whether there is any."""
        for member in sorted(self._readers[place[0]], key=lambda each: self._dislike(place, each)):
            if member in tried or not self._may_keep(place, member):
                continue
            tried.add(member)
            if self._has_room(member):
                self._put(place, member)
                return True
            for other in sorted(self._held[member]):
                if self._find(other, tried):
                    self._take(other, member)
                    self._put(place, member)
                    return True
        return False

    def _dislike(self, place: Place, member: str) -> tuple[bool, int, int, str]:
        """Sort key for members: first those with room, then those with the fewest standbys of this owner's partitions.

        So when an owner is gone, its partitions are spread evenly over the others.
        """
        room = self._most[member] - len(self._held[member])
        return room <= 0, self._beside[self._owners[place], member], -room, member

    def _may_keep(self, place: Place, member: str) -> bool:
        return member != self._owners[place] and member not in self.keepers[place]

    def _has_room(self, member: str) -> bool:
        return len(self._held[member]) < self._most[member]

    def _put(self, place: Place, member: str) -> None:
        self.keepers[place].append(member)
        self._held[member].add(place)
        self._beside[self._owners[place], member] += 1

    def _take(self, place: Place, member: str) -> None:
        self.keepers[place].remove(member)
        self._held[member].remove(place)
        self._beside[self._owners[place], member] -= 1
