"""The transaction that a lane is about: should it fail, this is what it was."""

from __future__ import annotations

from dataclasses import dataclass, field

from light_scheduler.model.place import Place

from .caution import Work


@dataclass
class Attempt:
    """`size` is of commands and firings together; `works` is what it held, if that is little.

    `places` are those of users and ours alike.
    """

    transactional_id: str = ""
    size: int = 0
    is_begun: bool = False
    works: list[Work] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)

    def begin(self, size: int, places: list[Place]) -> None:
        """Note that it is about to be sent."""
        self.size, self.places, self.is_begun = size, places, True
