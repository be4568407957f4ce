"""What lanes know of the topics that they deliver to: `targets.Targets` finds it out, or who has it in memory."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Protocol

from light_scheduler.model.place import Place

from .half_open import Trials
from .target_outages import Outages
from .topic_facts import TargetTopic


class TopicFacts(Protocol):
    """What is known of topics: all that a cycle, which waits for nothing, asks."""

    def __getitem__(self, topic: str, /) -> TargetTopic:
        """Return what is known of a topic. Raises KeyError for one that was never resolved."""
        ...


class TargetLookup(TopicFacts, Protocol):
    """Finds topics out, and what becomes of them, for a lane: see `targets.Targets`."""

    @property
    def outages(self) -> Outages:
        """The partitions that cannot be written to just now."""
        ...

    @property
    def trials(self) -> Trials:
        """The partitions that refuse what they are sent."""
        ...

    async def resolve(self, topics: Set[str]) -> None:
        """Make sure that every topic is known. Raises BrokerError."""
        ...

    async def suspect(self, places: Iterable[Place], reason: str) -> None:
        """Let what is due for places that do not answer wait."""
        ...

    def doubt(self, topics: Iterable[str]) -> None:
        """Watch topics for a while, whose leaders may be lost."""
        ...

    def leave_alone(self, place: Place, reason: str, times: int | None = None) -> None:
        """Let what is due for a place wait, longer with each call, or as after `times` failures."""
        ...

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        """Take a topic that is there for one that nothing can be written to, for a while."""
        ...

    def forget_all(self) -> None:
        """Ask again about every topic when it is needed next."""
        ...
