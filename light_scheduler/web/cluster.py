"""Interfaces of the worker for HTTP: its own partitions, and the owners of the others."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Protocol

from light_scheduler.access import AccessBook, Token
from light_scheduler.access.store import TokenStore
from light_scheduler.delays import DelayLaneStatus, DelayView
from light_scheduler.lanes.status import LaneStatus, TargetStatus
from light_scheduler.lanes.tenant_firings import TenantFirings
from light_scheduler.lanes.topic_totals import TopicTotals
from light_scheduler.model import DelayRule, Requester
from light_scheduler.tables.status import StandbyStatus
from light_scheduler.tables.views import Lane, ReadableTable

if TYPE_CHECKING:
    from light_scheduler.access.oidc import Oidc


class Tables(Protocol):
    """The tables of this worker's partitions."""

    def tables(self) -> Mapping[Lane, ReadableTable]:
        """Return the tables of the lanes that run: (commands topic, partition) -> table."""
        ...


class Lanes(Tables, Protocol):
    """This worker's partitions."""

    async def catch_up(self) -> Set[Lane]:
        """Wait until tables have what was committed before the call; return those that do not get there in time."""
        ...

    def status(self) -> list[LaneStatus]:
        """Return the state of every lane that this worker has, running or not."""
        ...

    def standbys(self) -> list[StandbyStatus]:
        """Return how warm the copies are that this worker keeps of other workers' partitions."""
        ...

    def targets(self) -> list[TargetStatus]:
        """Return the target topics that cannot be written to just now."""
        ...

    def tenant_firings(self) -> TenantFirings:
        """Return what this worker has delivered of each tenant."""
        ...

    def topic_totals(self) -> Mapping[str, TopicTotals]:
        """Return what this worker has done of each commands topic."""
        ...


class Delays(Protocol):
    """The delay rules, and this worker's part in them."""

    def views(self) -> list[DelayView]:
        """Return all rules, by name."""
        ...

    def lanes(self) -> list[DelayLaneStatus]:
        """Return what this worker's delay lanes are doing."""
        ...

    async def put(self, rule: DelayRule, *, by: Requester) -> bool:
        """Add or replace a rule, and tell the history; return whether it is new.

        Raises RuleError, RuleFromConfigurationError, BrokerError.
        """
        ...

    async def remove(self, name: str, *, by: Requester) -> bool:
        """Remove a rule, and tell the history; return whether there was one.

        Raises RuleFromConfigurationError, BrokerError.
        """
        ...


class Access(Protocol):
    """Who may ask."""

    @property
    def is_loaded(self) -> bool:
        """Whether it is known who may ask; nobody is let in before."""
        ...

    @property
    def book(self) -> AccessBook:
        """All tokens."""
        ...

    @property
    def oidc(self) -> Oidc | None:
        """Who accepts the tokens of an identity provider, if there is one."""
        ...

    @property
    def store(self) -> TokenStore:
        """Where tokens are changed."""
        ...

    def used(self, token: Token) -> None:
        """Note that a token was used."""
        ...


class Peers(Protocol):
    """Who has which partitions, this worker included."""

    @property
    def own_url(self) -> str:
        """This worker's key in `owners`, where other workers reach it."""
        ...

    def owners(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Return worker url -> topic -> partitions; empty before the first assignment."""
        ...


def owner_of_each(peers: Peers, topics: frozenset[str]) -> dict[Lane, str | None]:
    """Return the owner's url of every partition of these topics; None if nobody has it.

    Partitions are numbered from 0, so a gap, or a topic without any, is a partition that nobody has.
    """
    owned = {
        (topic, partition): url
        for url, partitions_by_topic in peers.owners().items()
        for topic, partitions in partitions_by_topic.items()
        if topic in topics
        for partition in partitions
    }
    counts = dict.fromkeys(topics, 1)
    for topic, partition in owned:
        counts[topic] = max(counts[topic], partition + 1)
    return {(topic, partition): owned.get((topic, partition)) for topic in counts for partition in range(counts[topic])}
