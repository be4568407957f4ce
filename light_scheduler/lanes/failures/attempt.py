"""The transaction that a lane is sending, to learn from it if it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from light_scheduler.kafka.batches import RecordBatches, Written
from light_scheduler.model.place import Place

from .failing_work_search import Work


@dataclass
class Attempt:
    """`size` is of commands and firings together; `works` is what it held, if that is little.

    `places` are those of users and ours alike; `written` is what they are known to have taken, as answers come in.
    `sent_late` are those of our commands topic that it writes to what had waited for them.
    """

    transactional_id: str = ""
    size: int = 0
    is_begun: bool = False
    works: list[Work] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    sent_late: list[Place] = field(default_factory=list)
    written: Mapping[Place, Written] = field(default_factory=dict)

    def begin(self, size: int, batches: RecordBatches) -> None:
        """Note that it is about to be sent."""
        self.size, self.places, self.written, self.is_begun = size, batches.places, batches.written, True
