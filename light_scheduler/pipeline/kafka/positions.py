"""Where a stream is: an offset for each log, and which topics these are offsets of.

    {"topic": {"0": 12, "1": 7}, "#ids": {"topic": "cSV6..."}}

A name alone does not tell a topic from a later one of the same name, whose offsets begin anew. Its id does. Without
`#ids`, which no topic can be called, it is what Spark's own connector writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .options import TOPIC_IDS, TopicPart, flat, nested


@dataclass(frozen=True)
class Position:
    """Offsets by (topic, partition), and the id of each topic; ids may be missing in what an older version wrote."""

    offsets: Mapping[TopicPart, int]
    ids: Mapping[str, str]

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Position:
        """Read a position as Spark keeps it."""
        return cls(flat(json), json.get(TOPIC_IDS, {}))

    def json(self) -> dict[str, Any]:
        """Return the position as Spark keeps it."""
        return {**nested(self.offsets), TOPIC_IDS: dict(sorted(self.ids.items()))}

    def replaced(self, ids: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Return the topics that have another id by now: the one that they had and the one that they have."""
        return {
            topic: (before, ids[topic])
            for topic, before in sorted(self.ids.items())
            if topic in ids and ids[topic] != before
        }
