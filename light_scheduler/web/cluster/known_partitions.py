"""Which partitions a request may ask for: existing partitions of the application's commands topics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from aiohttp import web

from light_scheduler.errors import BrokerError, ConfigurationError
from light_scheduler.tables.views import Lane, QueryError
from light_scheduler.web.forms.parameters import lane_named
from light_scheduler.web.interfaces import Lanes, Peers, owner_of_each

from .answers import is_local

FRESH_S = 1.0
"""Minimum time between two queries to Kafka, however many requests ask for partitions that no worker owns. Only one
query runs at a time."""
WAIT_S = 3.0
"""How long a request waits for Kafka's answer."""


def existing(name: str, counts: Mapping[str, int | None]) -> Lane:
    """Return the lane that a `PartitionName` names. `counts` is the number of partitions of each commands topic; None:
    not known.

    Raises QueryError if there is no such partition.
    """
    lane = topic, number = lane_named(name)
    if topic not in counts:
        topics = ", ".join(sorted(counts))
        raise QueryError("partition", f"{topic} is not a commands topic of this application: use {topics}")
    count = counts[topic]
    if count is not None and number >= count:
        raise QueryError("partition", f"{topic} has no partition {number}: it has {count}, numbered from 0")
    return lane


class KnownPartitions:
    """The partitions of `topics`, the commands topics, that this worker knows of."""

    def __init__(
        self,
        lanes: Lanes,
        peers: Peers,
        topics: frozenset[str],
        in_kafka: Callable[[], Awaitable[Mapping[str, int]]],
    ) -> None:
        """`in_kafka` returns the number of partitions of each topic. Raises BrokerError, ConfigurationError."""
        self._lanes = lanes
        self._peers = peers
        self._topics = topics
        self._in_kafka = in_kafka
        self._asked: asyncio.Task[Mapping[str, int] | None] | None = None
        self._asked_at = 0.0

    async def asked_by(self, request: web.Request) -> Callable[[str], Lane]:
        """Return a function that reads the `PartitionName` of a request. Names from another worker are accepted as they
        are: that worker has checked them."""
        if is_local(request):
            return lane_named
        counts = self._counts()
        if _is_beyond(request.query.get("partition", ""), counts):
            counts = await self._counts_in_kafka(counts)
        return partial(existing, counts=counts)

    async def _counts_in_kafka(self, counts: Mapping[str, int | None]) -> dict[str, int | None]:
        """Return the counts with added partitions that no worker owns yet. If Kafka does not answer, the counts are
        unknown."""
        now = asyncio.get_running_loop().time()
        if self._asked is None or (self._asked.done() and now >= self._asked_at + FRESH_S):
            self._asked, self._asked_at = asyncio.create_task(self._ask_kafka()), now
        await asyncio.wait([self._asked], timeout=WAIT_S)
        found = self._asked.result() if self._asked.done() else None
        if found is None:
            return dict.fromkeys(counts)
        return {topic: None if count is None else max(count, found.get(topic, 0)) for topic, count in counts.items()}

    async def _ask_kafka(self) -> Mapping[str, int] | None:
        try:
            return await self._in_kafka()
        except (BrokerError, ConfigurationError):
            return None

    def _counts(self) -> dict[str, int | None]:
        owners = owner_of_each(self._peers, self._topics)
        known = [(topic, number + 1) for (topic, number), url in owners.items() if url is not None]
        known += [(lane.topic, lane.partitions) for lane in self._lanes.status() if lane.partitions is not None]
        counts: dict[str, int | None] = dict.fromkeys(self._topics)
        for topic, count in known:
            counts[topic] = max(counts[topic] or 0, count)
        return counts


def _is_beyond(name: str, counts: Mapping[str, int | None]) -> bool:
    """Return whether a name is beyond the known partitions of its commands topic."""
    topic, _, number = name.removesuffix("]").rpartition("[")
    count = counts.get(topic)
    return count is not None and number.isdecimal() and len(number) < 10 and int(number) >= count
