"""Which partitions share rates, according to one assignment. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from light_scheduler.model.place import Place

Owned = Mapping[str, Mapping[str, list[int]]]
"""Worker -> topic -> partitions."""


class RateSharing:
    """The `topics` that share each rate, and which worker has which of their partitions.

    These are the topics in this worker's settings, and those of which any worker has partitions. So while a topic is
    added or removed, worker by worker, all workers share rates among the same topics.
    """

    def __init__(self, owned: Owned, topics: Collection[str]) -> None:
        self.owned = owned
        self.workers: dict[Place, str] = {
            (topic, number): worker
            for worker, partitions in owned.items()
            for topic, numbers in partitions.items()
            for number in numbers
        }
        self.topics = sorted({*topics, *(topic for topic, _ in self.workers)})
        self._shares: dict[Place, Mapping[Place, float]] = {}

    def shares(self, place: Place) -> Mapping[Place, float]:
        """Return all owned partitions but one (`place`), with their share of each rate.

        Those of its own topic come first. Within each topic, the partitions after `place` come first.
        """
        found = self._shares.get(place)
        if found is None:
            found = self._shares[place] = self._shares_beside(place)
        return found

    def _shares_beside(self, place: Place) -> Mapping[Place, float]:
        partitions: dict[str, list[int]] = {topic: [] for topic in self.topics}
        for topic, number in sorted(self.workers):
            partitions[topic].append(number)
        shares: dict[Place, float] = {}
        for topic in sorted(partitions, key=lambda topic: topic != place[0]):
            numbers, begin = partitions[topic], place[1] + 1
            for number in (*(each for each in numbers if each >= begin), *(each for each in numbers if each < begin)):
                shares[topic, number] = 1 / len(numbers) / len(self.topics)
        shares.pop(place, None)
        return shares
