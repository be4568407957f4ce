"""Interfaces of the worker for HTTP: its own partitions, and the owners of the others."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Protocol

from light_scheduler.access import AccessBook, Token
from light_scheduler.access.store import TokenStore
from light_scheduler.delays import DelayLaneStatus, DelayView
from light_scheduler.lanes.context.status import LaneStatus, TargetStatus
from light_scheduler.lanes.context.tenant_firings import TenantFirings
from light_scheduler.lanes.context.topic_totals import TopicTotals
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
        """Wait until the tables contain everything committed before the call. Return the lanes that did not catch up in
        time."""
        ...

    def status(self) -> list[LaneStatus]:
        """Return the state of every lane that this worker has, running or not."""
        ...

    def standbys(self) -> list[StandbyStatus]:
        """Return how far each standby copy of another worker's partition is behind."""
        ...

    def targets(self) -> list[TargetStatus]:
        """Return the target topics that cannot be written to at the moment."""
        ...

    def tenant_firings(self) -> TenantFirings:
        """Return how many firings this worker has delivered for each tenant."""
        ...

    def topic_totals(self) -> Mapping[str, TopicTotals]:
        """Return totals of this worker for each commands topic."""
        ...


class Delays(Protocol):
    """The delay rules, and this worker's lanes for them."""

    def views(self) -> list[DelayView]:
        """Return all rules, by name."""
        ...

    def lanes(self) -> list[DelayLaneStatus]:
        """Return the state of this worker's delay lanes."""
        ...

    async def put(self, rule: DelayRule, *, by: Requester) -> bool:
        """Add or replace a rule, and record it in the history. Return whether the rule is new.

        Raises RuleError, RuleFromConfigurationError, BrokerError.
        """
        ...

    async def remove(self, name: str, *, by: Requester) -> bool:
        """Remove a rule, and record it in the history. Return whether the rule existed.

        Raises RuleFromConfigurationError, BrokerError.
        """
        ...


class Access(Protocol):
    """Tokens and their rights."""

    @property
    def is_loaded(self) -> bool:
        """Whether the tokens have been read. Until then, every request is refused."""
        ...

    @property
    def book(self) -> AccessBook:
        """All tokens."""
        ...

    @property
    def oidc(self) -> Oidc | None:
        """Verifies tokens of an identity provider; None if there is no provider."""
        ...

    @property
    def store(self) -> TokenStore:
        """Where tokens are changed."""
        ...

    def used(self, token: Token) -> None:
        """Note that a token was used."""
        ...


class Peers(Protocol):
    """Which worker owns which partitions, this one included."""

    @property
    def own_url(self) -> str:
        """This worker's key in `owners`: the URL at which other workers reach it."""
        ...

    def owners(self) -> Mapping[str, Mapping[str, list[int]]]:
        """Return worker url -> topic -> partitions; empty before the first assignment."""
        ...


def owner_of_each(peers: Peers, topics: frozenset[str]) -> dict[Lane, str | None]:
    """Return the URL of the worker that owns each partition of these topics; None if no worker owns it.

    Partitions are numbered from 0, so a gap, or a topic without partitions, means a partition without an owner.
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
