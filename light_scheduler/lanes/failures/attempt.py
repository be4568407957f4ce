"""The transaction that a lane is sending, as the lane learns from it if it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from light_scheduler.kafka.batches import RecordBatches, Written
from light_scheduler.model.place import Place

from .failing_work_search import Work


@dataclass
class Attempt:
    """One transaction. `size` counts commands and firings, and `works` has its work if there is little of it.

    `places` are the places of users and the scheduler. `written` has what they acknowledged, updated as answers arrive.
    `sent_late` are the places of the commands topic to which it writes records that had to wait for them.
    """

    transactional_id: str = ""
    size: int = 0
    is_begun: bool = False
    works: list[Work] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    sent_late: list[Place] = field(default_factory=list)
    written: Mapping[Place, Written] = field(default_factory=dict)

    def begin(self, size: int, batches: RecordBatches) -> None:
        """Note that the transaction is about to be sent."""
        self.size, self.places, self.written, self.is_begun = size, batches.places, batches.written, True
