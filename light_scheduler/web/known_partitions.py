"""Which partitions a request may ask for: those that the commands topics of the application have."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import web

from light_scheduler.tables.views import Lane, QueryError

from .cluster import Lanes, Peers, owner_of_each
from .parameters import lane_named
from .scatter import is_local


def existing(name: str, counts: Mapping[str, int | None]) -> Lane:
    """Return what a `PartitionName` names. `counts` is how many partitions each commands topic has; None: not known.

    Raises QueryError if there is no such partition.
    """
    lane = topic, number = lane_named(name)
    if topic not in counts:
        topics = ", ".join(sorted(counts))
        raise QueryError("partition", f"{topic} is no commands topic of this application, only {topics}")
    count = counts[topic]
    if count is not None and number >= count:
        raise QueryError("partition", f"{topic} has no partition {number}: it has {count}, numbered from 0")
    return lane


class KnownPartitions:
    """The partitions of `topics`, the commands topics, as far as this worker knows them."""

    def __init__(self, lanes: Lanes, peers: Peers, topics: frozenset[str]) -> None:
        self._lanes = lanes
        self._peers = peers
        self._topics = topics

    def asked_by(self, request: web.Request) -> Callable[[str], Lane]:
        """Return what reads a `PartitionName` of a request: what another worker asks for was looked up there."""
        return lane_named if is_local(request) else self._named

    def _named(self, name: str) -> Lane:
        return existing(name, self._counts())

    def _counts(self) -> dict[str, int | None]:
        owners = owner_of_each(self._peers, self._topics)
        known = [(topic, number + 1) for (topic, number), url in owners.items() if url is not None]
        known += [(lane.topic, lane.partitions) for lane in self._lanes.status() if lane.partitions is not None]
        counts: dict[str, int | None] = dict.fromkeys(self._topics)
        for topic, count in known:
            counts[topic] = max(counts[topic] or 0, count)
        return counts
