"""The position of a stream: an offset for each log, and the ids of the topics.

    {"topic": {"0": 12, "1": 7}, "#ids": {"topic": "cSV6..."}}

A topic can be deleted and created again with the same name, and its offsets then start over; only its id changes.
Without `#ids`, which is not a valid topic name, this is the format of Spark's own connector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .options import TOPIC_IDS, TopicPart, flat, nested


@dataclass(frozen=True)
class Position:
    """Offsets by (topic, partition), and the id of each topic. Ids may be missing in positions of older versions."""

    offsets: Mapping[TopicPart, int]
    ids: Mapping[str, str]

    @classmethod
    def of(cls, json: Mapping[str, Any]) -> Position:
        """Parse a position from Spark's checkpoint."""
        return cls(flat(json), json.get(TOPIC_IDS, {}))

    def json(self) -> dict[str, Any]:
        """Return the position for Spark's checkpoint."""
        return {**nested(self.offsets), TOPIC_IDS: dict(sorted(self.ids.items()))}

    def replaced(self, ids: Mapping[str, str]) -> dict[str, tuple[str, str]]:
        """Return the topics whose id has changed: the former id and the current one."""
        return {
            topic: (before, ids[topic])
            for topic, before in sorted(self.ids.items())
            if topic in ids and ids[topic] != before
        }
