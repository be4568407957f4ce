"""The interface through which lanes look up target topics. Implemented by `targets.Targets`, and in memory."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Protocol

from light_scheduler.model.place import Place

from .half_open import Trials
from .target_outages import Outages
from .topic_facts import TargetTopic


class TopicFacts(Protocol):
    """Known facts about topics, for a cycle, which must not wait."""

    def __getitem__(self, topic: str, /) -> TargetTopic:
        """Return the known facts about a topic. Raises KeyError if it was never resolved."""
        ...


class TargetLookup(TopicFacts, Protocol):
    """Looks up topics and tracks their availability for a lane; see `targets.Targets`."""

    @property
    def outages(self) -> Outages:
        """The partitions that are currently unavailable."""
        ...

    @property
    def trials(self) -> Trials:
        """The partitions that refuse records."""
        ...

    async def resolve(self, topics: Set[str]) -> None:
        """Look up topics that are unknown or outdated. Raises BrokerError."""
        ...

    async def suspect(self, places: Iterable[Place], reason: str) -> None:
        """Hold back firings for places that do not answer."""
        ...

    def doubt(self, topics: Iterable[str]) -> None:
        """Watch topics for a while, since their leaders may be lost."""
        ...

    def leave_alone(self, place: Place, reason: str, times: int | None = None) -> None:
        """Hold back firings for a place, longer with each call, or as after `times` failures."""
        ...

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        """Treat an existing topic as not writable for some seconds."""
        ...

    def forget(self, topics: Iterable[str]) -> None:
        """Make these topics be looked up again at their next use."""
        ...

    def forget_all(self) -> None:
        """Make each topic be looked up again at its next use."""
        ...
