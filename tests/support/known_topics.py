"""What is known of topics, without a broker that could be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from light_scheduler.kafka.half_open import Trials
from light_scheduler.kafka.target_outages import Outages
from light_scheduler.kafka.topic_facts import TargetTopic
from light_scheduler.model.place import Place


class KnownTopics(dict[str, TargetTopic]):
    """Stands for what a worker knows of topics (`TargetLookup`); `outages` says what cannot be written to."""

    def __init__(self, known: Mapping[str, TargetTopic], outages: Outages | None = None) -> None:
        super().__init__(known)
        self.outages = Outages(lambda: 0.0) if outages is None else outages
        self.trials = Trials(self.outages)

    async def resolve(self, topics: Set[str]) -> None:
        """They are known."""

    def forget(self, topics: Iterable[str]) -> None:
        """Nobody could be asked again."""

    def forget_all(self) -> None:
        """Nobody could be asked again."""

    async def suspect(self, places: Iterable[Place], reason: str) -> None:
        raise NotImplementedError

    def doubt(self, topics: Iterable[str]) -> None:
        raise NotImplementedError

    def leave_alone(self, place: Place, reason: str, times: int | None = None) -> None:
        raise NotImplementedError

    def deny(self, topic: str, refusal: str, seconds: float) -> None:
        raise NotImplementedError
