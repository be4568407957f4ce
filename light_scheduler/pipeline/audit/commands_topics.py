"""The commands topics of an application: their dialects, and whether they still have all commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .owners import NO_OTHERS, OtherDialects


@dataclass(frozen=True)
class CommandsTopics:
    """The commands topics. `default` is used for schedules without a command.

    `whole_since`: topic -> instant (UTC epoch ms) since which both the topic and the history are complete. In
    `compacted` topics, any command with a later one for the same key may be gone.
    """

    default: str
    others: OtherDialects = NO_OTHERS
    whole_since: Mapping[str, int] = field(default_factory=dict)
    compacted: frozenset[str] = frozenset()

    def since(self, topic: str | None) -> int:
        """Return the instant since which a topic is complete; None: the topic is not known, so for all of them."""
        return max(self.whole_since.values(), default=0) if topic is None else self.whole_since.get(topic, 0)

    def is_compacted(self, topic: str | None) -> bool:
        """Return whether a topic is compacted; None: the topic is not known, so whether any is."""
        return bool(self.compacted) if topic is None else topic in self.compacted
